"""Reads what clients of other APIs send to the route of chat completions, and says so: the fault FOREIGN_FORM.

Cursor sends bodies of the Responses API there when the model has a name of OpenAI, and tools in the flat form of the
Responses API or in that of the Messages API; several bridges send histories with blocks of the Messages API.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.content import IN_ASSISTANT, IN_USER, ContentReader
from adapters.openai_responses.client.decode import decode_document as decode_responses
from adapters.openai_responses.turn_items import ITEMS
from gateway.core.conversation import Block, Conversation, File, Image, Json, ToolCall, ToolResult, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.rules import violation
from gateway.dialects.document import Document
from gateway.dialects.faults import Faults

_MESSAGES: Final = "messages"
_RESPONSES_API: Final = "the Responses API"
_MESSAGES_API: Final = "the Messages API"
# Its `any` and its `required` are the same.
_MISTRALS_API: Final = "Mistral's API"
# Blocks of the Messages API that no part of a chat message is called.
_BLOCKS: Final = IN_USER | IN_ASSISTANT - {"text"}
_CHOICES: Final[Mapping[str, str]] = {"auto": "auto", "any": "required", "none": "none"}


def responses_conversation(document: Document) -> Conversation:
    """Returns the conversation of a body of the Responses API, whose answer is a chat completion. Raises InvalidRequest
    like the decoder of that API, and for a body that has messages too, or neither."""
    if _MESSAGES in document.fields:
        detail = f"The request has both {_MESSAGES} and {ITEMS}: send {_MESSAGES}, or {ITEMS} to /v1/responses."
        raise InvalidRequest(detail, param=ITEMS)
    if ITEMS not in document.fields:
        detail = f"{_MESSAGES} is missing, and so is {ITEMS}, which the Responses API has in its place."
        raise InvalidRequest(detail, code="missing_required_parameter", param=_MESSAGES)
    read = decode_responses(document).conversation
    options = document.fields.get("stream_options")
    fault = violation("FOREIGN_FORM", -1, param=ITEMS, detail=_detail(ITEMS, _RESPONSES_API), paths=read.paths)
    return msgspec.structs.replace(
        read,
        dialect="",
        source=None,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        faults=(fault, *read.faults),
        object_arguments=False,
    )


def read_foreign_tools(params: dict[str, Json], faults: Faults) -> None:
    """Replaces tools and a tool choice in the form of another API by those of chat completions."""
    tools = params.get("tools")
    if isinstance(tools, list):
        params["tools"] = [_tool(tool, f"tools[{position}]", faults) for position, tool in enumerate(tools)]
    choice = params.get("tool_choice")
    if choice == "any":
        params["tool_choice"] = "required"
        faults.add("FOREIGN_FORM", -1, "tool_choice", _detail("tool_choice", _MISTRALS_API))
    if isinstance(choice, dict) and (read := _choice(choice)) is not None:
        params["tool_choice"], api = read
        faults.add("FOREIGN_FORM", -1, "tool_choice", _detail("tool_choice", api))


def _tool(tool: Json, place: str, faults: Faults) -> Json:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return tool
    kind = tool.get("type")
    read: Json
    if "input_schema" in tool and kind in (None, "custom"):
        read, api = _nested(tool, "function", {**_FUNCTION, "input_schema": "parameters"}), _MESSAGES_API
    elif kind in (None, "function") and "function" not in tool:
        read, api = _nested(tool, "function", _FUNCTION), _RESPONSES_API
    elif kind == "custom" and "custom" not in tool:
        read, api = _nested({**tool, **_format(tool)}, "custom", _CUSTOM), _RESPONSES_API
    else:
        return tool
    faults.add("FOREIGN_FORM", -1, place, _detail(place, api))
    return read


_FUNCTION: Final[Mapping[str, str]] = {name: name for name in ("name", "description", "parameters", "strict")}
_CUSTOM: Final[Mapping[str, str]] = {name: name for name in ("name", "description", "format")}


def _nested(tool: Mapping[str, Json], kind: str, names: Mapping[str, str]) -> dict[str, Json]:
    """Returns a tool with its own fields below its kind, under the names that they have there."""
    others = {name: value for name, value in tool.items() if name not in names}
    return {**others, "type": kind, kind: {names[name]: tool[name] for name in names if name in tool}}


def _format(tool: Mapping[str, Json]) -> dict[str, Json]:
    """Returns the format of a custom tool, whose grammar is an object of its own in chat completions."""
    form = tool.get("format")
    if not isinstance(form, dict) or form.get("type") != "grammar" or "grammar" in form:
        return {}
    grammar = {name: value for name, value in form.items() if name != "type"}
    return {"format": {"type": "grammar", "grammar": grammar}}


def _choice(choice: Mapping[str, Json]) -> tuple[Json, str] | None:
    match choice:
        case {"type": "tool", "name": str(name)}:
            return {"type": "function", "function": {"name": name}}, _MESSAGES_API
        case {"type": "auto" | "any" | "none" as kind}:
            return _CHOICES[kind], _MESSAGES_API
        case {"type": "function" | "custom" as kind, "name": str(name)} if kind not in choice:
            return {"type": kind, kind: {"name": name}}, _RESPONSES_API
        case _:
            return None


def has_foreign_blocks(turn: Turn) -> bool:
    """Returns whether a part of the message is a block of the Messages API."""
    return any([type(block) is File and block.kind in _BLOCKS for block in turn.blocks])


def with_blocks_read(turn: Turn, faults: Faults) -> list[Turn]:
    """Returns the turns of a message with blocks of the Messages API: those of its results, then that of the others,
    if there are any. Raises InvalidRequest like the reader of that API."""
    assert turn.index is not None  # a message of the request
    faults.add("FOREIGN_FORM", turn.index, ".content", _detail("content", _MESSAGES_API))
    reader = ContentReader(faults, Changes())
    known = IN_ASSISTANT if turn.role == "assistant" else IN_USER
    called = {call.id for call in turn.calls}
    blocks: list[Block] = []
    for position, block in enumerate(turn.blocks):
        if type(block) is not File or block.kind not in _BLOCKS:
            blocks.append(block)
            continue
        for _, read in reader.read([dict(block.part)], turn.index, f".content[{position}]", known):
            if isinstance(read, Image | File | ToolResult):
                blocks.append(msgspec.structs.replace(read, item=position))
            elif not isinstance(read, ToolCall):
                blocks.append(read)
            # Some clients write one call in both forms.
            elif read.id not in called:
                blocks.append(msgspec.structs.replace(read, item=None))
    results = [block for block in blocks if type(block) is ToolResult]
    others = [block for block in blocks if type(block) is not ToolResult]
    turns = [msgspec.structs.replace(turn.changed(result), role="tool") for result in results]
    return [*turns, turn.changed(*others)] if others or not results else turns


def _detail(param: str, api: str) -> str:
    return f"{param} has the form of {api}"
