"""The model of the laboratory: it has one file of the client's folder read, if a tool offers that, and then answers."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.scripted_model.arguments import build_value
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, PlannedCall, Reply
from gateway.demo.scripted_model.schemas import required_of

NOTES: Final = "notes.md"
# What is read where the arguments of the call are cut before the end of the name above.
CUT_NOTES: Final = "notes"
PICTURE: Final = "picture.png"
# Each word stands in one place alone, so that a word in an output tells what the client has had.
NOTES_WORD: Final = "zeppelin"
CUT_NOTES_WORD: Final = "gondola"
FIRST_WORD: Final = "quokka"
LAST_WORD: Final = "marzipan"
ANSWER: Final = (
    f"The {FIRST_WORD} begins this answer. It goes on in the middle with a naïve café, and with some more that is of no"
    f" importance at all, and what it ends with is the {LAST_WORD}"
)
# What a request of the client holds, and none that it makes beside it, such as one for a summary.
PHRASE: Final = f"{NOTES} in this folder"
PROMPT: Final = f"Read the file {PHRASE} and tell me what it says."

# Tools that read one file and do nothing else, by their names in lower case without other signs, with that file.
READING: Final[Mapping[str, str]] = {
    **dict.fromkeys(("read", "readfile", "readtextfile", "readfiles", "view", "viewfile", "openfile"), NOTES),
    "viewimage": PICTURE,
}
# The names of their parameters for the path.
_PATHS: Final = ("file_path", "filePath", "path", "absolute_path", "filepath", "file", "filename", "target_file")
_SIGNS: Final = re.compile(r"[^a-z0-9]")


class LabModel:
    """Replies to each dialogue; `folder` has the files."""

    def __init__(self, folder: PurePath) -> None:
        self._folder = folder

    def __call__(self, dialogue: Dialogue) -> Reply:
        """Returns a call for the client's own question, and the answer for what follows its result."""
        tool = reading_tool(dialogue) if PHRASE in dialogue.question and not dialogue.rounds else None
        if tool is None:
            return Reply(ANSWER)
        return Reply(calls=(PlannedCall("call_lab_1", tool.name, read_arguments(tool, self._folder)),))


def reading_tool(dialogue: Dialogue) -> OfferedTool | None:
    """Returns the offered tool that reads a file; None where there is none, or none may be called."""
    if dialogue.choice == "none":
        return None
    return next((tool for tool in dialogue.tools if _file_of(tool) and _path_of(tool)), None)


def read_arguments(tool: OfferedTool, folder: PurePath) -> JsonObject:
    """Returns arguments that read the file: the path is the last of them."""
    name = _path_of(tool)
    properties = tool.parameters.get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    others: dict[str, Json] = {
        other: build_value(schema, "")
        for other in sorted(required_of(tool.parameters))
        if other != name and isinstance(schema := schemas.get(other), dict)
    }
    return {**others, name: str(folder / _file_of(tool))}


def with_arguments(reply: Reply, text: str) -> Reply:
    """Returns the reply with this text as the arguments of each call, be it JSON or not."""
    raw: Json = msgspec.Raw(text.encode())  # type: ignore[assignment]  # written as it is, which no value can say
    return _with_calls(reply, (msgspec.structs.replace(call, arguments=raw) for call in reply.calls))


def arguments_of(reply: Reply) -> str:
    """Returns the arguments of the first call as they are written."""
    return msgspec.json.encode(reply.calls[0].arguments).decode()


def with_calls(reply: Reply, *changes: Mapping[str, Json]) -> Reply:
    """Returns the reply with one call for each of these changes of its first call."""
    return _with_calls(reply, (msgspec.structs.replace(reply.calls[0], **change) for change in changes))


def _with_calls(reply: Reply, calls: Iterator[PlannedCall]) -> Reply:
    return msgspec.structs.replace(reply, calls=tuple(calls))


def _file_of(tool: OfferedTool) -> str:
    return READING.get(_SIGNS.sub("", tool.name.lower()), "")


def _path_of(tool: OfferedTool) -> str:
    properties = tool.parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    return next((name for name in _PATHS if _is_text(known.get(name))), "")


def _is_text(schema: Json) -> bool:
    # The Gemini API writes the types of a schema in capital letters.
    return isinstance(schema, dict) and str(schema.get("type")).lower() == "string"
