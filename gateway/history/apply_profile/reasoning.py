"""Fits the reasoning of earlier turns to the provider: some refuse it, some refuse its absence."""

from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, Reasoning, Turn
from gateway.core.notices import Notice
from gateway.history.apply_profile.changes import changed
from gateway.providers.profile import Profile

# Text in these fields is reasoning wherever a message is read; any other value in them is kept unchanged.
_TEXT_FIELDS: Final = frozenset({"reasoning_content", "reasoning"})
_REASONING_FIELDS: Final = _TEXT_FIELDS | {"reasoning_details"}


def fit_reasoning(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Drops it, renames its field, or replaces lost but required reasoning, as the profile says."""
    if profile.reasoning == "keep" and profile.reasoning_field is None:
        return turns
    last_user = max((at for at, turn in enumerate(turns) if turn.role == "user"), default=-1)
    profiled: list[Turn] = []
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
        profiled.append(turn)
    return tuple(profiled)


def _dropped(turn: Turn, notices: list[Notice]) -> Turn:
    carried = _REASONING_FIELDS & {*turn.extra, *(() if turn.source is None else turn.source.unread)}
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
    """Moves the turn's reasoning to the field that the provider reads, and leaves nothing but text in that field."""
    field = profile.reasoning_field
    if field is None:
        return turn
    turn = _without_values(_read(turn, field), field, notices)
    thoughts = [block for block in turn.blocks if isinstance(block, Reasoning)]
    if all(block.field == field for block in thoughts):
        return turn
    notices.append(changed(turn, "REASONING_RENAMED", f"reasoning of an earlier turn sent as {field}"))
    # Some servers write the same text into two fields, and clients send both back.
    texts = dict.fromkeys(block.text for block in thoughts)
    others = [block for block in turn.blocks if not isinstance(block, Reasoning)]
    return turn.changed(*(Reasoning(text, field) for text in texts), *others)


def _read(turn: Turn, field: str) -> Turn:
    """Reads a field that is known for this provider only; the turn keeps its source."""
    text = turn.extra.get(field)
    if not isinstance(text, str):
        return turn
    extra = {key: value for key, value in turn.extra.items() if key != field}
    return msgspec.structs.replace(turn, blocks=(Reasoning(text, field), *turn.blocks), extra=extra)


def _without_values(turn: Turn, field: str, notices: list[Notice]) -> Turn:
    """Drops values that are no text from the provider's field, and any value from the other fields."""
    carried = sorted({field, *_TEXT_FIELDS} & turn.extra.keys())
    if not carried:
        return turn
    names = ", ".join(carried)
    notices.append(changed(turn, "REASONING_DROPPED", f"{names} of an earlier turn is not text", action="dropped"))
    extra = {key: value for key, value in turn.extra.items() if key not in carried}
    return msgspec.structs.replace(turn, extra=extra, source=None)


def _completed(turn: Turn, profile: Profile, notices: list[Notice]) -> Turn:
    if profile.reasoning_missing is None or any(isinstance(block, Reasoning) for block in turn.blocks):
        return turn
    field = profile.reasoning_field or "reasoning_content"
    if field in turn.extra:
        # What is no text would be sent in the place of the stand-in.
        detail = f"{field} of an earlier turn is not text"
        notices.append(changed(turn, "REASONING_DROPPED", detail, action="dropped"))
        turn = msgspec.structs.replace(turn, extra={key: turn.extra[key] for key in turn.extra if key != field})
    notices.append(
        changed(turn, "REASONING_ADDED", "placeholder sent for missing reasoning", action="added", level="warning")
    )
    return turn.changed(Reasoning(profile.reasoning_missing, field), *turn.blocks)


def fit_signatures(turns: tuple[Turn, ...], profile: Profile, notices: list[Notice]) -> tuple[Turn, ...]:
    """Adds the profile's stand-in to a turn whose first call lost its thought signature; Gemini refuses its absence."""
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
        changed(
            turn, "SIGNATURE_ADDED", "placeholder sent for a missing thought signature", action="added", level="warning"
        )
    )
    others: dict[str, Json] = dict(content) if isinstance(content, Mapping) else {}
    own: dict[str, Json] = dict(google) if isinstance(google, Mapping) else {}
    extra = {**first.extra, "extra_content": {**others, "google": {**own, "thought_signature": signature}}}
    signed = msgspec.structs.replace(first, extra=extra)
    return turn.changed(*(signed if block is first else block for block in turn.blocks))
