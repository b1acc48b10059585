"""Fits a valid conversation to the rules of one provider: only what must change changes, and every change is told."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.conversation.fit.choice import fit_choice_fields
from gateway.conversation.fit.form import keep_one_form
from gateway.conversation.fit.identifiers import rename_identifiers
from gateway.conversation.fit.order import bridge_after_tools, merge_neighbours
from gateway.conversation.fit.prose import tool_turns_as_text
from gateway.conversation.fit.reasoning import fit_reasoning, fit_signatures
from gateway.conversation.fit.roles import fit_developer, fold_system
from gateway.conversation.fit.shape import fit_arguments, fit_content, fit_empty, fit_tool_name
from gateway.errors import InvalidRequest
from gateway.notices import Notice
from gateway.profiles import NEUTRAL, Profile
from gateway.tools.idmap import IdMap
from gateway.types import Conversation, Turn

__all__ = ["Fitted", "fit"]

Step = Callable[[tuple[Turn, ...], Profile, list[Notice]], tuple[Turn, ...]]

# Turns are first put in order, then each is shaped; a step that joins turns must not undo a shape.
STEPS: Final[tuple[Step, ...]] = (
    tool_turns_as_text,
    fit_developer,
    fold_system,
    fit_choice_fields,
    fit_reasoning,
    fit_signatures,
    bridge_after_tools,
    merge_neighbours,
    fit_tool_name,
    fit_arguments,
    fit_empty,
    fit_content,
)


class Fitted(msgspec.Struct, frozen=True):
    """A conversation the provider takes, what was changed, and the map that restores the client's identifiers."""

    conversation: Conversation
    notices: tuple[Notice, ...] = ()
    idmap: IdMap = IdMap()


def fit(conversation: Conversation, profile: Profile) -> Fitted:
    """Apply a profile. Pure and deterministic. Raises InvalidRequest for more tools than the provider takes."""
    notices: list[Notice] = []
    if profile == NEUTRAL:
        return Fitted(keep_one_form(conversation, notices), tuple(notices))
    if profile.max_tools is not None and len(conversation.tools) > profile.max_tools:
        raise InvalidRequest(
            f"This model's provider takes at most {profile.max_tools} tools; the request has "
            f"{len(conversation.tools)}. Offer fewer tools.",
            param="tools",
            code="array_above_max_length",
            extra={"rule": "TOOLS_COUNT", "index": -1},
        )
    turns = conversation.turns
    for step in STEPS:
        turns = step(turns, profile, notices)
    if turns != conversation.turns:
        conversation = msgspec.structs.replace(conversation, turns=turns)
    conversation, idmap = rename_identifiers(conversation, profile, notices)
    return Fitted(keep_one_form(conversation, notices), tuple(notices), idmap)
