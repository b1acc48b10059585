"""Calls in the deprecated form (`function_call`, role `function`): all of a history stays in it, or none of it."""

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.types import Conversation, Turn


def keep_one_form(conversation: Conversation, notices: list[Notice]) -> Conversation:
    """Write the deprecated messages anew as soon as another turn of calls or results has to be.

    A provider refuses a `tool` message that answers a `function_call`, and the other way round.
    """
    turns = conversation.turns
    rewritten = [turn for turn in turns if turn.source is None and (turn.calls or turn.results)]
    if not rewritten or not any(_is_deprecated(turn) for turn in turns):
        return conversation
    fitted: list[Turn] = []
    for turn in turns:
        if _is_deprecated(turn):
            notices.append(changed(turn, "DEPRECATED_FORM_CHANGED", "function_call sent as tool_calls"))
            turn = msgspec.structs.replace(turn, source=None)
        fitted.append(turn)
    return msgspec.structs.replace(conversation, turns=tuple(fitted))


def _is_deprecated(turn: Turn) -> bool:
    source = turn.source
    return source is not None and (source.get("role") == "function" or bool(source.get("function_call")))
