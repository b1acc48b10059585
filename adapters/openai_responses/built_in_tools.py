"""Defines the tools that the client runs and OpenAI's models know without a schema as functions with one.

Source: OpenAI, API reference of Responses: the `action` and `operation` of `local_shell_call`, `shell_call` and
`apply_patch_call`.
"""

from collections.abc import Mapping
from typing import Final

from adapters.openai_responses.function_names import ToolKind
from gateway.core.conversation import Json, ToolSpec

_TEXT: Final[Json] = {"type": "string"}
_TEXTS: Final[Json] = {"type": "array", "items": _TEXT}
_NUMBER: Final[Json] = {"type": "integer"}


def _object(required: tuple[str, ...], **properties: Json) -> dict[str, Json]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


BUILT_IN: Final[Mapping[ToolKind, ToolSpec]] = {
    "local_shell": ToolSpec(
        "local_shell",
        "Runs one command in a shell on the user's computer, and returns its output.",
        _object(
            ("command",),
            command=_TEXTS,
            working_directory=_TEXT,
            timeout_ms=_NUMBER,
            env={"type": "object", "additionalProperties": _TEXT},
            user=_TEXT,
        ),
    ),
    "shell": ToolSpec(
        "shell",
        "Runs commands in a shell on the user's computer, and returns the output of each.",
        _object(("commands",), commands=_TEXTS, timeout_ms=_NUMBER, max_output_length=_NUMBER),
    ),
    "apply_patch": ToolSpec(
        "apply_patch",
        "Creates, updates or deletes one file. The diff of a file that is created or updated is in the V4A format: "
        "lines that begin with a space, + or -, behind lines that begin with @@.",
        _object(
            ("type", "path"),
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
}
