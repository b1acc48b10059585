"""Defines what only the laboratory plays to clients of the Responses API, beside the faults of the demo backend."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from adapters.openai_responses.demo.answer import Answer
from adapters.openai_responses.demo.response import (
    Event,
    events,
    failed_event,
    frame,
    frames,
    numbered,
    response_object,
)
from gateway.core.conversation import SYSTEM_ROLES, JsonObject
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults
from gateway.demo.lab.edits import cut_short, interleaved
from gateway.demo.player.playback import Response

_TRANSIENT: Final = "Provider returned error 502: the stream ended early (server error, connection reset)"
_LIMITED: Final = "Rate limit reached for this model. Please try again in 1s."


def _played(found: Iterable[JsonObject]) -> Response:
    return Response(tuple(map(frame, numbered(found))))


def _ended(answer: Answer, options: Options) -> Response:
    cut = msgspec.structs.replace(answer, text=cut_short(answer.text), calls=(), incomplete=options["reason"])
    return Response(tuple(frames(cut)))


def _reasoned(answer: Answer, options: Options) -> Response:
    thought = msgspec.structs.replace(answer, text=(), reasoning=answer.text, summarises=True)
    created, progress, *others = events(thought)
    return _played((created, progress, *(event for event in others if event.get("output_index") != 1)))


def _refused(answer: Answer, options: Options) -> Response:
    part: Event = {"type": "refusal", "refusal": "I cannot help with that."}
    item: Event = {"type": "message", "id": "msg_lab", "status": "completed", "role": "assistant", "content": [part]}
    created, progress, *_, last = events(answer)
    place: Event = {"output_index": 0, "item_id": "msg_lab", "content_index": 0}
    said: tuple[Event, ...] = (
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "refusal": ""}},
        {"type": "response.refusal.delta", **place, "delta": part["refusal"]},
        {"type": "response.refusal.done", **place, "refusal": part["refusal"]},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    )
    return _played((created, progress, *said, {**last, "response": {**response_object(answer), "output": [item]}}))


def _interleaved(answer: Answer, options: Options) -> Response:
    return _played(interleaved(events(answer), lambda event: event.get("output_index")))


def _unknown_item(answer: Answer, options: Options) -> Response:
    """Sends an item of an unknown type before the others."""
    created, progress, *others = events(answer)
    item: Event = {"type": "lab_item", "id": "lab_1", "status": "completed", "content": {"percent": 50}}
    place: Event = {"output_index": 0, "item": item}
    strange = [{"type": f"response.output_item.{step}", **place} for step in ("added", "done")]
    return _played((created, progress, *strange, *map(_moved, others)))


def _moved(event: Event) -> Event:
    index = event.get("output_index")
    return {**event, "output_index": index + 1} if isinstance(index, int) else event


def _late_system(body: JsonObject) -> str | None:
    """Returns the words of a refusal if a system or developer message stands behind another item."""
    items = body.get("input")
    roles = [item.get("role") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    begun = next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))
    late = any(role in SYSTEM_ROLES for role in roles[begun:])
    return "Role 'developer' is not supported behind other items." if late else None


def _text(_: Answer, text: str) -> bytes:
    return frame({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text})


_WIRE: Final = WireFaults[Answer]("responses", lambda answer: Response(tuple(frames(answer))), _text)


def _failing(code: str, words: str) -> Fault[Answer]:
    return _WIRE.ended(f"`response.failed`: {code}", "", lambda answer, _: frame(failed_event(answer, code, words)))


RESPONSES_LAB_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "transient_error": _failing("server_error", _TRANSIENT),
    "rate_limited": _failing("rate_limit_exceeded", _LIMITED),
    "too_long": _failing("context_length_exceeded", "Your input exceeds the context window of this model."),
    "ended": Fault("an incomplete response", options={"reason": "max_output_tokens"}, plays=_ended),
    "reasoned": Fault("reasoning without an answer", plays=_reasoned),
    "refused": Fault("a refusal instead of a text", plays=_refused),
    "interleaved": Fault("events of two calls in turns", plays=_interleaved),
    "strange_item": Fault("an item of an unknown type", plays=_unknown_item),
    "late_system": Fault("it refuses a developer message behind other items", refuses=_late_system),
}
