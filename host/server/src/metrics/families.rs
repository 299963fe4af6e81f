//! Metrics as data, for each format in which they leave the server.

use store::DurationCounts;

/// All metrics of one time.
#[derive(Debug, Default)]
pub(crate) struct Families(Vec<Family>);

/// Metrics of one name.
#[derive(Debug)]
pub(crate) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub help: &'static str,
    pub samples: Vec<Sample>,
}

/// Type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Labels and value of a sample.
#[derive(Debug)]
pub(crate) struct Sample {
    pub labels: Vec<(&'static str, String)>,
    pub value: SampleValue,
}

/// Value of a sample.
#[derive(Debug)]
pub(crate) enum SampleValue {
    Count(u64),
    Seconds(f64),
    Durations(DurationCounts),
}

impl From<u64> for SampleValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for SampleValue {
    fn from(seconds: f64) -> Self {
        Self::Seconds(seconds)
    }
}

impl From<DurationCounts> for SampleValue {
    fn from(durations: DurationCounts) -> Self {
        Self::Durations(durations)
    }
}

impl Families {
    /// Starts a family, whose samples follow.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        self.0.push(Family {
            name,
            kind,
            help,
            samples: Vec::new(),
        });
    }

    /// Adds a gauge without labels.
    pub(super) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        value: impl Into<SampleValue>,
    ) {
        self.family(name, Kind::Gauge, help);
        self.sample(&[], value);
    }

    /// Adds a counter for each of some results.
    pub(super) fn counts_by_result(
        &mut self,
        name: &'static str,
        help: &'static str,
        counts: &[(&str, u64)],
    ) {
        self.family(name, Kind::Counter, help);
        for (result, count) in counts {
            self.sample(&[("result", *result)], *count);
        }
    }

    /// Adds a sample to the newest family.
    pub(super) fn sample(
        &mut self,
        labels: &[(&'static str, &str)],
        value: impl Into<SampleValue>,
    ) {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        let sample = Sample {
            labels: labels.collect(),
            value: value.into(),
        };
        if let Some(family) = self.0.last_mut() {
            family.samples.push(sample);
        }
    }

    /// Returns the families in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Family> {
        self.0.iter()
    }
}
