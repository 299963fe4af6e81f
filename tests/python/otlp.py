"""Reads exports with the official messages of OpenTelemetry: `otlp.py FOLDER FOLDER FILE`.

The folders contain the libraries. FILE contains the path and the body of each export as JSON, the
body in base64. Prints the spans and the metrics as JSON, each with the name of its service.
"""

import base64
import json
import sys

*folders, file = sys.argv[1:]
sys.path[:0] = folders
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1 import trace_pb2


def values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


def service(resource):
    return values(resource.attributes)["service.name"]


def refuse_unknown(message):
    # Bytes that are not a field of the official messages.
    assert message.SerializeToString(deterministic=True), "an export is empty"
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    assert known == message, "an export has an unknown field"


def read_spans(body):
    request = ExportTraceServiceRequest.FromString(body)
    refuse_unknown(request)
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield {
                    "service": service(of_resource.resource),
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "name": span.name,
                    "kind": trace_pb2.Span.SpanKind.Name(span.kind),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "attributes": values(span.attributes),
                    "failed": span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
                }


def read_metrics(body):
    request = ExportMetricsServiceRequest.FromString(body)
    refuse_unknown(request)
    for of_resource in request.resource_metrics:
        for of_scope in of_resource.scope_metrics:
            for metric in of_scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                points = []
                for point in data.data_points:
                    if metric.HasField("histogram"):
                        assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
                        assert sum(point.bucket_counts) == point.count
                        value = point.count
                    else:
                        value = getattr(point, point.WhichOneof("value"))
                    assert 0 < point.start_time_unix_nano <= point.time_unix_nano
                    points.append([values(point.attributes), value])
                yield {
                    "service": service(of_resource.resource),
                    "name": metric.name,
                    "kind": {"sum": "counter"}.get(metric.WhichOneof("data"), metric.WhichOneof("data")),
                    "help": metric.description,
                    "points": points,
                }


spans, metrics = [], []
with open(file) as opened:
    for path, body in json.load(opened):
        body = base64.b64decode(body)
        if path == "/v1/traces":
            spans.extend(read_spans(body))
        elif path == "/v1/metrics":
            metrics.extend(read_metrics(body))
        else:
            raise ValueError(f"no collector serves {path}")
print(json.dumps({"spans": spans, "metrics": metrics}))
