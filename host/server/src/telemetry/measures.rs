//! Conversion of metrics to messages. Names, labels and values are those of `/metrics`.

use store::{BUCKETS_US, DurationCounts};

use super::otlp::{
    self, Data, Gauge, Histogram, HistogramDataPoint, KeyValue, Metric, Number, NumberDataPoint,
    Sum, Value,
};
use crate::metrics::{Families, Family, Kind, Sample, SampleValue};

/// Times of a measurement, in nanoseconds since 1970.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Start of the counters.
    pub start: u64,
    /// Time of the measurement.
    pub now: u64,
}

/// Makes the request that exports metrics.
pub(super) fn request(
    resource: otlp::Resource,
    families: &Families,
    times: Times,
) -> otlp::MetricsRequest {
    let scope_metrics = otlp::ScopeMetrics {
        scope: Some(otlp::Scope::own()),
        metrics: families.iter().map(|own| metric(own, times)).collect(),
    };
    otlp::MetricsRequest {
        resource_metrics: vec![otlp::ResourceMetrics {
            resource: Some(resource),
            scope_metrics: vec![scope_metrics],
        }],
    }
}

fn metric(family: &Family, times: Times) -> Metric {
    let samples = family.samples.iter();
    let aggregation_temporality = otlp::CUMULATIVE_TEMPORALITY;
    let numbers = || {
        samples
            .clone()
            .filter_map(|own| number(own, times))
            .collect()
    };
    let data = match family.kind {
        Kind::Gauge => Data::Gauge(Gauge {
            data_points: numbers(),
        }),
        Kind::Counter => Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality,
            is_monotonic: true,
        }),
        Kind::Histogram => Data::Histogram(Histogram {
            data_points: samples.filter_map(|own| histogram(own, times)).collect(),
            aggregation_temporality,
        }),
    };
    let unit = match family.name {
        name if name.ends_with("_seconds") => "s",
        name if name.ends_with("_bytes") => "By",
        _ => "1",
    };
    Metric {
        name: family.name.to_owned(),
        description: family.help.to_owned(),
        unit: unit.to_owned(),
        data: Some(data),
    }
}

fn number(sample: &Sample, times: Times) -> Option<NumberDataPoint> {
    let value = match &sample.value {
        SampleValue::Count(count) => Number::Integer(i64::try_from(*count).unwrap_or(i64::MAX)),
        SampleValue::Seconds(seconds) => Number::Double(*seconds),
        SampleValue::Durations(_) => return None,
    };
    Some(NumberDataPoint {
        attributes: attributes(sample),
        start_time_unix_nano: times.start,
        time_unix_nano: times.now,
        value: Some(value),
    })
}

fn histogram(sample: &Sample, times: Times) -> Option<HistogramDataPoint> {
    let SampleValue::Durations(durations) = &sample.value else {
        return None;
    };
    Some(HistogramDataPoint {
        attributes: attributes(sample),
        start_time_unix_nano: times.start,
        time_unix_nano: times.now,
        count: durations.count,
        sum: Some(durations.sum_us as f64 / 1e6),
        bucket_counts: bucket_counts(durations),
        explicit_bounds: BUCKETS_US.iter().map(|us| *us as f64 / 1e6).collect(),
    })
}

/// Returns the number of durations in each bucket, of which the last is unbounded.
fn bucket_counts(durations: &DurationCounts) -> Vec<u64> {
    let up_to = durations.up_to.into_iter().chain([durations.count]);
    let mut below = 0;
    let counts = up_to.map(|up_to| {
        let count = up_to - below;
        below = up_to;
        count
    });
    counts.collect()
}

fn attributes(sample: &Sample) -> Vec<KeyValue> {
    let labels = sample.labels.iter();
    labels
        .map(|(name, value)| KeyValue::new(name, Value::Text(value.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use store::Durations;

    use super::*;

    #[test]
    fn buckets_do_not_overlap() {
        let durations = Durations::default();
        for us in [50, 200, 250, 200_000_000] {
            durations.record(Duration::from_micros(us));
        }
        let counts = bucket_counts(&durations.read());
        assert_eq!(counts.len(), BUCKETS_US.len() + 1);
        assert_eq!((counts[0], counts[1], counts[BUCKETS_US.len()]), (1, 2, 1));
        assert_eq!(counts.iter().sum::<u64>(), 4);
    }
}
