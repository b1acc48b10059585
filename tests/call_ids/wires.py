"""Reads which calls and results a backend receives, and tells whether each result is bound to its call."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from gateway.adapter import Adapter
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from tests.call_ids.clients import Round

MARK: Final = re.compile(r"mark\d+")


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


def sent(name: str, exchange: Exchange) -> list[Piece]:
    """The calls and results of a request to this wire."""
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
