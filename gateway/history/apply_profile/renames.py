"""Replaces, one to one throughout the request, call ids and function names that the provider refuses, also the names in
its parameters."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Block, Conversation, Json, JsonObject, NamedTool, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice, NoticeRule
from gateway.providers.profile import Alphabet
from gateway.tool_calls.identifier_map import IdentifierMap, rename


def rename_identifiers(
    conversation: Conversation, call_id: Alphabet, tool_names: Alphabet, notices: list[Notice]
) -> tuple[Conversation, IdentifierMap]:
    """Returns the conversation with acceptable identifiers, and the map that restores the client's own."""
    called, call_ids, answered = _in_history(conversation.turns)
    names = rename((*_offered(conversation), *called, *_answering(conversation)), tool_names)
    ids = rename((*call_ids, *answered), call_id)
    if not names and not ids:
        return conversation, IdentifierMap()
    notices.extend(_rename_notices("TOOL_NAME_RENAMED", "tool name", names))
    notices.extend(_rename_notices("CALL_ID_RENAMED", "tool call id", ids))
    choice = conversation.tool_choice
    renamed = msgspec.structs.replace(
        conversation,
        turns=tuple(_renamed_turn(turn, ids, names) for turn in conversation.turns),
        tools=tuple(
            msgspec.structs.replace(tool, name=names[tool.name]) if tool.name in names else tool
            for tool in conversation.tools
        ),
        tool_choice=NamedTool(names.get(choice.name, choice.name)) if isinstance(choice, NamedTool) else choice,
        params=with_names(conversation.params, lambda name: names.get(name, name)) if names else conversation.params,
    )
    return renamed, IdentifierMap(ids, names)


def _in_history(turns: Sequence[Turn]) -> tuple[list[str], list[str], list[str]]:
    """Returns the names of all calls, their ids, and the ids of all results."""
    names: list[str] = []
    calls: list[str] = []
    results: list[str] = []
    for turn in turns:
        for block in turn.blocks:
            if type(block) is ToolCall:
                names.append(block.name)
                calls.append(block.id)
            elif type(block) is ToolResult:
                results.append(block.call_id)
    return names, calls, results


def _offered(conversation: Conversation) -> list[str]:
    return [*names_in(conversation.params), *(tool.name for tool in conversation.tools)]


def _answering(conversation: Conversation) -> Iterator[str]:
    """Yields the names of tool turns, which are function names unless a client invented them."""
    yield from (turn.name for turn in conversation.turns if turn.role == "tool" and turn.name is not None)


def _rename_notices(rule: NoticeRule, what: str, renamed: Mapping[str, str]) -> list[Notice]:
    return [
        Notice(
            "profile", "changed", rule, f"{what} {own!r} sent as {sent!r} and restored in the response", level="debug"
        )
        for own, sent in renamed.items()
    ]


def _renamed_turn(turn: Turn, ids: Mapping[str, str], names: Mapping[str, str]) -> Turn:
    blocks = tuple(_renamed_block(block, ids, names) for block in turn.blocks)
    name = names.get(turn.name, turn.name) if turn.role == "tool" and turn.name is not None else turn.name
    if name == turn.name and all(new is old for new, old in zip(blocks, turn.blocks, strict=True)):
        return turn
    return msgspec.structs.replace(turn, blocks=blocks, name=name, source=None)


def _renamed_block(block: Block, ids: Mapping[str, str], names: Mapping[str, str]) -> Block:
    if isinstance(block, ToolCall) and (block.id in ids or block.name in names):
        return msgspec.structs.replace(block, id=ids.get(block.id, block.id), name=names.get(block.name, block.name))
    if isinstance(block, ToolResult) and block.call_id in ids:
        return msgspec.structs.replace(block, call_id=ids[block.call_id])
    return block


Rename: TypeAlias = Callable[[str], str]

_KINDS: Final = ("function", "custom")


def names_in(params: JsonObject) -> list[str]:
    """Returns every name in `tools`, `functions`, `tool_choice` (`allowed_tools` too) and `function_call`."""
    names: list[str] = []

    def noted(name: str) -> str:
        names.append(name)
        return name

    with_names(params, noted)
    return names


def with_names(params: JsonObject, rename: Rename) -> JsonObject:
    """Returns the request with every such name replaced; the fields keep everything else."""
    named = {field: write(params[field], rename) for field, write in _FIELDS.items() if params.get(field)}
    return {**params, **named} if named else params


def _named_entry(entry: Json, rename: Rename) -> Json:
    """Returns an entry of `tools`, or a choice of the same shape, with its name replaced; itself if unchanged."""
    if isinstance(entry, dict):
        for kind in _KINDS:
            if kind in entry and (renamed := _function(entry[kind], rename)) is not entry[kind]:
                entry = {**entry, kind: renamed}
    return entry


def _function(function: Json, rename: Rename) -> Json:
    if isinstance(function, dict) and isinstance(name := function.get("name"), str) and (new := rename(name)) != name:
        return {**function, "name": new}
    return function


def _functions(functions: Json, rename: Rename) -> Json:
    return [_function(entry, rename) for entry in functions] if isinstance(functions, list) else functions


def _tools(tools: Json, rename: Rename) -> Json:
    return [_named_entry(entry, rename) for entry in tools] if isinstance(tools, list) else tools


def _choice(choice: Json, rename: Rename) -> Json:
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if isinstance(choice, dict) and isinstance(allowed, dict):
        return {**choice, "allowed_tools": {**allowed, "tools": _tools(allowed.get("tools"), rename)}}
    return _named_entry(choice, rename)


_FIELDS: Final[Mapping[str, Callable[[Json, Rename], Json]]] = {
    "tools": _tools,
    "functions": _functions,
    "tool_choice": _choice,
    "function_call": _function,
}
