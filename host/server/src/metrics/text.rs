//! The text format of Prometheus, version 0.0.4.

use std::{
    fmt::{Display, Write},
    iter,
};

use store::{BUCKETS_US, DurationCounts};

/// Metrics as text, one family after the other.
#[derive(Debug, Default)]
pub(super) struct Text(String);

/// Type of a family.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

impl Text {
    /// Begins a family, whose samples follow.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    /// Adds a family with one sample without labels.
    pub(super) fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// Adds a sample.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escape(value)))
            .collect();
        match labels.as_slice() {
            [] => self.line(format_args!("{name} {value}")),
            labels => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    /// Adds the samples of a histogram, in seconds.
    pub(super) fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        counts: &DurationCounts,
    ) {
        let bucket = format!("{name}_bucket");
        let bounds = BUCKETS_US.iter().map(|us| seconds(*us).to_string());
        let bounds = bounds.zip(counts.up_to);
        for (bound, count) in bounds.chain(iter::once(("+Inf".to_owned(), counts.count))) {
            let labels = [labels, &[("le", bound.as_str())]].concat();
            self.sample(&bucket, &labels, count);
        }
        self.sample(&format!("{name}_sum"), labels, seconds(counts.sum_us));
        self.sample(&format!("{name}_count"), labels, counts.count);
    }

    /// Returns the whole text.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{line}");
    }
}

fn seconds(us: u64) -> f64 {
    us as f64 / 1_000_000.0
}

/// Escapes the value of a label.
fn escape(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Durations;

    use super::*;

    #[test]
    fn samples_have_escaped_labels() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "All");
        text.sample("a_total", &[("x", "q\"\\\n"), ("y", "")], 7);
        text.single("b", Kind::Gauge, "One", 0.5);
        assert_eq!(
            text.into_string(),
            "# HELP a_total All\n# TYPE a_total counter\na_total{x=\"q\\\"\\\\\\n\",y=\"\"} 7\n\
             # HELP b One\n# TYPE b gauge\nb 0.5\n"
        );
    }

    #[test]
    fn histogram_is_in_seconds() {
        let durations = Durations::default();
        durations.record(Duration::from_micros(250));
        durations.record(Duration::from_secs(1_000));
        let mut text = Text::default();
        text.histogram("t", &[("k", "v")], &durations.read());
        let text = text.into_string();
        for line in [
            "t_bucket{k=\"v\",le=\"0.0001\"} 0",
            "t_bucket{k=\"v\",le=\"0.0003\"} 1",
            "t_bucket{k=\"v\",le=\"100\"} 1",
            "t_bucket{k=\"v\",le=\"+Inf\"} 2",
            "t_sum{k=\"v\"} 1000.00025",
            "t_count{k=\"v\"} 2",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
    }
}
