"""Reads the parts of a content as blocks: text, thoughts, images, and any other part as the client wrote it."""

from collections.abc import Callable
from typing import Final, TypeAlias

from adapters.gemini import PROVIDER
from gateway.core.conversation import EMPTY, File, Image, Json, JsonObject, Reasoning, Text
from gateway.core.data_url import data_url
from gateway.core.provider_state import with_provider_state

Part: TypeAlias = dict[str, Json]
Content: TypeAlias = Text | Reasoning | Image | File

SIGNATURE: Final = "thoughtSignature"
# The field of the same state in `extra`, as in Google's chat completions.
STATE_SIGNATURE: Final = "thought_signature"
# A part holds one of these. `toolCall` and `toolResponse` are those of the provider's own tools.
DATA: Final = frozenset(
    [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "audioTranscription",
    ]
)
_TEXT: Final = frozenset({"text", "thought", SIGNATURE})
_CODE: Final = "```{language}\n{code}\n```"
_OUTPUT: Final = "```\n{output}\n```"


def read_part(part: Part, position: int) -> Content | None:
    """Returns the block for a part that is no call and no result; None for one whose data are none of the API's. A part
    of no known kind, and one of several, is kept for a backend that knows it.

    `position` is that of the part in its content.
    """
    if part.keys() == {"text"} and isinstance(part["text"], str):
        return Text(part["text"])
    said = [name for name in part if name in DATA]
    if not said and isinstance(part.get(SIGNATURE), str):
        # A signature may come without any text.
        return Reasoning("", extra=state_of(part))
    if len(said) != 1:
        return File((said or [*part])[0], part, position) if part else None
    reader = _READERS.get(said[0])
    return File(said[0], part, position) if reader is None else reader(part, position)


def state_of(part: JsonObject) -> JsonObject:
    """Returns the `extra` of a block with the part's signature, which only the provider that made it can read."""
    signature = part.get(SIGNATURE)
    return with_provider_state(PROVIDER, {STATE_SIGNATURE: signature}) if isinstance(signature, str) else EMPTY


def unread(part: JsonObject, read: frozenset[str]) -> JsonObject:
    """Returns the fields of a part that its block does not hold itself, with the state of its signature."""
    if part.keys() <= read and SIGNATURE not in part:
        return EMPTY
    return {**{name: value for name, value in part.items() if name not in read}, **state_of(part)}


def _text(part: Part, position: int) -> Content | None:
    text = part["text"]
    if not isinstance(text, str):
        return None
    extra = unread(part, _TEXT)
    if part.get("thought") is True:
        return Reasoning(text, extra=extra)
    # Google ends an answer with a signature beside an empty text.
    return Reasoning("", extra=extra) if not text and SIGNATURE in part else Text(text, extra)


def _inline(part: Part, position: int) -> Content | None:
    match part["inlineData"]:
        case {"data": str(data), "mimeType": str(kind)} if kind.startswith("image/"):
            extra = unread(part, frozenset({"inlineData", SIGNATURE}))
            return Image(data_url(kind, data), extra, position)
        case {"data": str(data), "mimeType": str(kind), **others}:
            major = kind.partition("/")[0]
            name = others.get("displayName")
            named = name if isinstance(name, str) else ""
            return File(
                "file" if major in ("application", "text") else major, part, position, data_url(kind, data), named
            )
        case _:
            return None


def _file(part: Part, position: int) -> Content | None:
    match part["fileData"]:
        case {"fileUri": str()}:
            return File("file", part, position)
        case _:
            return None


def _code(part: Part, position: int) -> Content | None:
    match part["executableCode"]:
        case {"code": str(code), **others}:
            language = others.get("language")
            return Text(_CODE.format(language=language.lower() if isinstance(language, str) else "", code=code))
        case _:
            return None


def _output(part: Part, position: int) -> Content | None:
    match part["codeExecutionResult"]:
        case {"output": str(output)}:
            return Text(_OUTPUT.format(output=output))
        case {"outcome": str(outcome)}:
            return Text(_OUTPUT.format(output=outcome))
        case _:
            return None


_READERS: Final[dict[str, Callable[[Part, int], Content | None]]] = {
    "text": _text,
    "inlineData": _inline,
    "fileData": _file,
    "executableCode": _code,
    "codeExecutionResult": _output,
}
