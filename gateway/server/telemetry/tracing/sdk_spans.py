"""Turns recorded spans into those of the OpenTelemetry SDK, without secrets, in the exporter's thread.

Imported only where traces are enabled: it needs the optional packages.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from gateway.server.telemetry.tracing.span import Attribute, Attributes, Span

SCOPE: Final = "dragoman"
# The longest text: names of hosts and containers fit.
SHOWN: Final = 255
_KINDS: Final = {"server": SpanKind.SERVER, "client": SpanKind.CLIENT}
_SAMPLED: Final = TraceFlags(TraceFlags.SAMPLED)
_BOUND: Final = 2**63

Redact: TypeAlias = Callable[[str], str]


def sdk_spans(spans: Iterable[Span], resource: Mapping[str, str], redact: Redact) -> list[ReadableSpan]:
    """Returns the spans for an exporter of the SDK. `redact` removes the secrets from every text."""
    about = Resource(_clean(resource, redact))
    scope = InstrumentationScope(SCOPE, resource.get("service.version", ""))
    return [_sdk_span(span, about, scope, redact) for span in spans]


def _sdk_span(span: Span, resource: Resource, scope: InstrumentationScope, redact: Redact) -> ReadableSpan:
    return ReadableSpan(
        _text(span.name, redact),
        SpanContext(span.trace_id, span.span_id, is_remote=False, trace_flags=_SAMPLED),
        SpanContext(span.trace_id, span.parent_id, is_remote=span.remote) if span.parent_id else None,
        resource,
        _clean(span.attributes, redact),
        [Event(event.name, _clean(event.attributes, redact), event.at) for event in span.events],
        kind=_KINDS[span.kind],
        status=Status(StatusCode.ERROR if span.failed else StatusCode.UNSET),
        start_time=span.begun,
        end_time=span.ended,
        instrumentation_scope=scope,
    )


def _clean(attributes: Attributes, redact: Redact) -> dict[str, Attribute]:
    return {name: _value(value, redact) for name, value in attributes.items()}


def _value(value: Attribute, redact: Redact) -> Attribute:
    match value:
        case bool() | float():
            return value
        case int():
            return max(-_BOUND, min(value, _BOUND - 1))
        case str():
            return _text(value, redact)
        case tuple():
            return tuple(_text(part, redact) for part in value)


def _text(text: str, redact: Redact) -> str:
    """Returns the text without secrets, shortened, and without half a surrogate pair, which no protobuf text may
    contain."""
    return redact(text)[:SHOWN].encode(errors="replace").decode()
