//! Log and requests of a call, visible from outside. They survive a stopped guest.

use std::{
    fmt::Write as _,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use crate::{Level, Limits, LogLine, RequestRecord, RequestSpan, redact::Redactor};

/// Maximum length of a line, in bytes; a longer one is cut.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Log and requests of one call.
pub(crate) struct Trace {
    started: Instant,
    /// Maximum number of log lines.
    max_lines: u32,
    /// Maximum size of the log lines together, in bytes.
    max_bytes: u64,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    log: Vec<LogLine>,
    log_bytes: u64,
    log_full: bool,
    requests: Vec<RequestRecord>,
    /// Redactor for all secrets so far. Most calls have no secrets.
    redactor: Option<Arc<Redactor>>,
    /// Redactor for secrets of the call's input, which every later redactor includes.
    input_redactor: Option<Arc<Redactor>>,
}

impl Recorded {
    fn redact(&self, text: &str) -> String {
        match &self.redactor {
            Some(redactor) => redactor.redact_text(text),
            None => text.to_owned(),
        }
    }
}

impl Trace {
    pub(crate) fn new(started: Instant, limits: &Limits) -> Self {
        Self {
            started,
            max_lines: limits.log_lines,
            max_bytes: limits.log_bytes,
            recorded: Mutex::default(),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Adds a line. Past the limits it adds one marker line and drops the rest.
    pub(crate) fn log(&self, level: Level, message: &str) {
        let mut recorded = self.lock();
        if recorded.log_full {
            return;
        }
        let at = self.started.elapsed();
        let line = one_line(&recorded.redact(cut(message, MAX_LINE_BYTES)));
        let bytes = recorded.log_bytes + line.len() as u64;
        if recorded.log.len() as u64 >= u64::from(self.max_lines) || bytes > self.max_bytes {
            recorded.log_full = true;
            let message = "the log is full: further lines are dropped".to_owned();
            recorded.log.push(LogLine {
                level: Level::Warn,
                at,
                message,
            });
            return;
        }
        recorded.log_bytes = bytes;
        recorded.log.push(LogLine {
            level,
            at,
            message: line,
        });
    }

    /// Records the start of a request and returns its number. The URL is the guest's. It is redacted when
    /// the requests are taken.
    pub(crate) fn request_started(&self, method: &str, url: &str, sent: u64) -> usize {
        let mut recorded = self.lock();
        recorded.requests.push(RequestRecord {
            method: method.to_owned(),
            url: cut(url, MAX_LINE_BYTES).to_owned(),
            status: None,
            error: None,
            elapsed: Duration::ZERO,
            sent,
            received: 0,
            span: None,
        });
        recorded.requests.len() - 1
    }

    /// Records the span of a request before it is sent.
    pub(crate) fn request_traced(&self, number: usize, span: RequestSpan) {
        if let Some(record) = self.lock().requests.get_mut(number) {
            record.span = Some(span);
        }
    }

    /// Records the end of a request.
    pub(crate) fn request_ended(
        &self,
        number: usize,
        elapsed: Duration,
        end: Result<(u16, u64), &str>,
    ) {
        let mut recorded = self.lock();
        let error = end.err().map(|message| recorded.redact(message));
        if let Some(record) = recorded.requests.get_mut(number) {
            record.elapsed = elapsed;
            record.error = error;
            if let Ok((status, received)) = end {
                record.status = Some(status);
                record.received = received;
            }
        }
    }

    /// Sets the redactor for the initial secrets of the call.
    pub(crate) fn redact_input(&self, redactor: Redactor) {
        let mut recorded = self.lock();
        recorded.input_redactor = Some(Arc::new(redactor));
        recorded.redactor = recorded.input_redactor.clone();
    }

    /// Sets the redactor for new and existing entries.
    pub(crate) fn redact_with(&self, redactor: Redactor) {
        let mut recorded = self.lock();
        let redactor = match &recorded.input_redactor {
            Some(input) => redactor.with_others(input.clone()),
            None => redactor,
        };
        recorded.redactor = Some(Arc::new(redactor));
    }

    /// Returns the redactor for all secrets so far.
    pub(crate) fn redactor(&self) -> Arc<Redactor> {
        self.lock().redactor.get_or_insert_default().clone()
    }

    /// Takes the log and the requests at the end of the call.
    pub(crate) fn take(&self) -> (Vec<LogLine>, Vec<RequestRecord>) {
        let mut recorded = self.lock();
        let mut log = std::mem::take(&mut recorded.log);
        let mut requests = std::mem::take(&mut recorded.requests);
        for record in &mut requests {
            if record.status.is_none() && record.error.is_none() {
                record.error = Some("the request did not end".to_owned());
            }
        }
        let redactor = recorded.redactor.as_ref();
        if let Some(redactor) = redactor.filter(|redactor| redactor.has_secrets()) {
            log.iter_mut()
                .for_each(|line| line.message = redactor.redact_text(&line.message));
            requests
                .iter_mut()
                .for_each(|record| record.url = redactor.redact_text(&record.url));
        }
        (log, requests)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock()
    }
}

/// Returns at most `bytes` bytes of `text`, cut between characters.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Escapes control and direction-changing characters, so that `text` is one line without hidden
/// characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\r' => line.push_str("\\r"),
            c if c.is_control() || is_deceptive(c) => {
                let _ = write!(line, "\\u{{{:x}}}", u32::from(c));
            }
            c => line.push(c),
        }
    }
    line
}

/// Returns true for characters that change the text direction, end a line or have no width.
fn is_deceptive(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(log_lines: u32, log_bytes: u64) -> Trace {
        Trace::new(
            Instant::now(),
            &Limits {
                log_lines,
                log_bytes,
                ..Limits::default()
            },
        )
    }

    #[test]
    fn log_is_limited_in_lines_and_bytes() {
        for trace in [trace(3, 1 << 20), trace(1000, 30)] {
            (0..10).for_each(|_| trace.log(Level::Info, "ten bytes."));
            let (log, _) = trace.take();
            assert_eq!(log.len(), 4);
            assert!(log[3].message.contains("full"));
        }
    }

    #[test]
    fn log_line_is_escaped_to_one_line() {
        let trace = trace(10, 1000);
        trace.log(Level::Info, "a\nb\u{1b}[31mred\u{202e}evil\u{0}é");
        assert_eq!(
            trace.take().0[0].message,
            "a\\nb\\u{1b}[31mred\\u{202e}evil\\u{0}é"
        );
    }

    #[test]
    fn secrets_are_removed_from_earlier_and_later_lines() {
        let trace = trace(10, 1000);
        trace.log(Level::Info, "early canary-4711");
        let request = trace.request_started("GET", "https://a.example/?q=canary-4711", 0);
        trace.redact_with(Redactor::new([&"canary-4711".into()]));
        trace.log(Level::Info, "late canary-4711");
        trace.request_ended(request, Duration::ZERO, Err("canary-4711 was refused"));
        let (log, requests) = trace.take();
        let all = format!("{log:?}{requests:?}");
        assert!(!all.contains("canary"), "{all}");
    }

    #[test]
    fn request_without_end_has_an_error() {
        let trace = trace(10, 1000);
        trace.request_started("GET", "https://a.example/", 0);
        let ended = trace.request_started("GET", "https://a.example/", 0);
        trace.request_ended(ended, Duration::ZERO, Ok((200, 0)));
        let requests = trace.take().1.into_iter();
        let errors: Vec<_> = requests.map(|request| request.error).collect();
        assert_eq!(errors, [Some("the request did not end".to_owned()), None]);
    }

    #[test]
    fn secrets_of_the_input_stay_redacted() {
        let trace = trace(10, 1000);
        trace.redact_input(Redactor::new([&"input-4711".into()]));
        trace.redact_with(Redactor::new([&"canary-4711".into()]));
        trace.log(Level::Info, "canary-4711 and input-4711");
        assert_eq!(trace.take().0[0].message, "[redacted] and [redacted]");
    }
}
