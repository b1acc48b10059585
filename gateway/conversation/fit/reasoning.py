"""The reasoning of earlier turns: some providers refuse it, some refuse its absence."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.conversation.fit.changes import changed
from gateway.notices import Notice
from gateway.profiles import Profile
from gateway.types import Json, Reasoning, ToolCall, Turn

_REASONING_FIELDS: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


def fit_reasoning(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Drop it, rename its field, or put a stand-in where a required one was lost, as the profile says."""
    if profile.reasoning == "keep" and profile.reasoning_field is None:
        return turns
    last_user = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=-1)
    fitted: list[Turn] = []
    for position, turn in enumerate(turns):
        if turn.role == "assistant":
            if profile.reasoning == "drop":
                turn = _dropped(turn, notices)
            else:
                turn = _renamed(turn, profile, notices)
                in_reach = profile.reasoning == "echo_all_tool_turns" or (
                    profile.reasoning == "echo_in_tool_loop" and position > last_user
                )
                if in_reach and turn.calls:
                    turn = _completed(turn, profile, notices)
        fitted.append(turn)
    return tuple(fitted)


def _dropped(turn: Turn, notices: list[Notice]) -> Turn:
    carried = _REASONING_FIELDS & turn.extra.keys()
    if not carried and not any(isinstance(block, Reasoning) for block in turn.blocks):
        return turn
    notices.append(changed(turn, "REASONING_DROPPED", "reasoning of an earlier turn not sent", action="dropped"))
    return msgspec.structs.replace(
        turn,
        blocks=tuple(block for block in turn.blocks if not isinstance(block, Reasoning)),
        extra={key: value for key, value in turn.extra.items() if key not in carried},
        source=None,
    )


def _renamed(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    field = profile.reasoning_field
    if field is None or all(not isinstance(block, Reasoning) or block.field == field for block in turn.blocks):
        return turn
    notices.append(changed(turn, "REASONING_RENAMED", f"reasoning of an earlier turn sent as {field}"))
    return turn.changed(
        *(Reasoning(block.text, field) if isinstance(block, Reasoning) else block for block in turn.blocks)
    )


def _completed(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if profile.reasoning_missing is None or any(isinstance(block, Reasoning) for block in turn.blocks):
        return turn
    notices.append(
        changed(turn, "REASONING_ADDED", "stand-in for reasoning that was lost", action="added", level="warning")
    )
    stand_in = Reasoning(profile.reasoning_missing, profile.reasoning_field or "reasoning_content")
    return turn.changed(stand_in, *turn.blocks)


def fit_signatures(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Gemini refuses a first call of a batch whose thought signature was lost."""
    if profile.missing_signature is None:
        return turns
    return tuple(_signed(turn, profile.missing_signature, notices) if turn.calls else turn for turn in turns)


def _signed(turn: Turn, signature: str, notices: list[Notice]) -> Turn:
    first = turn.calls[0]
    content = first.extra.get("extra_content")
    google = content.get("google") if isinstance(content, Mapping) else None
    if isinstance(google, Mapping) and google.get("thought_signature"):
        return turn
    notices.append(
        changed(turn, "SIGNATURE_ADDED", "stand-in for a lost thought signature", action="added", level="warning")
    )
    others: dict[str, Json] = dict(content) if isinstance(content, Mapping) else {}
    own: dict[str, Json] = dict(google) if isinstance(google, Mapping) else {}
    extra = {**first.extra, "extra_content": {**others, "google": {**own, "thought_signature": signature}}}
    signed = ToolCall(first.id, first.name, first.arguments, extra)
    return turn.changed(*(signed if block is first else block for block in turn.blocks))
