"""Encodes spans as one export request of the OpenTelemetry protocol (OTLP), in protobuf.

Imported only where traces are enabled: it needs the optional package.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from gateway.server.telemetry.tracing.span import Attribute, Attributes, Span, SpanEvent

SCOPE: Final = "dragoman"
# The longest text: names of hosts and containers fit.
SHOWN: Final = 255
KINDS: Final = {"server": trace_pb2.Span.SPAN_KIND_SERVER, "client": trace_pb2.Span.SPAN_KIND_CLIENT}
_HAS_REMOTE: Final = 0x100
_IS_REMOTE: Final = 0x200

Redact: TypeAlias = Callable[[str], str]


def encode_spans(spans: Iterable[Span], resource: Mapping[str, str], redact: Redact) -> bytes:
    """Returns the request's body. `redact` removes the secrets from every text. Raises ValueError or TypeError for
    values that cannot be encoded."""
    scope = InstrumentationScope(name=SCOPE, version=resource.get("service.version", ""))
    scoped = trace_pb2.ScopeSpans(scope=scope, spans=[_span(span, redact) for span in spans])
    about = Resource(attributes=_attributes(resource, redact))
    return ExportTraceServiceRequest(
        resource_spans=[trace_pb2.ResourceSpans(resource=about, scope_spans=[scoped])]
    ).SerializeToString()


def decode_rejected(body: bytes) -> int:
    """Returns the number of spans that the collector rejected, as its response states."""
    try:
        return max(0, ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans)
    except DecodeError:
        return 0


def _span(span: Span, redact: Redact) -> trace_pb2.Span:
    failed = trace_pb2.Status(code=trace_pb2.Status.STATUS_CODE_ERROR)
    return trace_pb2.Span(
        trace_id=span.trace_id.to_bytes(16, "big"),
        span_id=span.span_id.to_bytes(8, "big"),
        parent_span_id=span.parent_id.to_bytes(8, "big") if span.parent_id else b"",
        flags=_HAS_REMOTE | (_IS_REMOTE if span.remote else 0) | 1,
        name=_text(span.name, redact),
        kind=KINDS[span.kind],
        start_time_unix_nano=span.begun,
        end_time_unix_nano=span.ended,
        attributes=_attributes(span.attributes, redact),
        events=[_event(event, redact) for event in span.events],
        status=failed if span.failed else None,
    )


def _event(event: SpanEvent, redact: Redact) -> trace_pb2.Span.Event:
    attributes = _attributes(event.attributes, redact)
    return trace_pb2.Span.Event(time_unix_nano=event.at, name=event.name, attributes=attributes)


def _attributes(attributes: Attributes, redact: Redact) -> Iterator[KeyValue]:
    return (KeyValue(key=key, value=_value(value, redact)) for key, value in attributes.items())


def _value(value: Attribute, redact: Redact) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=max(-(2**63), min(value, 2**63 - 1)))
        case float():
            return AnyValue(double_value=value)
        case str():
            return AnyValue(string_value=_text(value, redact))
        case tuple():
            return AnyValue(array_value=ArrayValue(values=[_value(part, redact) for part in value]))


def _text(text: str, redact: Redact) -> str:
    """Returns the text without secrets, shortened, and without half a surrogate pair, which no protobuf text may
    contain."""
    return redact(text)[:SHOWN].encode(errors="replace").decode()
