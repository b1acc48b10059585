"""Defines what only the laboratory plays to clients of generateContent, beside the faults of the demo backend."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.gemini.demo.answer import Answer
from adapters.gemini.demo.response import chunk, error_body, frame, frames
from gateway.demo.faults.editing import Options
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.wire_faults import WireFaults, instead
from gateway.demo.lab.edits import cut_short
from gateway.demo.player.playback import Response, json_answer

_BROKE: Final = error_body(503, "The model is overloaded. Please try again later.", "UNAVAILABLE")
_TOO_LONG: Final = error_body(
    400,
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "INVALID_ARGUMENT",
)


def _ended(answer: Answer, options: Options) -> Response:
    cut = msgspec.structs.replace(answer, text=cut_short(answer.text), calls=(), finish=options["reason"])
    return Response(tuple(frames(cut)))


def _reasoned(answer: Answer, options: Options) -> Response:
    return Response(tuple(frames(msgspec.structs.replace(answer, reasoning=answer.text, text=()))))


_WIRE: Final = WireFaults[Answer](
    "gemini",
    lambda answer: Response(tuple(frames(answer))),
    lambda answer, text: frame(chunk(answer, [{"text": text}])),
)

GEMINI_LAB_FAULTS: Final[Mapping[str, Fault[Any]]] = {
    # The SDK of Google for JavaScript reads an error only where it is no server-sent event.
    "transient_error": _WIRE.ended(
        "an error object that is no event", "", lambda *_: msgspec.json.encode(_BROKE) + b"\r\n\r\n"
    ),
    "too_long": instead("400 because the prompt is too long, with numbers", "", json_answer(_TOO_LONG, 400)),
    "ended": Fault("an answer that ends early, and says why", options={"reason": "MAX_TOKENS"}, plays=_ended),
    "reasoned": Fault("thoughts without an answer", plays=_reasoned),
}
