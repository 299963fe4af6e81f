//! Messages of OTLP 1.x: the fields of its Protocol Buffers that the server fills or reads.

/// `SPAN_KIND_INTERNAL`, and those that follow it, of `SpanKind`.
pub(super) const INTERNAL_KIND: i32 = 1;
pub(super) const SERVER_KIND: i32 = 2;
pub(super) const CLIENT_KIND: i32 = 3;
/// `STATUS_CODE_ERROR` of `StatusCode`.
pub(super) const ERROR_CODE: i32 = 2;
/// `AGGREGATION_TEMPORALITY_CUMULATIVE` of `AggregationTemporality`.
pub(super) const CUMULATIVE_TEMPORALITY: i32 = 2;

/// `ExportTraceServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TracesRequest {
    #[prost(message, repeated, tag = "1")] pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")] pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")] pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")] pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")] pub spans: Vec<Span>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Span {
    #[prost(bytes = "vec", tag = "1")] pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")] pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")] pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")] pub name: String,
    #[prost(int32, tag = "6")] pub kind: i32,
    #[prost(fixed64, tag = "7")] pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")] pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")] pub attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")] pub status: Option<Status>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Status {
    #[prost(int32, tag = "3")] pub code: i32,
}

/// `ExportMetricsServiceRequest`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricsRequest {
    #[prost(message, repeated, tag = "1")] pub resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")] pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")] pub scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")] pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")] pub metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Metric {
    #[prost(string, tag = "1")] pub name: String,
    #[prost(string, tag = "2")] pub description: String,
    #[prost(string, tag = "3")] pub unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 9")] pub data: Option<Data>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "5")] Gauge(Gauge),
    #[prost(message, tag = "7")] Sum(Sum),
    #[prost(message, tag = "9")] Histogram(Histogram),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Gauge {
    #[prost(message, repeated, tag = "1")] pub data_points: Vec<NumberDataPoint>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")] pub data_points: Vec<NumberDataPoint>,
    #[prost(int32, tag = "2")] pub aggregation_temporality: i32,
    #[prost(bool, tag = "3")] pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Histogram {
    #[prost(message, repeated, tag = "1")] pub data_points: Vec<HistogramDataPoint>,
    #[prost(int32, tag = "2")] pub aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NumberDataPoint {
    #[prost(message, repeated, tag = "7")] pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")] pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")] pub time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")] pub value: Option<Number>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Number {
    #[prost(double, tag = "4")] Double(f64),
    #[prost(sfixed64, tag = "6")] Integer(i64),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HistogramDataPoint {
    #[prost(message, repeated, tag = "9")] pub attributes: Vec<KeyValue>,
    #[prost(fixed64, tag = "2")] pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")] pub time_unix_nano: u64,
    #[prost(fixed64, tag = "4")] pub count: u64,
    #[prost(double, optional, tag = "5")] pub sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")] pub bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")] pub explicit_bounds: Vec<f64>,
}

/// `ExportTraceServiceResponse` and `ExportMetricsServiceResponse`, which have the same field.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")] pub partial_success: Option<PartialSuccess>,
}

/// `ExportTracePartialSuccess` and `ExportMetricsPartialSuccess`, which have the same fields.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PartialSuccess {
    /// Number of spans or data points that the collector did not take.
    #[prost(int64, tag = "1")] pub rejected: i64,
    /// Reason, or a warning if everything was taken.
    #[prost(string, tag = "2")] pub error_message: String,
}

/// Server that spans and metrics come from.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")] pub attributes: Vec<KeyValue>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Scope {
    #[prost(string, tag = "1")] pub name: String,
    #[prost(string, tag = "2")] pub version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")] pub key: String,
    #[prost(message, optional, tag = "2")] pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 3")] pub value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")] Text(String),
    #[prost(int64, tag = "3")] Number(i64),
}

impl KeyValue {
    pub(super) fn new(key: &str, value: Value) -> Self {
        Self {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
        }
    }
}

impl Scope {
    /// Returns the name and the version of this program.
    pub(super) fn own() -> Self {
        Self {
            name: "toolhost".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}
