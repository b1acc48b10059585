"""Reads a response of which no answer is known, by the names of its fields and by how its values grow. What is found so
is told as assumed."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import msgspec

from adapters.proto.learn.exchange import KnownAnswer
from adapters.proto.learn.finish_search import presumed_reason
from adapters.proto.learn.learned import Doubt
from adapters.proto.learn.response import RecordedResponse, spots_of, text_of
from adapters.proto.learn.spots import Spot, Value
from adapters.proto.learn.value_search import json_value
from gateway.core.conversation import Json, ToolCall
from gateway.core.events import UsageReport

_TEXTS: Final = (
    "text",
    "content",
    "delta",
    "answer",
    "output",
    "token",
    "response",
    "message",
    "chunk",
    "so_far",
    "said",
)
_THOUGHTS: Final = ("reasoning", "thought", "thinking")
_ARGUMENTS: Final = ("arg", "input", "param", "field")
_COUNTS: Final = {
    "prompt_tokens": ("prompt", "input", "_in", "context"),
    "completion_tokens": ("completion", "output", "generated", "candidates", "_out", "answer"),
    "total_tokens": ("total",),
}


def presume(responses: Sequence[RecordedResponse]) -> tuple[list[RecordedResponse], tuple[Doubt, ...]]:
    """Returns the responses, those without a known answer with what they seem to say, and doubts about it."""
    unknown = [one for one in responses if one.presumed and one.complete]
    if not unknown:
        return list(responses), ()
    calls = _calls(unknown)
    reasoning = _reasoning(unknown)
    text = _text(unknown, {spot for spot in (*calls, reasoning) if spot is not None})
    counts = _counts(unknown)
    made = {id(one): _answer(one, text, reasoning, calls, counts) for one in unknown}
    found = {
        "text": text,
        "reasoning": reasoning,
        "call": calls[1],
        **{f"usage.{name}": spot for name, spot in counts.items()},
    }
    doubts = [
        Doubt("assumed", f"read.{what}", f"{spot.text}, by its name and its values; no answer is known")
        for what, spot in found.items()
        if spot is not None
    ]
    if text is None:
        doubts.append(Doubt("open", "read.text", "no field looks like the text of an answer"))
    known = [msgspec.structs.replace(one, known=made.get(id(one), one.known)) for one in responses]
    return known, tuple(doubts)


def _answer(
    response: RecordedResponse,
    text: Spot | None,
    reasoning: Spot | None,
    calls: tuple[Spot | None, Spot | None],
    counts: dict[str, Spot],
) -> KnownAnswer:
    values = [] if text is None else response.of(text)
    said, thought = (_said([value for value in values if _is_thought(value) is hidden]) for hidden in (False, True))
    if reasoning is not None:
        thought = _said(response.of(reasoning))
    called = tuple(_called(response, *calls))
    usage = {name: max((value.value for value in response.of(spot)), default=None) for name, spot in counts.items()}
    prompt, completion, total = (usage.get(name) for name in _COUNTS)
    report = UsageReport(prompt, completion, total) if prompt or completion or total else None
    reason = presumed_reason(response) or response.asked_end
    return KnownAnswer(said, thought, called, "tool_calls" if called else reason or "stop", report)


def _text(responses: Sequence[RecordedResponse], taken: set[Spot]) -> Spot | None:
    """Returns the spot that is most likely the text: that of the planted words, else by its name and its length."""
    spots = [spot for spot in spots_of(responses, "text", "bytes") if spot not in taken]

    def rank(spot: Spot) -> tuple[int, int, int]:
        said = [_said(one.of(spot)) for one in responses]
        planted = sum(bool(one.planted) and one.planted in text for one, text in zip(responses, said, strict=True))
        last = ("tensor_" if spot.tensor else "") + spot.path.rpartition(".")[2].lower()
        return planted, sum(name in last for name in _TEXTS), sum(map(len, said))

    found = max(spots, key=rank, default=None)
    return found if found is not None and rank(found)[:2] != (0, 0) else None


def _reasoning(responses: Sequence[RecordedResponse]) -> Spot | None:
    """Returns the spot of a text that is named like reasoning."""
    for spot in spots_of(responses, "text", "bytes"):
        last = spot.path.rpartition(".")[2].lower()
        if any(name in last for name in _THOUGHTS) and "finish" not in last:
            return spot
    return None


def _is_thought(value: Value) -> bool:
    """Whether a bool beside a text says that it is reasoning."""
    return any(
        field.type == field.TYPE_BOOL and field.name.lower() in _THOUGHTS and held
        for field, held in value.item.ListFields()
    )


def _said(values: Sequence[Value]) -> str:
    texts = [text_of(value.value) for value in values]
    grows = len(texts) > 1 and all(later.startswith(before) for before, later in pairwise(texts))
    return texts[-1] if grows else "".join(texts)


def _calls(responses: Sequence[RecordedResponse]) -> tuple[Spot | None, Spot | None]:
    """Returns the spots of the names of calls, which are those of tools, and of their arguments beside them."""
    tools = {tool.name for one in responses for tool in one.conversation.tools}
    for name in spots_of(responses, "text"):
        values = [value.value for one in responses for value in one.of(name)]
        if name.tensor or not values or not tools.issuperset(values):
            continue
        for arguments in spots_of(responses, "text", "bytes", "struct", "map", "message"):
            last = arguments.path.rpartition(".")[2].lower()
            if arguments.each == name.each and arguments != name and any(part in last for part in _ARGUMENTS):
                return name, arguments
    return None, None


def _called(response: RecordedResponse, name: Spot | None, arguments: Spot | None) -> Iterator[ToolCall]:
    if name is None or arguments is None:
        return
    names = {id(value.item): value.value for value in response.of(name)}
    order = sorted([*response.of(name), *response.of(arguments)], key=lambda value: (value.message, value.order))
    written = {id(value.item): value.value for value in response.of(arguments)}
    calls: list[tuple[str, str]] = []
    for item in dict.fromkeys(id(value.item) for value in order):
        piece = _as_text(written.get(item, ""))
        if item in names:
            calls.append((names[item], piece))
        elif calls:
            calls[-1] = (calls[-1][0], calls[-1][1] + piece)
    yield from (ToolCall("", called, given) for called, given in calls)


def _as_text(value: Any) -> str:
    if isinstance(value, str | bytes):
        return text_of(value)
    written: Json = json_value(value) if hasattr(value, "DESCRIPTOR") else dict(value)
    return json.dumps(written)


def _counts(responses: Sequence[RecordedResponse]) -> dict[str, Spot]:
    found: dict[str, Spot] = {}
    for spot in spots_of(responses, "integer"):
        last = spot.path.rpartition(".")[2].lower()
        for name, parts in _COUNTS.items():
            if "token" in spot.text.lower() and name not in found and any(part in last for part in parts):
                found[name] = spot
                break
    return found
