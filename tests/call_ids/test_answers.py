"""An answer gives each call an id of its own, whatever ids the backend gave, and tells each change; the client's next
request, with these ids, binds each result to its call.

The rule is one for every wire, whole and streamed. A client of Gemini's API may get a call without an id, as Google
sends it; where a wire has no ids, each call is one without.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.proto.demo.answer import Answer
from adapters.proto.demo.response import frames
from gateway.core.conversation import ToolCall
from gateway.core.events import Event, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.dialect import ClientRequest
from gateway.exchange import Exchange
from gateway.testing.dialect_case import HEAD
from tests.adapters.anthropic_messages.backend import wires as messages_wire
from tests.adapters.gemini.backend import wires as gemini_wire
from tests.adapters.openai_chat.backend import wires as chat_wire
from tests.adapters.openai_responses.backend import wires as responses_wire
from tests.adapters.warp.backend.script import acts, add, finished, init, mcp_call, task
from tests.call_ids.clients import CLIENTS, Client, Named, Round
from tests.call_ids.wires import ADAPTERS, MARK, WIRES, holds, sent
from tests.tiers import sample

Ids = Sequence[str | None]


def _arguments(number: int, at: int) -> dict[str, Any]:
    return {"at": f"mark{number}{at}"}


def _text(number: int, at: int) -> str:
    return json.dumps(_arguments(number, at))


def chat_stream(ids: Ids, number: int) -> bytes:
    calls = [chat_wire.chunk(chat_wire.call(at, id, "f", _text(number, at))) for at, id in enumerate(ids)]
    return chat_wire.sse(*calls, chat_wire.chunk(finish="tool_calls"))


def chat_whole(ids: Ids, number: int) -> bytes:
    calls: list[Any] = [chat_wire.entry(None, id, "f", _text(number, at)) for at, id in enumerate(ids)]
    return chat_wire.completion({"role": "assistant", "content": None, "tool_calls": calls}, "tool_calls")


def responses_stream(ids: Ids, number: int) -> bytes:
    events = [
        responses_wire.added(at, responses_wire.call("", "f", id))
        if begins
        else responses_wire.done(at, responses_wire.call(_text(number, at), "f", id))
        for at, id in enumerate(ids)
        for begins in (True, False)
    ]
    return responses_wire.streamed(*events)


def responses_whole(ids: Ids, number: int) -> bytes:
    return responses_wire.whole(*[responses_wire.call(_text(number, at), "f", id) for at, id in enumerate(ids)])


def _tool_use(id: str | None, input: dict[str, Any]) -> dict[str, Any]:
    block = {**messages_wire.call(id or "", "f"), "input": input}
    return block if id is not None else {name: value for name, value in block.items() if name != "id"}


def messages_stream(ids: Ids, number: int) -> bytes:
    blocks = [
        event
        for at, id in enumerate(ids)
        for event in messages_wire.block(at, _tool_use(id, {}), *messages_wire.arguments(_text(number, at)))
    ]
    return messages_wire.sse(messages_wire.start(), *blocks, *messages_wire.end("tool_use"))


def messages_whole(ids: Ids, number: int) -> bytes:
    blocks = [_tool_use(id, _arguments(number, at)) for at, id in enumerate(ids)]
    return messages_wire.message(*blocks, reason="tool_use")


def gemini_stream(ids: Ids, number: int) -> bytes:
    *calls, last = [gemini_wire.call("f", _arguments(number, at), id) for at, id in enumerate(ids)]
    chunks = [gemini_wire.chunk(call) for call in calls]
    return gemini_wire.sse(*chunks, gemini_wire.chunk(last, finish="STOP", **gemini_wire.usage()))


def gemini_whole(ids: Ids, number: int) -> bytes:
    parts = [gemini_wire.call("f", _arguments(number, at), id) for at, id in enumerate(ids)]
    return json.dumps(gemini_wire.chunk(*parts, finish="STOP", **gemini_wire.usage())).encode()


def warp_stream(ids: Ids, number: int) -> bytes:
    calls = [mcp_call(id or "", "f", _arguments(number, at), message_id=f"m{at}") for at, id in enumerate(ids)]
    return init() + acts(task()) + acts(add(*calls)) + finished(done={})


def grpc_stream(ids: Ids, number: int) -> bytes:
    calls = tuple([PlannedCall(id or "", "f", _arguments(number, at)) for at, id in enumerate(ids)])
    return b"".join(frames(Answer("r", "m", (), (), calls, "FINISH_TOOL_CALLS", 7)))


ANSWERS: Final[dict[str, tuple[str, Callable[[Ids, int], bytes]]]] = {
    "chat, streamed": ("chat", chat_stream),
    "chat, whole": ("chat", chat_whole),
    "Responses, streamed": ("Responses", responses_stream),
    "Responses, whole": ("Responses", responses_whole),
    "Messages, streamed": ("Messages", messages_stream),
    "Messages, whole": ("Messages", messages_whole),
    "generateContent, streamed": ("generateContent", gemini_stream),
    "generateContent, whole": ("generateContent", gemini_whole),
    "Warp, streamed": ("Warp", warp_stream),
    "gRPC, streamed": ("gRPC", grpc_stream),
}
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)
IDS: Final = st.lists(
    st.sampled_from([None, "", "a", "b", "functions.f:0", "call_1_1", "a_1_1"]), min_size=1, max_size=5
)


def answered(wire: str, wire_bytes: bytes, request: ClientRequest) -> list[Event]:
    exchange = Exchange(ADAPTERS[wire], request.conversation, UNLIMITED)
    return [*exchange.feed(wire_bytes), *exchange.close({"grpc-status": "0"})]


def read(client: Client, request: ClientRequest, events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """The calls as the client reads them."""
    dialect = client.case.dialect()
    if not request.conversation.stream:
        return client.case.read_whole(dialect.encode_answer(request, HEAD, events)).calls
    encoder = dialect.stream_encoder(request, HEAD)
    return client.case.read_stream(encoder.feed(events) + encoder.close()).calls


def told(events: Sequence[Event]) -> Counter[str]:
    rules = [event.rule for event in events if isinstance(event, Notice)]
    return Counter({rule: count for rule, count in Counter(rules).items() if rule.startswith("CALL_ID")})


def changed(ids: Ids, events: Sequence[Event], before: Sequence[Round]) -> Counter[str]:
    """The notices of ids that are missing, and of those that another call has, of the answer or of one before it."""
    starts = [event for event in events if isinstance(event, ToolCallStart)]
    made = [start.id for start in sorted(starts, key=lambda start: start.index)]
    renamed = [at for at, (given, id) in enumerate(zip(ids, made, strict=True)) if given and given != id]
    earlier = {call.id for one in before for call in one.calls}
    assert all(ids[at] in {*ids[:at], *made[:at], *earlier} for at in renamed)
    return +Counter({"CALL_ID_ADDED": len([id for id in ids if not id]), "CALL_ID_RENAMED": len(renamed)})


@sample()
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("stream", [True, False])
@given(ids=IDS, data=st.data())
@settings(max_examples=settings().max_examples // 4)
def test_each_call_of_an_answer_has_an_id_of_its_own(
    answer: str, client: str, stream: bool, ids: Ids, data: st.DataObject
) -> None:
    wire, write = ANSWERS[answer]
    asking, own = CLIENTS[client], wire == client == "generateContent"
    made: list[Round] = []
    for number in range(2):
        request = asking.request(made, stream=stream)
        events = answered(wire, write(ids, number), request)
        calls = read(asking, request, events)
        # In a stream of chat chunks an id may come behind its call, which waits for it.
        assert sorted(mark(call.arguments) for call in calls) == [f"mark{number}{at}" for at in range(len(ids))]
        known = [call.id for call in calls if call.id or not own]
        assert all(known) and len({*known}) == len(known)
        assert own or told(events) == changed(ids, events, made)
        named = [Named(call.id or None, "f", mark(call.arguments)) for call in calls]
        made.append(Round(named, named if own else data.draw(st.permutations(named))))
    for other in WIRES:
        exchange = Exchange(ADAPTERS[other], asking.request(made).conversation, UNLIMITED)
        holds(sent(other, exchange), made, WIRES[other], reused=False, own=client == other == "generateContent")


def mark(arguments: str) -> str:
    found = MARK.search(arguments)
    assert found is not None
    return found[0]
