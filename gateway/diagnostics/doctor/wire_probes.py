"""D224, D226, D229, D230, D266, D267: how the bytes of answers differ from their wire, and which fields of its events
no reference has. The gateway mends most of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gateway.adapter import EventFields
from gateway.core.conversation import Json, JsonObject
from gateway.diagnostics.doctor.finding import Finding, ok, remark, skipped, todo
from gateway.diagnostics.doctor.probe import Probe, ProbedBackend
from gateway.diagnostics.doctor.question import Answer
from gateway.diagnostics.doctor.requests import CHAT, COUNT, ONE, SHORT

# The media types of a wire whose requests say whether the answer comes as a stream or as one object.
_TWO_FORMS: Final = frozenset({"text/event-stream", "application/json"})
_DELTA: Final = "choices[].delta"
# The calls of a stream, and those of one object.
_CALLS: Final = ("choices[].delta.tool_calls[]", "choices[].message.tool_calls[]")
_OWN_FORM: Final = "in the wire's own form"
_NO_CALL: Final = "there was no call"
# The reasons with which Chat Completions ends an answer with calls, the second of them in its older form.
_ENDS: Final = frozenset({"tool_calls", "function_call"})


def unknown_fields(events: Iterable[Json], known: EventFields) -> list[str]:
    """Returns the paths of the fields that events have and their wire does not, sorted."""
    found = {
        f"{path}.{name}".lstrip(".")
        for event in events
        for path, fields in objects(event)
        if path in known
        for name in fields.keys() - known[path]
    }
    return sorted(found)


def objects(value: Json, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Yields each object in a JSON value with its path; the items of a list have one path."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item, f"{path}[]")
    if isinstance(value, dict):
        yield path, value
        for name, inner in value.items():
            yield from objects(inner, f"{path}.{name}".lstrip("."))


async def _end(backend: ProbedBackend) -> Finding:
    body = (await backend.ask(COUNT)).body
    if backend.settings.adapter != CHAT or not body.lstrip().startswith((b"data:", b":", b"event:")):
        return ok("the wire's own end")
    if b"data: [DONE]" in body or b"data:[DONE]" in body:
        return ok("[DONE]")
    advice = "nothing is lost, since the gateway ends its own streams; report it to the backend's maker"
    return todo("the stream ends without [DONE]", advice)


async def _fields(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(COUNT)
    if has_two_forms(answer) and _is_object(answer):
        return skipped("there was no stream to look into")
    known = backend.capabilities.event_fields
    if not known:
        rules = sorted({notice.rule for notice in answer.notices if "UNKNOWN" in notice.rule})
        return remark(f"unknown parts: {', '.join(rules)}") if rules else ok("none that the gateway reports")
    events = list(events_in(answer.body))
    kinds = {
        "null": _nulls(events) if backend.settings.adapter == CHAT else [],
        "unknown": unknown_fields(events, known),
    }
    found = [f"{kind}: {', '.join(names)}" for kind, names in kinds.items() if names]
    return remark("fields of events, " + "; ".join(found)) if found else ok("none")


def _nulls(events: list[Json]) -> list[str]:
    """Returns the null fields of deltas. Null content is what the wire has for a message that only calls tools."""
    deltas = (fields for event in events for path, fields in objects(event) if path == _DELTA)
    found = {name for fields in deltas for name, value in fields.items() if value is None and name != "content"}
    return sorted(f"{_DELTA}.{name}" for name in found)


async def _form(backend: ProbedBackend) -> Finding:
    whole, streamed = await backend.ask(SHORT), await backend.ask(COUNT)
    if not has_two_forms(streamed):
        return ok("the only form of its wire")
    if _is_object(streamed):
        advice = "clients see nothing until the answer is whole: look for what switches streams off, or for a proxy"
        return todo("a stream is asked for, and one object comes", advice)
    if not _is_object(whole):
        return remark("one object is asked for, and a stream comes; clients get one object")
    return ok("as it is asked for")


def has_two_forms(answer: Answer) -> bool:
    """Returns whether an answer of this wire is a stream or one object, as its request says."""
    return answer.sent is not None and frozenset(answer.sent.accepts) >= _TWO_FORMS


def _is_object(answer: Answer) -> bool:
    return answer.body.lstrip().startswith((b"{", b"["))


async def _arguments(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(ONE)
    if not answer.calls:
        return skipped(_NO_CALL)
    calls = _functions(answer) if backend.settings.adapter == CHAT else iter(())
    if any(isinstance(function.get("arguments"), dict) for function in calls):
        return remark("arguments come as an object instead of text; clients get text")
    return ok(_OWN_FORM)


async def _index(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(ONE)
    if not answer.calls:
        return skipped(_NO_CALL)
    calls = _objects_at(answer, _CALLS[:1]) if backend.settings.adapter == CHAT else iter(())
    if any("index" not in call for call in calls):
        return remark("the calls of a stream come without an index; the gateway numbers them")
    return ok(_OWN_FORM)


async def _call_end(backend: ProbedBackend) -> Finding:
    answer = await backend.ask(ONE)
    if not answer.calls or answer.finish is None:
        return skipped(_NO_CALL)
    if backend.settings.adapter == CHAT and answer.finish.raw not in _ENDS:
        return remark(f"an answer with calls ends with {answer.finish.raw!r}; clients get 'tool_calls'")
    return ok(_OWN_FORM)


def empty_pieces(answer: Answer) -> bool:
    """Returns whether all pieces of arguments in a stream of chat completions are empty; False where there is none."""
    pieces = [function["arguments"] for function in _functions(answer) if isinstance(function.get("arguments"), str)]
    return bool(pieces) and not any(pieces)


def _functions(answer: Answer) -> Iterator[JsonObject]:
    return _objects_at(answer, [f"{path}.function" for path in _CALLS])


def _objects_at(answer: Answer, paths: Sequence[str]) -> Iterator[JsonObject]:
    for event in events_in(answer.body):
        yield from (fields for path, fields in objects(event) if path in paths)


def events_in(body: bytes) -> Iterator[Json]:
    """Yields the JSON of each event of a stream: of the data of server-sent events, or of each line; or else the one
    value that a body is, on however many lines."""
    whole = list(_values([body]))
    yield from whole or _values([line.removeprefix(b"data:") for line in body.splitlines()])


def _values(texts: Sequence[bytes]) -> Iterator[Json]:
    for text in texts:
        try:
            yield msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue


PROBES: Final = (
    Probe("D224", "end", "Does the stream have the end mark of its wire?", _end, 0, ("D222",)),
    Probe("D226", "fields", "Do events have null or unknown fields?", _fields, 0, ("D222",)),
    Probe("D229", "form", "Does a stream come as a stream, and a whole answer as one object?", _form, 0, ("D222",)),
)


CALL_PROBES: Final = (
    Probe("D230", "arguments", "Are arguments written as the wire says?", _arguments, 0, ("D231",)),
    Probe("D266", "call index", "Has each call of a stream its index?", _index, 0, ("D231",)),
    Probe("D267", "call end", "Does an answer with calls end as the wire says?", _call_end, 0, ("D231",)),
)
