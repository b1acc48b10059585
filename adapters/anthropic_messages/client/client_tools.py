"""Lists the tools that the client runs and whose schemas are Anthropic's: a client names them by their type alone.

Source: Anthropic, tool reference: the bash, text editor, memory and computer use tools.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject

_WHOLE: Final[dict[str, Json]] = {"type": "integer"}
_PAIR: Final[dict[str, Json]] = {"type": "array", "items": _WHOLE, "minItems": 2, "maxItems": 2}


class ClientTool(msgspec.Struct, frozen=True):
    """A function as the model of any backend can call it."""

    description: str
    parameters: JsonObject


def client_tool(kind: str) -> ClientTool | None:
    """Returns the tool of a type (`bash_20250124`: a family and a date); None: the client does not run it."""
    family, _, date = kind.rpartition("_")
    return _FAMILIES.get(family) if date.isdigit() else None


def _object(required: list[Json], properties: Mapping[str, Json]) -> JsonObject:
    return {"type": "object", "properties": dict(properties), "required": required}


def _commands(*names: Json) -> Json:
    return {"type": "string", "enum": list(names)}


_BASH: Final = ClientTool(
    "Runs a command in a shell that keeps its state between calls, or restarts that shell.",
    _object(
        [],
        {
            "command": {"type": "string", "description": "The command to run."},
            "restart": {"type": "boolean", "description": "Restarts the shell; no command is needed then."},
        },
    ),
)
_TEXT_EDITOR: Final = ClientTool(
    "Views, creates and edits text files.",
    _object(
        ["command", "path"],
        {
            "command": _commands("view", "create", "str_replace", "insert"),
            "path": {"type": "string", "description": "The path of the file or folder."},
            "file_text": {"type": "string", "description": "For create: the content of the file."},
            "old_str": {"type": "string", "description": "For str_replace: the text to replace; it must occur once."},
            "new_str": {"type": "string", "description": "For str_replace: the text that replaces it."},
            "insert_line": {"type": "integer", "description": "For insert: the line after which the text is put."},
            "insert_text": {"type": "string", "description": "For insert: the text."},
            "view_range": {**_PAIR, "description": "For view: the first and the last line; -1 is the end."},
        },
    ),
)
_MEMORY: Final = ClientTool(
    "Reads and writes the files below /memories, which are kept between conversations.",
    _object(
        ["command"],
        {
            "command": _commands("view", "create", "str_replace", "insert", "delete", "rename"),
            "path": {"type": "string", "description": "The path, except for rename."},
            "view_range": {**_PAIR, "description": "For view: the first and the last line."},
            "file_text": {"type": "string", "description": "For create: the content of the file."},
            "old_str": {"type": "string", "description": "For str_replace: the text to replace."},
            "new_str": {"type": "string", "description": "For str_replace: the text that replaces it."},
            "insert_line": {"type": "integer", "description": "For insert: the line after which the text is put."},
            "insert_text": {"type": "string", "description": "For insert: the text."},
            "old_path": {"type": "string", "description": "For rename: the present path."},
            "new_path": {"type": "string", "description": "For rename: the new path."},
        },
    ),
)
_COMPUTER: Final = ClientTool(
    "Sees the screen, and uses mouse and keyboard.",
    _object(
        ["action"],
        {
            "action": _commands(
                "screenshot",
                "left_click",
                "right_click",
                "middle_click",
                "double_click",
                "triple_click",
                "left_click_drag",
                "left_mouse_down",
                "left_mouse_up",
                "mouse_move",
                "cursor_position",
                "scroll",
                "type",
                "key",
                "hold_key",
                "wait",
                "zoom",
            ),
            "coordinate": {**_PAIR, "description": "The place on the screen: x and y in pixels."},
            "start_coordinate": {**_PAIR, "description": "For left_click_drag: where it begins."},
            "text": {"type": "string", "description": "The text to type, or the keys to press."},
            "scroll_direction": _commands("up", "down", "left", "right"),
            "scroll_amount": _WHOLE,
            "duration": {"type": "number", "description": "For wait and hold_key: seconds."},
            "region": {"type": "array", "items": _WHOLE, "description": "For zoom: x and y of two corners."},
        },
    ),
)
_FAMILIES: Final[Mapping[str, ClientTool]] = {
    "bash": _BASH,
    "text_editor": _TEXT_EDITOR,
    "memory": _MEMORY,
    "computer": _COMPUTER,
}
