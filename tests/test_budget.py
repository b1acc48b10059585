"""What a request, a chunk and a message of a long history cost, counted in calls: no clock, the same on every machine.

A figure above its budget means that somebody put work on the hot path. When that is wanted, raise the figure in
tests/budget.json; when the code got cheaper, lower it.
"""

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, cast
from unittest.mock import Mock

import msgspec
import pytest
from uvicorn.server import ServerState

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from adapters.openai_chat.client.stream import ChatStreamEncoder
from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from adapters.openai_responses.client.dialect import OpenAIResponsesDialect
from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.text.backend import TextAdapter
from adapters.text.backend.options import TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from bench import payload
from bench.websocket import WebSocketTarget
from gateway.adapter import Adapter
from gateway.core.events import Finish, ResponseStart, TextDelta, UsageReport
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.provider_state import state_label
from gateway.core.tokens import prompt_tokens
from gateway.dialect import AnswerHead, RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.history.prepare import repaired
from gateway.memory.history_digest import history_digests
from gateway.registry import load_dialect
from gateway.server.api.answer_steering import AnswerSteering
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.relay import relay
from gateway.server.api.responders import StreamResponder
from gateway.server.api.websocket_request import WebSocketRequest
from gateway.server.http.websocket_messages import MessageReader
from gateway.server.http.websocket_protocol import WebSocketProtocol
from gateway.server.inspect.known_requests import EndedRequest, EndedRequests
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.log.logger import LOGGER
from gateway.server.telemetry.access_log import AccessLog
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import CHAT, Observers, Outcome, RequestContext, RequestObserver
from gateway.server.telemetry.request_metrics import RequestMetrics
from gateway.server.upstream.backend_response import BackendResponse
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.deadlines import Deadlines, DeadlineScheduler
from gateway.server.upstream.http1.response_decoder import ResponseDecoder
from gateway.settings import BackendSettings, InspectorSettings, ServerSettings, check_options
from tests.adapters.proto.backend.mappings import PARTS
from tests.adapters.proto.backend.services import answer, envelope
from tests.served_calls import served_calls

BUDGET = msgspec.json.decode((Path(__file__).parent / "budget.json").read_bytes(), type=dict[str, float])
POLICY = Policy()
LABEL = state_label("openai_chat", "host", "KEY")
NATIVE = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
MESSAGES = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
GEMINI = GeminiAdapter(GeminiOptions(), 1 << 20)
RESPONSES = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
TEXT = TextAdapter(TextOptions(wire="llama_cpp"), 1 << 20)
AGENT = WarpAdapter(WarpOptions(rollback="stream"), 1 << 20)
MAPPED = ProtoAdapter(check_options({"preset": "warp"}, ProtoOptions, "options"), 1 << 20)
PROTO = ProtoAdapter(check_options(PARTS, ProtoOptions, "options"), 1 << 20)
SMALL = payload.request("m", stream=True)
# So many events are read together that the whole response is.
WHOLE = 1000
TOOLED = payload.request("m", stream=True, tools=("write_file",))


def calls(work: Callable[[], object]) -> int:
    """How many calls, of Python's and of C's functions, the work makes the second time."""
    count = 0

    def seen(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    work()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def chunk_cost(
    adapter: Adapter, wire: Callable[[int], Sequence[bytes]], per_read: int = 1, body: bytes = SMALL, chunks: int = 80
) -> float:
    """Calls for one more chunk of a stream, read with so many others, behind so many."""

    def cost(chunks: int) -> int:
        events = wire(chunks)
        reads = [b"".join(events[at : at + per_read]) for at in range(0, len(events), per_read)]

        def stream() -> None:
            exchange = Exchange(adapter, decode(body), POLICY, label=LABEL)
            encoder = ChatStreamEncoder("id", 1, "m")
            for read in reads:
                encoder.feed(exchange.feed(read))
            assert exchange.finished

        return calls(stream)

    return (cost(2 * chunks) - cost(chunks)) / chunks


def first_chunk_cost() -> int:
    """Calls between the first bytes of a streamed response and its first events."""
    first = b"".join(payload.chunks(1)[:2])

    def begun() -> Exchange:
        return Exchange(NATIVE, decode(SMALL), POLICY, label=LABEL)

    return calls(lambda: begun().feed(first)) - calls(begun)


def short_stream_cost() -> int:
    """Calls for a streamed response of eight pieces, each in a read of its own, without those of its request."""
    reads = payload.chunks(8)

    def begun() -> Exchange:
        return Exchange(NATIVE, decode(SMALL), POLICY, label=LABEL)

    def stream() -> None:
        exchange, encoder = begun(), ChatStreamEncoder("id", 1, "m")
        for read in reads:
            encoder.feed(exchange.feed(read))
        encoder.close()

    return calls(stream) - calls(begun)


def tool_chunks(count: int, **fields: str) -> list[bytes]:
    """A call whose arguments come in pieces, beside these fields of the response."""

    def chunk(piece: str, **more: str) -> bytes:
        function = {"arguments": piece, **more}
        call = {"index": 0, "function": function, **({"id": "call_1", "type": "function"} if more else {})}
        choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}
        return b"data: " + msgspec.json.encode({"id": "c", **fields, "choices": [choice]}) + b"\n\n"

    begun = chunk('{"text":"', name="write_file")
    return [begun, *[chunk("a piece ")] * count, chunk('"}'), *payload.chunks(0)[1:]]


def proto_chunks(count: int) -> list[bytes]:
    """Pieces of text on a wire that settings.json declares: in parts of a repeated field, in envelopes."""
    piece = answer("parts", {"parts": [{"text": "a piece "}]})
    end = answer("parts", {"counts": {"input": 1, "output": 1}, "ended": {"fully": {}}})
    return [*[envelope(piece)] * count, envelope(end) + envelope(b"{}", 2)]


def counted_chunks(count: int) -> list[bytes]:
    """The same pieces, each with the token counts so far."""
    counts = [{"input": 19, "output": tokens} for tokens in range(1, count + 1)]
    pieces = [answer("parts", {"parts": [{"text": "a piece "}], "counts": one}) for one in counts]
    return [*map(envelope, pieces), *proto_chunks(0)]


def request_cost() -> int:
    """Calls for a small request and its whole answer."""
    dialect, head, answered = load_dialect(), RequestHead("/", b"", {}), AnswerHead("id", 1, "m", lambda: 1)

    def answer() -> None:
        request = dialect.decode(read_document(payload.request("m", stream=False)), head)
        exchange = Exchange(NATIVE, request.conversation, POLICY, label=LABEL)
        events = [*exchange.feed(payload.completion()), *exchange.close()]
        dialect.encode_answer(request, answered, events)

    return calls(answer) - calls(lambda: (payload.request("m", stream=False), payload.completion()))


def history_cost(messages: int) -> float:
    """Calls for each message of a history that exceeds the limits."""
    body = payload.request("m", stream=False, messages=messages)
    return calls(lambda: Exchange(NATIVE, decode(body), POLICY, label=LABEL)) / messages


def agent_body(rounds: int) -> bytes:
    """Returns a request of so many calls with their results, as agents send it."""
    messages: list[object] = [{"role": "user", "content": "go"}]
    for at in range(rounds):
        function = {"name": "write_file", "arguments": '{"path": "a"}'}
        call = {"id": f"call_{at}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{at}", "content": "a line of text " * 20})
    return msgspec.json.encode({**msgspec.json.decode(TOOLED), "messages": messages})


def agent_cost(adapter: Adapter) -> float:
    """Calls for one more message of an agent's history without limits, from its JSON to the backend's request."""
    unlimited = Policy(max_tool_results=None, max_history_messages=None)

    def cost(rounds: int) -> int:
        body = agent_body(rounds)
        return calls(lambda: Exchange(adapter, decode(body), unlimited, label=LABEL))

    return (cost(200) - cost(100)) / 200


def sample_cost(messages: int) -> float:
    """What the estimate of a prompt's tokens reads of a history whose backend may count none, per message."""
    conversation = decode(payload.request("m", stream=False, messages=messages))
    return calls(lambda: prompt_tokens(conversation)) / messages


def identity_cost(messages: int) -> float:
    """Calls for each message of a history that is looked up because a summary may stand for its beginning."""
    conversation = decode(payload.request("m", stream=False, messages=messages))
    return calls(lambda: history_digests(repaired(conversation, POLICY).turns, b"secret", "-")) / messages


def telemetry_cost(*others: RequestObserver) -> int:
    """Counts the calls that record one streamed request: its metrics, an access line below the log level, an event bus
    without watchers, and other observers."""
    observers = Observers(RequestMetrics(Metrics()), AccessLog(), EventBus(), *others)
    events = (ResponseStart(), TextDelta("x"), UsageReport(prompt_tokens=1, completion_tokens=1), Finish("stop"))
    backend = Backend("b", BackendSettings("tests.server.plain:PlainAdapter", "http://x"), 1 << 20)
    exchange = Exchange(NATIVE, decode(SMALL), POLICY)

    def serve() -> None:
        context = RequestContext("POST", "/", CHAT, {}, observers)
        context.note(())
        context.open_stream()
        context.connect(backend, exchange)
        context.try_backend()
        context.begin_response()
        context.record(events)
        context.answer_headers()
        context.conclude(200)

    with pytest.MonkeyPatch.context() as patch:
        # What a line costs depends on the handlers that other tests have left.
        patch.setattr(LOGGER, "disabled", True)
        return calls(serve)


def notice_cost() -> float:
    """Counts the calls that record one more debug notice of a request, below the log level."""
    observers = Observers(RequestMetrics(Metrics()), AccessLog(), EventBus(), RecentRequests(InspectorSettings()))
    notice = Notice("classify", "seen", "TOOL_RESULT_EXTRACTED", "a result", level="debug")

    def cost(count: int) -> int:
        context = RequestContext("POST", "/", CHAT, {}, observers)
        return calls(lambda: context.note([notice] * count))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LOGGER, "disabled", True)
        return (cost(200) - cost(100)) / 100


class _Peers:
    """The connections of a streamed response, without sockets: each wait for the backend brings the next bytes, and
    what the client gets is dropped."""

    paused = False
    connection = request_body = None

    def __init__(self, reads: Iterable[bytes]) -> None:
        self.response = ResponseDecoder()
        self.response.begin(1 << 30)
        self.response.feed(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        self.flow = Mock(write_paused=False)
        self._reads = iter(reads)

    def arrival(self) -> asyncio.Future[None]:
        self.response.feed(next(self._reads))
        future = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    async def ready(self) -> None:
        pass

    def open(self, status: int, headers: object, body: bytes = b"") -> None:
        pass

    def write(self, body: bytes) -> None:
        pass

    def close(self, body: bytes = b"") -> None:
        pass


def relayed_cost(chunks: int = 80) -> float:
    """Counts the calls for one more chunk between the read from the backend and the write to the client."""
    backend = Backend("b", BackendSettings("tests.server.plain:PlainAdapter", "http://x"), 1 << 20)
    observers, dialect = Observers(RequestMetrics(Metrics()), AccessLog(), EventBus()), load_dialect()
    request = dialect.decode(read_document(SMALL), RequestHead("/", b"", {}))

    async def relayed(reads: Sequence[bytes]) -> None:
        peers = cast(Any, _Peers(reads))
        deadlines = Deadlines(DeadlineScheduler(), None)
        context = RequestContext("POST", "/", CHAT, {}, observers)
        exchange = Exchange(NATIVE, request.conversation, POLICY, label=LABEL)
        response = ClientResponse(peers, dialect, "req_1")
        with StreamResponder(context, response, deadlines, dialect, request, ServerSettings()) as writer:
            await relay(context, backend, exchange, BackendResponse(peers, lambda: None), deadlines, writer)
        assert response.ended

    def cost(chunks: int) -> int:
        reads = payload.chunks(chunks)
        # A loop does a little more now and then.
        return min(calls(lambda: asyncio.run(relayed(reads))) for _ in range(3))

    return (cost(2 * chunks) - cost(chunks)) / chunks


class _Socket(asyncio.Transport):
    """The connection of a WebSocket whose client gets nothing."""

    def write(self, data: object) -> None:
        pass


def socket_chunk_cost(chunks: int = 80) -> float:
    """Counts the calls for one more chunk of an answer that a WebSocket gets, and that nobody steers."""
    backend = Backend("b", BackendSettings("tests.server.plain:PlainAdapter", "http://x"), 1 << 20)
    observers, dialect = Observers(RequestMetrics(Metrics()), AccessLog(), EventBus()), OpenAIResponsesDialect()
    body = payload.responses_request("m", stream=True)
    request = dialect.decode(read_document(body), RequestHead("/", b"", {}))

    async def relayed(reads: Sequence[bytes]) -> None:
        peers = cast(Any, _Peers(reads))
        socket = WebSocketProtocol(cast(Any, None), ServerState(), _Socket(), {}, 1 << 20, 60)
        steering, connected = AnswerSteering(dialect.steering, None, body), Mock(begin=lambda *_: None)
        asked = WebSocketRequest(dialect, socket, connected, steering, "k", cast(Any, None), None)
        deadlines = Deadlines(DeadlineScheduler(), None)
        context = RequestContext("POST", "/", CHAT, {}, observers)
        exchange = Exchange(NATIVE, request.conversation, POLICY, label=LABEL)
        response, answer = ClientResponse(asked, dialect, "req_1"), BackendResponse(peers, lambda: None)
        with StreamResponder(context, response, deadlines, dialect, request, ServerSettings()) as writer:
            steering.watch(answer)
            steering.follow(context)
            await relay(context, backend, exchange, answer, deadlines, writer)
        assert response.ended and steering.last

    def cost(chunks: int) -> int:
        reads = payload.chunks(chunks)
        # A loop does a little more now and then.
        return min(calls(lambda: asyncio.run(relayed(reads))) for _ in range(3))

    return (cost(2 * chunks) - cost(chunks)) / chunks


def message_cost() -> int:
    """Counts the calls that read the small request of a WebSocket's client."""
    reader, frame = MessageReader(1 << 20), WebSocketTarget("").encode(payload.responses_request("m", stream=True))
    return calls(lambda: [*reader.feed(frame)])


def listed_cost() -> int:
    """Counts the calls by which the inspector lists a streamed request while nobody looks: one for what it is told of
    its beginning and of its end each, and those for what stays of it."""
    return telemetry_cost(RecentRequests(InspectorSettings())) - telemetry_cost()


def packed_cost() -> float:
    """Counts the calls that keep what stays of an ended request, its part of packing many among them."""
    outcome = Outcome("POST", "/", "k", "m", "b", 200, "-", 1.0, "")
    ended = [EndedRequest(float(time), "req", "d", 1.0, True, False, (), None, outcome) for time in range(640)]
    requests = EndedRequests(1000)

    def add() -> None:
        for one in ended:
            requests.add(one)

    return calls(add) / len(ended)


MEASURES: dict[str, Callable[[], float]] = {
    "request": request_cost,
    "request that is served": lambda: served_calls(stream=False),
    "stream of eight that is served": lambda: served_calls(stream=True),
    "first chunk": first_chunk_cost,
    "short stream": short_stream_cost,
    "chunk": lambda: chunk_cost(NATIVE, payload.chunks),
    "chunk that is relayed": relayed_cost,
    "chunk over a WebSocket that is relayed": socket_chunk_cost,
    "message of a WebSocket": message_cost,
    "chunk of eight": lambda: chunk_cost(NATIVE, payload.chunks, 8),
    "chunk of a read with the end": lambda: chunk_cost(NATIVE, payload.chunks, WHOLE),
    "argument chunk": lambda: chunk_cost(NATIVE, tool_chunks),
    "argument chunk with fields": lambda: chunk_cost(NATIVE, partial(tool_chunks, system_fingerprint="fp_1")),
    "argument chunk of a read with the end": lambda: chunk_cost(NATIVE, tool_chunks, WHOLE),
    "messages chunk": lambda: chunk_cost(MESSAGES, payload.message_events),
    "gemini chunk": lambda: chunk_cost(GEMINI, payload.gemini_chunks),
    "gemini chunk of eight": lambda: chunk_cost(GEMINI, payload.gemini_chunks, 8),
    "responses chunk": lambda: chunk_cost(RESPONSES, payload.response_events),
    "responses chunk of eight": lambda: chunk_cost(RESPONSES, payload.response_events, 8),
    "protobuf chunk": lambda: chunk_cost(AGENT, payload.frames),
    "protobuf chunk by a mapping": lambda: chunk_cost(MAPPED, payload.frames),
    "protobuf chunk by a mapping of eight": lambda: chunk_cost(MAPPED, payload.frames, 8),
    "declared protobuf chunk": lambda: chunk_cost(PROTO, proto_chunks),
    "declared protobuf chunk of eight": lambda: chunk_cost(PROTO, proto_chunks, 8),
    "declared protobuf chunk with counts": lambda: chunk_cost(PROTO, counted_chunks),
    "text chunk": lambda: chunk_cost(TEXT, payload.words),
    "text chunk of eight": lambda: chunk_cost(TEXT, payload.words, 8),
    "text chunk beside tools": lambda: chunk_cost(TEXT, payload.words, 1, TOOLED),
    "text argument chunk": lambda: chunk_cost(TEXT, payload.written_call, 1, TOOLED),
    "message": lambda: history_cost(400),
    "message of an agent": lambda: agent_cost(NATIVE),
    "message of an agent, messages backend": lambda: agent_cost(MESSAGES),
    "message of an agent, gemini backend": lambda: agent_cost(GEMINI),
    "message of an agent, responses backend": lambda: agent_cost(RESPONSES),
    "message of an agent, text backend": lambda: agent_cost(TEXT),
    "message of an agent, protobuf backend": lambda: agent_cost(AGENT),
    "message whose tokens are sampled": lambda: sample_cost(400),
    "message that is looked up": lambda: identity_cost(400),
    "telemetry of a request": telemetry_cost,
    "notice": notice_cost,
    "request that is listed": listed_cost,
    "request that has ended": packed_cost,
}


@pytest.mark.parametrize("name", MEASURES)
def test_the_hot_path_stays_within_its_budget(name: str) -> None:
    spent = MEASURES[name]()
    assert 0 < spent <= BUDGET[name], f"{name}: {spent:.1f} calls"


def test_the_budgets_are_close_to_what_is_spent() -> None:
    # A budget of twice the cost would not notice that the cost doubled.
    loose = {name: spent for name, measure in MEASURES.items() if (spent := measure()) < 0.6 * BUDGET[name]}
    assert not loose
    assert BUDGET.keys() == MEASURES.keys()


@pytest.mark.parametrize("wire", [payload.words, payload.written_call])
def test_a_piece_of_text_costs_the_same_in_an_answer_of_any_length(wire: Callable[[int], Sequence[bytes]]) -> None:
    costs = [chunk_cost(TEXT, wire, 1, TOOLED, chunks) for chunks in (80, 800)]
    assert costs[1] <= 1.1 * costs[0]


def test_a_message_costs_the_same_in_a_history_of_any_length() -> None:
    assert history_cost(4000) <= 1.1 * history_cost(400)


def test_counting_sees_what_is_done() -> None:
    assert calls(lambda: [abs(number) for number in range(100)]) >= 100
