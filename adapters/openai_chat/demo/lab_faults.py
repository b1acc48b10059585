"""Defines what only the laboratory plays to clients of Chat Completions, beside the faults of the demo backend."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.openai.demo import error_body
from adapters.openai_chat.demo.answer import Answer
from adapters.openai_chat.demo.response import DONE, chunk, deltas, finish_chunk, frame
from gateway.core.conversation import SYSTEM_ROLES, Json, JsonObject
from gateway.demo.faults.editing import Event, Options, each_json
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead
from gateway.demo.lab.edits import cut_short, interleaved
from gateway.demo.player.playback import Response, json_answer

# Words on which several clients ask again.
_TRANSIENT: Final = "Provider returned error 502: the stream ended early (server error, connection reset)"
_TOO_LONG: Final = error_body(
    "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (139000 in the "
    "messages, 1000 in the completion). Please reduce the length of the messages or completion.",
    "invalid_request_error",
    "context_length_exceeded",
    "messages",
)
_STRANGE: Final[Json] = {"object": "lab.progress", "percent": 50}


def _regular(answer: Answer) -> Response:
    return Response((*map(frame, deltas(answer)), frame(finish_chunk(answer)), DONE))


def _text(answer: Answer, text: str) -> bytes:
    return frame(chunk(answer, {"content": text}))


def _ended(answer: Answer, options: Options) -> Response:
    return _regular(msgspec.structs.replace(answer, text=cut_short(answer.text), finish=options["reason"]))


def _refused(answer: Answer, options: Options) -> Response:
    words = frame(chunk(answer, {"role": "assistant", "content": None, "refusal": "I cannot help with that."}))
    return Response((words, frame(chunk(answer, {}, "stop")), DONE))


def _reasoned(answer: Answer, options: Options) -> Response:
    thoughts = (frame(chunk(answer, {"reasoning_content": piece})) for piece in answer.text)
    return Response((*thoughts, frame(chunk(answer, {}, "stop")), DONE))


def _interleaved(answer: Answer, options: Options) -> Response:
    return Response((*map(frame, interleaved(deltas(answer), _place)), frame(finish_chunk(answer)), DONE))


def _place(event: JsonObject) -> Json:
    match event:
        case {"choices": [{"delta": {"tool_calls": [{"index": int(index)}, *_]}}, *_]}:
            return index
        case _:
            return None


def _without_id(event: Event) -> JsonObject:
    """Removes the id of a call from the delta that begins it."""
    match event:
        case {"choices": [{"index": index, "delta": {"tool_calls": [{"id": str(), "function": function}]}}]}:
            call: Json = {"index": 0, "type": "function", "function": function}
            delta: Json = {"tool_calls": [call]}
            return {**event, "choices": [{"index": index, "delta": delta, "finish_reason": None}]}
        case _:
            return event


def _late_system(body: JsonObject) -> str | None:
    """Returns the words of a refusal if a system message stands behind another one."""
    messages = body.get("messages")
    roles = (
        [message.get("role") for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []
    )
    begun = next((at for at, role in enumerate(roles) if role not in SYSTEM_ROLES), len(roles))
    late = any(role in SYSTEM_ROLES for role in roles[begun:])
    return "System message must be at the beginning." if late else None


_WIRE: Final = WireFaults[Answer]("chat", _regular, _text)

CHAT_LAB_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "transient_error": _WIRE.ended(
        "an error object in words that ask for another try",
        "",
        lambda *_: frame(error_body(_TRANSIENT, "server_error", "server_error")),
    ),
    "strange": _WIRE.inserted("an object of an unknown kind", "", lambda *_: frame(_STRANGE)),
    "ended": Fault("an answer that ends early, and says why", options={"reason": "length"}, plays=_ended),
    "refused": Fault("a refusal instead of a content", plays=_refused),
    "reasoned": Fault("reasoning without an answer", plays=_reasoned),
    "interleaved": Fault("pieces of two calls in turns", plays=_interleaved),
    "call_without_id": Fault("a call without an id", edits=each_json(_without_id)),
    "too_long": instead("400 context_length_exceeded, with numbers", "", json_answer(_TOO_LONG, 400)),
    "late_system": Fault("it refuses a system message behind another one", refuses=_late_system),
}
