"""Runs a trace collector on a real socket, and returns the received spans by request."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from gateway.core.conversation import Json
from gateway.server.telemetry.tracing import export
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import Connection, FaultyBackend, Script, answer, faulty_backend
from tests.server.conftest import settings_for

SERVER: Final = Span.SPAN_KIND_SERVER
CLIENT: Final = Span.SPAN_KIND_CLIENT


async def taking(connection: Connection) -> None:
    """Take everything."""
    await connection.send(answer("200 OK", b"", b"content-type: application/x-protobuf"))


class Collector:
    """`url` is its address for spans."""

    def __init__(self, backend: FaultyBackend) -> None:
        self.backend = backend
        self.url = f"{backend.base_url}/v1/traces"

    @property
    def heard(self) -> bytes:
        """Every byte it was sent."""
        return b"".join(head + body for head, body in self.backend.seen)

    def resources(self) -> Iterator[ResourceSpans]:
        """What came, by process."""
        for _, body in self.backend.seen:
            yield from ExportTraceServiceRequest.FromString(body).resource_spans

    def spans(self) -> list[Span]:
        """All spans."""
        return [span for one in self.resources() for scope in one.scope_spans for span in scope.spans]

    def of(self, request_id: str) -> tuple[Span, Span | None]:
        """The span of a request, and that of the backend's part in it."""
        (server,) = (span for span in self.spans() if told(span).get("dragoman.request_id") == request_id)
        below = [span for span in self.spans() if span.parent_span_id == server.span_id]
        assert len(below) <= 1
        return server, below[0] if below else None


def told(span: Span) -> dict[str, object]:
    """The attributes."""
    return read_attributes(span.attributes)


def read_attributes(attributes: Iterable[KeyValue]) -> dict[str, object]:
    """What they say, as plain values."""
    return {pair.key: _value(pair.value) for pair in attributes}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(part) for part in value.array_value.values]
    return None if kind is None else getattr(value, kind)


@asynccontextmanager
async def collector_running(script: Script = taking) -> AsyncIterator[Collector]:
    """A collector that answers like this."""
    async with faulty_backend(script) as backend:
        yield Collector(backend)


@asynccontextmanager
async def traced_gateway(
    script: Script, collector: Collector, tracing: Mapping[str, Json] | None = None, close_s: float = 30, **more: Json
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """A gateway whose spans are all at the collector when the block has ended.

    `close_s`: the time that their sending may take at the end; by default, more than a busy machine needs."""
    async with AsyncExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(export, "CLOSE_S", close_s)
        backend = await stack.enter_async_context(faulty_backend(script))
        settings = {**settings_for(backend.base_url), "tracing": {"endpoint": collector.url, **(tracing or {})}, **more}
        yield await stack.enter_async_context(running_gateway(settings)), backend
