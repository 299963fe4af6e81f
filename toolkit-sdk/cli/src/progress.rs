//! Progress indicators for slow steps. They are hidden if standard error is not a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Indicator of a running step; removed when dropped.
pub(crate) struct Spinner(ProgressBar);

/// Shows that a step is running.
pub(crate) fn spinner(what: &str) -> Spinner {
    let bar = ProgressBar::new_spinner().with_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    Spinner(bar)
}

/// Shows the number of finished items out of a known total.
pub(crate) fn counter(what: &str, total: usize) -> Spinner {
    let bar = ProgressBar::new(total as u64).with_message(what.to_owned());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {pos}/{len}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    Spinner(bar)
}

impl Spinner {
    /// Counts one finished item.
    pub(crate) fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Returns a number of things with their noun: `1 tool`, `2 tools`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Formats a size, for example `96.2 KB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats a duration, for example `12.3 ms`.
pub(crate) fn time(duration: Duration) -> String {
    match duration.as_micros() {
        0..1_000 => format!("{} µs", duration.as_micros()),
        1_000..1_000_000 => format!("{:.1} ms", duration.as_secs_f64() * 1e3),
        _ => format!("{:.2} s", duration.as_secs_f64()),
    }
}
