"""Defines what only the laboratory plays to clients of the Messages API, beside the faults of the demo backend."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.anthropic_messages.demo.answer import Answer
from adapters.anthropic_messages.demo.response import Event, block_events, error_body, frame, frames, stream
from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead
from gateway.demo.lab.edits import cut_short, interleaved
from gateway.demo.player.playback import Response, json_answer

_TRANSIENT: Final = "Provider returned error 502: the stream ended early (server error, connection reset)"
_TOO_LONG: Final = error_body("prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error")
_MAX_TOKENS: Final = "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"


def _ended(answer: Answer, options: Options) -> Response:
    cut = msgspec.structs.replace(answer, text=cut_short(answer.text), calls=(), stop_reason=options["reason"])
    return Response(tuple(frames(cut)))


def _reasoned(answer: Answer, options: Options) -> Response:
    return Response(tuple(frames(msgspec.structs.replace(answer, thinking=answer.text, text=()))))


def _interleaved(answer: Answer, options: Options) -> Response:
    return Response(tuple(map(frame, interleaved(stream(answer), lambda event: event.get("index")))))


def _strange_block(answer: Answer, options: Options) -> Response:
    """Sends a block of an unknown type before the others."""
    first, *others = stream(answer)
    block: Event = {"type": "lab_block", "percent": 50}
    return Response(tuple(map(frame, (first, *block_events(0, block, []), *map(_moved, others)))))


def _moved(event: Event) -> Event:
    index = event.get("index")
    return {**event, "index": index + 1} if isinstance(index, int) else event


def _late_system(body: JsonObject) -> str | None:
    """Returns the words of a refusal if a message has the role system."""
    messages = body.get("messages")
    listed = messages if isinstance(messages, list) else []
    late = next((at for at, one in enumerate(listed) if isinstance(one, dict) and one.get("role") == "system"), None)
    return None if late is None else f"messages.{late}: role 'system' is not supported on this model"


def _text(_: Answer, text: str) -> bytes:
    delta: Json = {"type": "text_delta", "text": text}
    return frame({"type": "content_block_delta", "index": 0, "delta": delta})


_WIRE: Final = WireFaults[Answer]("messages", lambda answer: Response(tuple(frames(answer))), _text)

MESSAGES_LAB_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    "transient_error": _WIRE.ended(
        "an error event in words that ask for another try", "", lambda *_: frame(error_body(_TRANSIENT, "api_error"))
    ),
    "overloaded_late": _WIRE.ended(
        "overloaded_error in the stream", "", lambda *_: frame(error_body("Overloaded", "overloaded_error"))
    ),
    "ended": Fault("an answer that ends early, and says why", options={"reason": "max_tokens"}, plays=_ended),
    "reasoned": Fault("thinking without an answer", plays=_reasoned),
    "interleaved": Fault("events of two blocks in turns", plays=_interleaved),
    "strange_block": Fault("a block of an unknown type", plays=_strange_block),
    "max_tokens_too_large": instead(
        "400 because input and max_tokens exceed the context",
        "",
        json_answer(error_body(_MAX_TOKENS, "invalid_request_error"), 400),
    ),
    "too_long": instead("400 because the prompt is too long, with numbers", "", json_answer(_TOO_LONG, 400)),
    "late_system": Fault("it refuses a message of the role system", refuses=_late_system),
}
