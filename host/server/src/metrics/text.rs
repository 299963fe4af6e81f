//! The text format of Prometheus, version 0.0.4.

use std::{
    fmt::{Display, Write},
    iter,
};

use store::{BUCKETS_US, DurationCounts};

use super::families::{Families, Family, Kind, Sample, SampleValue};

/// Formats all metrics, one family after the other.
pub(super) fn format(families: &Families) -> String {
    let mut text = Text::default();
    families.iter().for_each(|family| text.family(family));
    text.0
}

#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn family(&mut self, family: &Family) {
        let Family {
            name, kind, help, ..
        } = family;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {kind}"));
        for Sample { labels, value } in &family.samples {
            match value {
                SampleValue::Count(count) => self.sample(name, labels, count),
                SampleValue::Seconds(seconds) => self.sample(name, labels, seconds),
                SampleValue::Durations(durations) => self.histogram(name, labels, durations),
            }
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, String)], value: impl Display) {
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
    fn histogram(
        &mut self,
        name: &str,
        labels: &[(&'static str, String)],
        counts: &DurationCounts,
    ) {
        let bucket = format!("{name}_bucket");
        let bounds = BUCKETS_US.iter().map(|us| seconds(*us).to_string());
        let bounds = bounds.zip(counts.up_to);
        for (bound, count) in bounds.chain(iter::once(("+Inf".to_owned(), counts.count))) {
            let labels = [labels, &[("le", bound)]].concat();
            self.sample(&bucket, &labels, count);
        }
        self.sample(&format!("{name}_sum"), labels, seconds(counts.sum_us));
        self.sample(&format!("{name}_count"), labels, counts.count);
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
        let mut families = Families::default();
        families.family("a_total", Kind::Counter, "All");
        families.sample(&[("x", "q\"\\\n"), ("y", "")], 7_u64);
        families.gauge("b", "One", 0.5);
        assert_eq!(
            format(&families),
            "# HELP a_total All\n# TYPE a_total counter\na_total{x=\"q\\\"\\\\\\n\",y=\"\"} 7\n\
             # HELP b One\n# TYPE b gauge\nb 0.5\n"
        );
    }

    #[test]
    fn histogram_is_in_seconds() {
        let durations = Durations::default();
        durations.record(Duration::from_micros(250));
        durations.record(Duration::from_secs(1_000));
        let mut families = Families::default();
        families.family("t", Kind::Histogram, "Times");
        families.sample(&[("k", "v")], durations.read());
        let text = format(&families);
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
