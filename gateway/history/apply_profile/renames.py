"""Replaces, one to one throughout the request, call ids and function names that the provider refuses."""

from collections.abc import Iterator, Mapping

import msgspec

from gateway.core.conversation import Block, Conversation, NamedTool, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.named_tools import names_in, with_names
from gateway.providers.profile import Alphabet
from gateway.tool_calls.identifier_map import IdentifierMap, rename


def rename_identifiers(
    conversation: Conversation, call_id: Alphabet, tool_names: Alphabet, notices: list[Notice]
) -> tuple[Conversation, IdentifierMap]:
    """Returns the conversation with acceptable identifiers, and the map that restores the client's own."""
    calls = [call for turn in conversation.turns for call in turn.calls]
    names = rename((*_offered(conversation), *(call.name for call in calls), *_answering(conversation)), tool_names)
    ids = rename(
        (*(call.id for call in calls), *(result.call_id for turn in conversation.turns for result in turn.results)),
        call_id,
    )
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


def _offered(conversation: Conversation) -> list[str]:
    return [*names_in(conversation.params), *(tool.name for tool in conversation.tools)]


def _answering(conversation: Conversation) -> Iterator[str]:
    """Yields the names of tool turns, which are function names unless a client invented them."""
    yield from (turn.name for turn in conversation.turns if turn.role == "tool" and turn.name is not None)


def _rename_notices(rule: str, what: str, renamed: Mapping[str, str]) -> list[Notice]:
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
