"""Keeps the deprecated form of calls (`function_call`, role `function`) for a whole history or for none of it."""

import msgspec

from gateway.core.conversation import Conversation, ToolCall, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed


def keep_one_form(conversation: Conversation, notices: list[Notice]) -> Conversation:
    """Rewrites the deprecated messages as soon as another turn of calls or results must be rewritten.

    A provider refuses a `tool` message that answers a `function_call`, and a `function` message that answers one of
    `tool_calls`.
    """
    turns = conversation.turns
    rewritten = [turn for turn in turns if turn.source is None and (turn.calls or turn.results)]
    if not rewritten or not any(_is_deprecated(turn) for turn in turns):
        return conversation
    profiled: list[Turn] = []
    for turn in turns:
        if _is_deprecated(turn):
            notices.append(changed(turn, "DEPRECATED_FORM_CHANGED", "function_call sent as tool_calls"))
            turn = msgspec.structs.replace(turn, source=None)
        profiled.append(turn)
    return msgspec.structs.replace(conversation, turns=tuple(profiled))


def _is_deprecated(turn: Turn) -> bool:
    """A call or a result without an id has the deprecated form; once it is written anew, it has the derived id."""
    return turn.source is not None and any(
        isinstance(block, ToolCall | ToolResult) and block.id_derived for block in turn.blocks
    )
