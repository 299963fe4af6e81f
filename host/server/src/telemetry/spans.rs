//! Conversion of spans to messages.

use std::time::Duration;

use app::core::trace::{AttributeValue, OpenSpan, Span, SpanKind, Work};

use super::otlp;

/// Makes the request that exports spans.
pub(super) fn request(resource: otlp::Resource, spans: Vec<Span>) -> otlp::TracesRequest {
    let scope_spans = otlp::ScopeSpans {
        scope: Some(otlp::Scope::own()),
        spans: spans.into_iter().map(otlp::Span::from).collect(),
    };
    otlp::TracesRequest {
        resource_spans: vec![otlp::ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![scope_spans],
        }],
    }
}

impl From<Span> for otlp::Span {
    fn from(span: Span) -> Self {
        let OpenSpan { context, parent } = span.place;
        let Work {
            name,
            kind,
            attributes,
            failed,
        } = span.work;
        let kind = match kind {
            SpanKind::Internal => otlp::INTERNAL_KIND,
            SpanKind::Server => otlp::SERVER_KIND,
            SpanKind::Client => otlp::CLIENT_KIND,
        };
        let status = otlp::Status {
            code: otlp::ERROR_CODE,
        };
        let attributes = attributes.into_iter().map(|(key, value)| {
            let value = match value {
                AttributeValue::Text(text) => otlp::Value::Text(text),
                AttributeValue::Number(number) => otlp::Value::Number(number),
            };
            otlp::KeyValue::new(key, value)
        });
        Self {
            trace_id: context.trace.0.to_vec(),
            span_id: context.span.0.to_vec(),
            parent_span_id: parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
            name,
            kind,
            start_time_unix_nano: nanos(span.start),
            end_time_unix_nano: nanos(span.end),
            attributes: attributes.collect(),
            status: failed.then_some(status),
        }
    }
}

/// Returns the nanoseconds of a time since 1970.
pub(super) fn nanos(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
