"""Observes one request for its capture; the writer of its client and the response of its backend keep what goes
through them."""

from collections.abc import Callable, Sequence

from starlette.types import Message

from gateway.core.errors import BackendError, BackendTruncated, GatewayError
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, Dialect, RequestHead
from gateway.exchange import Exchange
from gateway.server.http.flow_control import FlowControl
from gateway.server.http.request_body import RequestBody
from gateway.server.http.response_writer import Headers, Peer, Writer
from gateway.server.inspect.capture import Capture
from gateway.server.telemetry.request_context import FailedTry, RequestContext, RequestObserver
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings


class CaptureObserver(RequestObserver):
    """Tells a capture what happens to its request. `secrets` returns those of the gateway."""

    def __init__(self, capture: Capture, secrets: Callable[[], Sequence[str]] = tuple) -> None:
        self._capture = capture
        self._secrets = secrets

    def writer(self, context: RequestContext, dialect: Dialect, head: RequestHead, writer: Writer) -> Writer:
        self._capture.begin(dialect, head)
        return CapturedWriter(writer, self._capture)

    def body(self, context: RequestContext, body: bytes) -> None:
        # Told with those of the request, once it is prepared.
        context.notices = [*context.notices, *self._capture.read_request(body).notices]

    def route(self, context: RequestContext, entry: ModelSettings, backend: Backend) -> None:
        self._capture.choose_route(context.model, entry, backend)

    def connect(self, context: RequestContext, backend: Backend, exchange: Exchange) -> None:
        self._capture.prepare(exchange, secrets=self._secrets())

    def sent(self, context: RequestContext) -> None:
        self._capture.send()

    def answer(self, context: RequestContext, answer: BackendResponse) -> BackendResponse:
        return CapturedResponse(answer, self._capture)

    def answer_head(self, context: RequestContext, head: AnswerHead) -> AnswerHead:
        return self._capture.answer_head(head)

    def keep_alive(self, context: RequestContext, data: bytes) -> None:
        self._capture.keep_alive(data)

    def notices(self, context: RequestContext, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._capture.note(notice)

    def failed_try(self, context: RequestContext, tried: FailedTry) -> None:
        code = tried.error.code or ""
        self._capture.add_try(tried.model, tried.backend, code, tried.status, tried.at)

    def error_writer(self, context: RequestContext, error: GatewayError, writer: Writer) -> Writer:
        self._capture.fail(error)
        return writer

    def disconnect(self, context: RequestContext) -> None:
        self._capture.cut("client_gone")


class SizeObserver(CaptureObserver):
    """Tells a capture of a request that is passed on as it is: of its body, and of that of its answer, only the type
    and the size. An error of the gateway is kept like any other."""

    def __init__(self, capture: Capture) -> None:
        super().__init__(capture)
        self._failed = False

    def writer(self, context: RequestContext, dialect: Dialect, head: RequestHead, writer: Writer) -> Writer:
        self._capture.begin(dialect, head)
        return SizedWriter(writer, self._capture, lambda: self._failed)

    def error_writer(self, context: RequestContext, error: GatewayError, writer: Writer) -> Writer:
        self._failed = True
        return super().error_writer(context, error, writer)


class CapturedWriter:
    """One response, with the methods of a `Writer`."""

    __slots__ = ("_capture", "_writer")

    def __init__(self, writer: Writer, capture: Capture) -> None:
        self._writer = writer
        self._capture = capture

    @property
    def connection(self) -> Peer:
        return self._writer.connection

    @property
    def flow(self) -> FlowControl:
        return self._writer.flow

    @property
    def request_body(self) -> RequestBody:
        return self._writer.request_body

    async def ready(self) -> None:
        await self._writer.ready()

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        named = [*headers]
        self._capture.open(status, named)
        self._capture.write(body)
        self._writer.whole(status, named, body)

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        named = [*headers]
        self._capture.open(status, named)
        self._capture.write(body)
        self._writer.open(status, named, body)

    def write(self, body: bytes) -> None:
        self._capture.write(body)
        self._writer.write(body)

    def close(self, body: bytes = b"") -> None:
        self._capture.write(body)
        self._writer.close(body)

    async def send(self, message: Message) -> None:
        await self._writer.send(message)


class SizedWriter(CapturedWriter):
    """One response of which only the head and the size are kept, unless the gateway has made it: it is then sent as a
    whole, or behind a failure, which `failed` returns."""

    __slots__ = ("_failed", "_size")

    def __init__(self, writer: Writer, capture: Capture, failed: Callable[[], bool]) -> None:
        super().__init__(writer, capture)
        self._failed = failed
        self._size = 0

    def open(self, status: int, headers: Headers, body: bytes = b"") -> None:
        named = [*headers]
        self._capture.open(status, named)
        self._take(body)
        self._writer.open(status, named, body)

    def write(self, body: bytes) -> None:
        self._take(body)
        self._writer.write(body)

    def close(self, body: bytes = b"") -> None:
        self._take(body)
        self._writer.close(body)

    def _take(self, body: bytes) -> None:
        if self._failed():
            self._capture.write(body)
            return
        self._size += len(body)
        self._capture.captured.skip("client", self._size)


class CapturedResponse(BackendResponse):
    """Takes over a response whose head has arrived."""

    __slots__ = ("_capture", "_closed")

    def __init__(self, response: BackendResponse, capture: Capture) -> None:
        for name in BackendResponse.__slots__:
            setattr(self, name, getattr(response, name))
        self._capture = capture
        self._closed = False
        capture.receive_head(self.status, self.headers, self.compressed)

    async def read(self, most: int = 0) -> bytes:
        try:
            data = await super().read(most)
        except BackendError as error:
            self._capture.cut("fin" if isinstance(error, BackendTruncated) else "reset")
            raise
        self._capture.read(data)
        if self.ended and not self._closed:
            self._closed = True
            self._capture.close(self.trailers)
        return data
