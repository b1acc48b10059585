"""Each tool result arrives at the backend with the id of its own call, whatever ids the client has sent.

A backend binds by id alone. The client binds by id, and where the id is missing by the order of the calls, as
`gateway.history.pairing` says. Each call and its result hold the same mark, by which the test knows them again. What an
API demands of an id: Anthropic, errors of `tool_use.id` ("String should match pattern '^[a-zA-Z0-9_-]+$'") and of
`messages` ("`tool_use` ids must be unique"); for the others the profile.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapter import Adapter
from gateway.core.events import ToolCallStart
from gateway.core.policy import Policy
from gateway.core.profiles import PROFILES, Alphabet, Profile
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from gateway.testing.dialect_case import GREETING, DialectCase
from tests.dialects.cases import CASES
from tests.tiers import sample

MARK: Final = re.compile(r"mark\d+")
# Ids that clients have sent: of other gateways, of Kimi, of Codex, longer than any limit, and of nothing but blanks.
ODD: Final = ("a|b", "a_b", "functions.f:4", "call|fc_1", "call_1", "x" * 300, "日本", " k ", "call_1_2", "toolu_01")
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)


class Named(msgspec.Struct, frozen=True):
    """A call or a result as the client sends it: no id is a missing one."""

    id: str | None
    function: str
    mark: str


class Round(msgspec.Struct, frozen=True):
    """A turn with calls, and their results."""

    calls: Sequence[Named]
    results: Sequence[Named]


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Round, ...]:
    """Generate rounds in which the id of a call may be odd, missing, or that of another call. The result of a call with
    an id may have none, and that of a call without one an id that no call has. Results whose ids do not tell their call
    stand in the order of the calls."""
    made: list[Round] = []
    for number in range(draw(st.integers(1, 3))):
        calls = [
            Named(draw(st.none() | st.sampled_from(ODD)), draw(st.sampled_from("fg")), f"mark{number}{call}")
            for call in range(draw(st.integers(1, 3)))
        ]
        own = [call.id for call in calls if call.id]
        if draw(st.booleans()):
            results = [msgspec.structs.replace(call, id=call.id or f"lost-{call.mark}") for call in calls]
        elif len({*own}) < len(own):
            results = calls
        else:
            results = [msgspec.structs.replace(call, id=draw(st.sampled_from([call.id, None]))) for call in calls]
        if len({*own}) == len(own) and draw(st.booleans()):
            named = draw(st.permutations([result for result in results if result.id in own]))
            results = [*named, *[result for result in results if result.id not in own]]
        made.append(Round(calls, results))
    return tuple(made)


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _input(mark: str) -> dict[str, str]:
    return {"at": mark}


def chat(one: Round) -> Iterator[Any]:
    calls = [
        _some(id=call.id, type="function", function={"name": call.function, "arguments": json.dumps(_input(call.mark))})
        for call in one.calls
    ]
    yield {"role": "assistant", "content": None, "tool_calls": calls}
    for result in one.results:
        yield _some(role="tool", tool_call_id=result.id, content=result.mark)


def ollama(one: Round) -> Iterator[Any]:
    calls = [_some(id=call.id, function={"name": call.function, "arguments": _input(call.mark)}) for call in one.calls]
    yield {"role": "assistant", "content": "", "tool_calls": calls}
    for result in one.results:
        yield _some(role="tool", tool_call_id=result.id, tool_name=result.function, content=result.mark)


def responses(one: Round) -> Iterator[Any]:
    for call in one.calls:
        arguments = json.dumps(_input(call.mark))
        yield _some(type="function_call", call_id=call.id, name=call.function, arguments=arguments)
    for result in one.results:
        yield _some(type="function_call_output", call_id=result.id, output=result.mark)


def anthropic(one: Round) -> Iterator[Any]:
    calls = [_some(type="tool_use", id=call.id, name=call.function, input=_input(call.mark)) for call in one.calls]
    yield {"role": "assistant", "content": calls}
    results = [_some(type="tool_result", tool_use_id=result.id, content=result.mark) for result in one.results]
    yield {"role": "user", "content": results}


def gemini(one: Round) -> Iterator[Any]:
    calls = [_some(id=call.id, name=call.function, args=_input(call.mark)) for call in one.calls]
    yield {"role": "model", "parts": [{"functionCall": call} for call in calls]}
    results = [_some(id=result.id, name=result.function, response={"output": result.mark}) for result in one.results]
    yield {"role": "user", "parts": [{"functionResponse": result} for result in results]}


class Client(msgspec.Struct, frozen=True):
    """How a client of a dialect sends rounds of calls."""

    case: DialectCase
    messages: Callable[[Round], Iterator[Any]]
    user: Callable[[str], Any] = lambda text: {"role": "user", "content": text}

    def body(self, made: Sequence[Round]) -> bytes:
        history = self.case.dialect().paths.param("messages")
        messages = [self.user("Begin."), *[message for one in made for message in self.messages(one)]]
        fields = read_document(self.case.write(GREETING)).fields
        return json.dumps({**fields, history: messages}).encode()


BY_NAME: Final = {str(case): case for case in CASES}
CLIENTS: Final = {
    "chat": Client(BY_NAME["openai_chat"], chat),
    "Responses": Client(BY_NAME["openai_responses"], responses),
    "Messages": Client(BY_NAME["anthropic_messages"], anthropic),
    "generateContent": Client(BY_NAME["gemini"], gemini, lambda text: {"role": "user", "parts": [{"text": text}]}),
    "Ollama": Client(BY_NAME["ollama"], ollama),
}


class Piece(msgspec.Struct, frozen=True):
    """A call or a result as the backend receives it. On a wire without ids `id` is empty."""

    kind: Literal["call", "result"]
    id: str
    mark: str


class Wire(msgspec.Struct, frozen=True):
    """An adapter with its options. `ids` are those that its API takes; None: its messages have none, and the results
    of a round stand in the order of its calls."""

    adapter: str
    options: Mapping[str, Any] = {}
    profiles: Sequence[str] = ("none",)
    ids: str | None = ".+"

    def load(self) -> Adapter:
        entry = BackendSettings(adapter=self.adapter, base_url="http://host", options=dict(self.options))
        return load_adapter(self.adapter, entry, 1 << 20)


WIRES: Final = {
    "chat": Wire("openai_chat", profiles=tuple(PROFILES)),
    "Responses": Wire("openai_responses", profiles=("none", "openai")),
    "Messages": Wire("anthropic_messages", ids="[a-zA-Z0-9_-]+"),
    "generateContent": Wire("gemini", profiles=("none", "gemini")),
    "Warp": Wire("warp", {"encoding": "structured"}),
    "gRPC": Wire("proto", {"preset": "demo"}),
    "gRPC, Gemini": Wire("proto", {"preset": "gemini_grpc"}, ids=None),
    "text": Wire("text", {"wire": "llama_cpp"}, ids=None),
}
ADAPTERS: Final = {name: wire.load() for name, wire in WIRES.items()}
PAIRS: Final = [(wire, profile, client) for wire in WIRES for profile in WIRES[wire].profiles for client in CLIENTS]


def pieces(value: Any) -> Iterator[Piece]:
    """Yield the calls and results of a body in the order in which they stand."""
    found = _piece(value)
    if found is not None:
        yield Piece(*found, _mark(value))
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from pieces(item)


def _piece(value: Any) -> tuple[Literal["call", "result"], str] | None:
    match value:
        case {"type": "function", "id": str(id), "function": {"arguments": _}}:
            return "call", id
        case {"type": "function_call", "call_id": str(id)} | {"type": "tool_use", "id": str(id)}:
            return "call", id
        case {"functionCall": {"name": _, **others}}:
            return "call", str(others.get("id", ""))
        case {"functionResponse": {"name": _, **others}}:
            return "result", str(others.get("id", ""))
        case {"tool_call": {"tool_call_id": str(id)}} | {"call": {"id": str(id)}}:
            return "call", id
        case {"role": "tool", "tool_call_id": str(id)} | {"type": "tool_result", "tool_use_id": str(id)}:
            return "result", id
        case {"type": "function_call_output", "call_id": str(id)}:
            return "result", id
        case {"tool_call_result": {"tool_call_id": str(id)}} | {"result": {"call_id": str(id)}}:
            return "result", id
        case {"function_call": {"name": _}}:
            return "call", ""
        case {"function_response": {"name": _}}:
            return "result", ""
        case _:
            return None


def _mark(value: Any) -> str:
    found = MARK.search(json.dumps(value))
    assert found is not None, value
    return found[0]


def pieces_of_text(prompt: str) -> Iterator[Piece]:
    """Yield the calls and results of a prompt."""
    for found in re.finditer(r"^Tool result .*: (mark\d+)|^\{.*(mark\d+)", prompt, re.MULTILINE):
        yield Piece("call" if found[1] is None else "result", "", found[1] or found[2])


def accepted(alphabet: Alphabet) -> str:
    """The regular expression of the ids that a provider takes."""
    one = "." if alphabet.characters is None else f"[{alphabet.characters}]"
    return f"{one}{{{alphabet.shortest},{alphabet.longest or ''}}}"


def received(name: str, profile: Profile, client: Client, made: Sequence[Round]) -> list[Piece]:
    """What the backend receives when a client of this dialect sends the rounds."""
    decoded = client.case.decode(client.body(made), GREETING).conversation
    return sent(name, Exchange(ADAPTERS[name], decoded, msgspec.structs.replace(UNLIMITED, profile=profile)))


def sent(name: str, exchange: Exchange) -> list[Piece]:
    """The calls and results of a request."""
    body: Any = ADAPTERS[name].describe(exchange.request.body)
    return [*pieces_of_text(body["prompt"])] if name == "text" else [*pieces(body)]


def batches(found: Sequence[Piece]) -> Iterator[tuple[list[Piece], list[Piece]]]:
    """Yield the calls of each turn with the results behind them."""
    for kind, run in itertools.groupby(found, key=lambda piece: piece.kind):
        if kind == "call":
            calls = [*run]
        else:
            yield calls, [*run]


def bound(calls: Sequence[Piece], results: Sequence[Piece]) -> dict[str, str]:
    """The mark of each result by the mark of the call that it names: those with an id first, the others in order."""
    open_calls = [*calls]
    marks: dict[str, str] = {}
    for result in sorted(results, key=lambda one: not one.id):
        call = next((call for call in open_calls if result.id in ("", call.id)), None)
        assert call is not None, f"{result} names none of {calls}"
        open_calls.remove(call)
        marks[call.mark] = result.mark
    return marks


def holds(found: Sequence[Piece], made: Sequence[Round], wire: Wire, *, reused: bool, own: bool) -> None:
    """Each call and each result has arrived, and each result is bound to its own call alone: by its id, of ids that a
    later round may use again (`reused`) to the latest call, or by its place on a wire without ids. Without ids is also
    what a client of the wire's `own` API sends without them."""
    marks = [call.mark for one in made for call in one.calls]
    for kind in ("call", "result"):
        assert sorted(piece.mark for piece in found if piece.kind == kind) == sorted(marks)
    for calls, results in batches(found):
        assert bound(calls, results) == {call.mark: call.mark for call in calls}
    ids = [piece.id for piece in found if piece.id or not own]
    assert wire.ids is None or all(re.fullmatch(wire.ids, id, re.DOTALL) for id in ids)
    called = [piece.id for piece in found if piece.id and piece.kind == "call"]
    assert reused or len({*called}) == len(called), found


@sample()
@pytest.mark.parametrize(("wire", "profile", "client"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@settings(max_examples=2 * settings().max_examples)
@given(made=rounds())
def test_each_result_arrives_with_the_id_of_its_call(
    wire: str, profile: str, client: str, made: tuple[Round, ...]
) -> None:
    rules = PROFILES[profile]
    found = received(wire, rules, CLIENTS[client], made)
    holds(found, made, WIRES[wire], reused=rules.reused_ids == "keep", own=wire == client == "generateContent")
    assert all(re.fullmatch(accepted(rules.call_id), piece.id, re.DOTALL) for piece in found if piece.id)


def _round(calls: Sequence[str | None], results: Sequence[str | None], number: int = 0) -> Round:
    marks = [f"mark{number}{at}" for at in range(len(calls))]
    return Round(
        [Named(id, "f", mark) for id, mark in zip(calls, marks, strict=True)],
        [Named(id, "f", mark) for id, mark in zip(results, marks, strict=True)],
    )


HISTORIES: Final = {
    "a bar": [_round(["a|b"], ["a|b"])],
    "two that differ in a bar": [_round(["a|b", "a_b"], ["a|b", "a_b"])],
    "Kimi": [_round(["functions.f:4"], ["functions.f:4"])],
    "Codex": [_round(["call|fc_1"], ["call|fc_1"])],
    "too long": [_round(["x" * 300, "x" * 301], ["x" * 300, "x" * 301])],
    "again in the next round": [_round(["a"], ["a"]), _round(["a"], ["a"], 1)],
    "twice in a round": [_round(["a", "a"], ["a", "a"])],
    "twice in a round, results without": [_round(["a", "a"], [None, None])],
    "one named, one not": [_round(["a", "b"], [None, "b"])],
    "the first named behind the other": [
        Round(
            [Named("a", "f", "mark00"), Named("b", "f", "mark01")],
            [Named(None, "f", "mark01"), Named("a", "f", "mark00")],
        )
    ],
    "one named, and a call without an id": [_round([None, "b", None], [None, "b", None])],
    "one named, used before": [_round(["a"], ["a"]), _round(["b", "a"], [None, "a"], 1)],
    "none in a call, one in its result": [_round([None], ["call_9"])],
}


@sample("history", ("wire", "client"))
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("history", HISTORIES)
def test_histories_with_odd_ids_arrive_whole(wire: str, client: str, history: str) -> None:
    made = HISTORIES[history]
    found = received(wire, PROFILES["none"], CLIENTS[client], made)
    holds(found, made, WIRES[wire], reused=False, own=wire == client == "generateContent")


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_message_answers_the_function_call_before_it(wire: str) -> None:
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"at": "mark00"}'}},
        {"role": "tool", "tool_call_id": "call_9", "content": "mark00"},
    ]
    case = BY_NAME["openai_chat"]
    fields = read_document(case.write(GREETING)).fields
    conversation = case.decode(json.dumps({**fields, "messages": messages}).encode(), GREETING).conversation
    exchange = Exchange(ADAPTERS[wire], conversation, UNLIMITED)
    holds(sent(wire, exchange), HISTORIES["none in a call, one in its result"], WIRES[wire], reused=False, own=False)
    (told,) = [notice for notice in exchange.notices if notice.rule == "TOOL_ID_UNKNOWN"]
    assert "'call_9'" in told.detail and "the function_call of 'f', which has no id" in told.detail


@pytest.mark.parametrize("client", CLIENTS)
def test_an_id_that_an_api_refuses_is_told_and_restored(client: str) -> None:
    made = HISTORIES["a bar"]
    conversation = CLIENTS[client].case.decode(CLIENTS[client].body(made), GREETING).conversation
    exchange = Exchange(ADAPTERS["Messages"], conversation, UNLIMITED)
    (told,) = [notice for notice in exchange.notices if notice.rule == "CALL_ID_RENAMED"]
    (called, _) = sent("Messages", exchange)
    assert told.detail == f"tool call id 'a|b' sent as {called.id!r} and restored in the response"
    (restored,) = exchange.profiled.identifiers.restore([ToolCallStart(0, called.id, "f")])
    assert restored == ToolCallStart(0, "a|b", "f")


def test_ids_that_have_a_meaning_for_the_provider_pass_the_rule_of_the_wire() -> None:
    found = received("Messages", PROFILES["kimi-thinking"], CLIENTS["Messages"], HISTORIES["Kimi"])
    assert [piece.id for piece in found] == ["functions.f:4", "functions.f:4"]
