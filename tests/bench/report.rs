//! Results of the measurements as a table and as JSON.

use std::time::Duration;

use serde::Serialize;

use crate::round::Round;

/// A row of the table.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Line {
    pub(crate) part: &'static str,
    pub(crate) what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connections: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p90_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p999_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_us: Option<f64>,
    /// Requests that failed, which the other numbers leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failed_per_second: Option<u64>,
    /// Subject of the part, as a number in the unit that its name states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result: Option<Verdict>,
}

/// A number, with a goal if one is set.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Verdict {
    pub(crate) name: &'static str,
    pub(crate) value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<f64>,
    pub(crate) met: bool,
}

impl Verdict {
    pub(crate) fn at_least(name: &'static str, value: f64, goal: impl Into<Option<f64>>) -> Self {
        let goal = goal.into();
        Self {
            name,
            value,
            goal,
            met: goal.is_none_or(|goal| value >= goal),
        }
    }

    pub(crate) fn at_most(name: &'static str, value: f64, goal: impl Into<Option<f64>>) -> Self {
        let goal = goal.into();
        Self {
            name,
            value,
            goal,
            met: goal.is_none_or(|goal| value <= goal),
        }
    }

    fn text(&self) -> String {
        let Self { name, value, .. } = self;
        let Some(goal) = self.goal else {
            return format!("{name} {value:.2}");
        };
        let sign = if self.met == (*value >= goal) {
            "≥"
        } else {
            "≤"
        };
        let met = if self.met { "" } else { "  missed" };
        format!("{name} {value:.2} (goal {sign} {goal}){met}")
    }
}

impl Line {
    pub(crate) fn new(
        part: &'static str,
        what: impl Into<String>,
        connections: usize,
        round: &Round,
    ) -> Self {
        let micros = |time: Duration| Some(time.as_micros() as u64);
        Self {
            part,
            what: what.into(),
            connections: Some(connections),
            requests_per_second: Some(round.per_second as u64),
            p50_us: micros(round.p50),
            p90_us: micros(round.p90),
            p99_us: micros(round.p99),
            p999_us: micros(round.p999),
            cpu_us: Some((round.cpu.as_nanos() as f64 / 100.0).round() / 10.0),
            failed_per_second: (round.failed_per_second > 0.0)
                .then_some(round.failed_per_second as u64),
            result: None,
        }
    }

    pub(crate) fn with(mut self, result: Verdict) -> Self {
        self.result = Some(result);
        self
    }

    pub(crate) fn verdict(part: &'static str, what: impl Into<String>, result: Verdict) -> Self {
        Self::text(part, what).with(result)
    }

    /// Returns a row without numbers.
    pub(crate) fn text(part: &'static str, what: impl Into<String>) -> Self {
        Self {
            part,
            what: what.into(),
            ..Self::default()
        }
    }
}

pub(crate) fn heading() -> String {
    format!(
        "{:10}{:44}{:>5}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}  {}",
        "", "", "conn", "req/s", "p50 µs", "p90 µs", "p99 µs", "p99.9 µs", "CPU µs", "result"
    )
}

pub(crate) fn row(line: &Line) -> String {
    let number = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
    let mut row = format!(
        "{:10}{:44}{:>5}{:>10}{:>9}{:>9}{:>9}{:>9}{:>10}  {}",
        format!("({})", line.part),
        line.what,
        line.connections
            .map_or(String::new(), |count| count.to_string()),
        number(line.requests_per_second),
        number(line.p50_us),
        number(line.p90_us),
        number(line.p99_us),
        number(line.p999_us),
        line.cpu_us
            .map_or(String::new(), |value| format!("{value:.1}")),
        line.result.as_ref().map_or(String::new(), Verdict::text),
    );
    if let Some(failed) = line.failed_per_second {
        row += &format!("  {failed} failed/s");
    }
    row
}
