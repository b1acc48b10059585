"""Applies one provider's rules to a valid conversation: changes only what they require and reports every change."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.history.apply_profile.message_shape import (
    fit_arguments,
    fit_choice_fields,
    fit_content,
    fit_empty,
    fit_tool_name,
    keep_one_form,
)
from gateway.history.apply_profile.reasoning import fit_reasoning, fit_signatures
from gateway.history.apply_profile.renames import rename_identifiers
from gateway.history.apply_profile.roles import (
    begin_with_user,
    bridge_after_tools,
    end_with_user,
    fit_developer,
    fold_system,
    merge_neighbours,
)
from gateway.history.apply_profile.tool_turns import fit_result_media, tool_turns_as_text
from gateway.providers.profile import NEUTRAL, Alphabet, Profile
from gateway.tool_calls.identifier_map import IdentifierMap

__all__ = ["ProfileResult", "apply_profile"]

ANY_ID: Final = Alphabet()

Step = Callable[[tuple[Turn, ...], Profile, list[Notice]], tuple[Turn, ...]]

# Turns are first put in order, then each is shaped; a step that joins turns must not undo a shape.
STEPS: Final[tuple[Step, ...]] = (
    tool_turns_as_text,
    fit_result_media,
    fit_developer,
    fold_system,
    begin_with_user,
    end_with_user,
    fit_reasoning,
    fit_signatures,
    bridge_after_tools,
    merge_neighbours,
    fit_tool_name,
    fit_arguments,
    fit_empty,
    fit_content,
)

# What a profile says of the form of a message of chat completions, which one of the Messages API has not.
_CHAT_FORM: Final = (
    "arguments",
    "choice_fields",
    "content",
    "developer",
    "empty_beside_calls",
    "reasoning",
    "reasoning_field",
    "tool_content",
    "tool_name",
)


class ProfileResult(msgspec.Struct, frozen=True):
    """A conversation that the provider accepts, the notices of the changes, and the map that restores identifiers."""

    conversation: Conversation
    notices: tuple[Notice, ...] = ()
    identifiers: IdentifierMap = IdentifierMap()


def apply_profile(
    conversation: Conversation,
    profile: Profile,
    *,
    result_media: bool = False,
    call_id: Alphabet = ANY_ID,
    messages: bool = False,
) -> ProfileResult:
    """Applies a profile. Pure and deterministic. `result_media`: the results of the backend's wire hold images and
    files. `call_id` are the ids that its wire takes. `messages`: the wire is that of the Messages API.

    Raises InvalidRequest for more tools than the provider takes.
    """
    notices: list[Notice] = []
    if result_media and profile.result_media != "keep":
        profile = msgspec.structs.replace(profile, result_media="keep")
    if profile.call_id != ANY_ID or profile.reused_ids == "keep":
        call_id = profile.call_id
    if messages and profile.messages is not None:
        profile = msgspec.structs.replace(profile, **{name: getattr(NEUTRAL, name) for name in _CHAT_FORM})
    if profile == NEUTRAL:
        identifiers = IdentifierMap()
        if call_id != ANY_ID:
            conversation, identifiers = rename_identifiers(conversation, call_id, profile.tool_names, notices)
        return ProfileResult(keep_one_form(conversation, notices), tuple(notices), identifiers)
    if profile.max_tools is not None and (count := _offered(conversation)) > profile.max_tools:
        raise InvalidRequest(
            f"This model's provider accepts at most {profile.max_tools} tools; the request has {count}. "
            "Send fewer tools.",
            param=conversation.paths.param("tools"),
            code="array_above_max_length",
            extra={"rule": "TOOLS_COUNT", "index": -1},
        )
    # Fields that a client should not have sent back are reported while their message is still unchanged. Names and ids
    # follow: what the other steps derive from them must be acceptable as well.
    turns = fit_choice_fields(conversation.turns, profile, notices)
    conversation, identifiers = rename_identifiers(
        _with_turns(conversation, turns), call_id, profile.tool_names, notices
    )
    if profile.finish_reason == "optional":
        conversation = msgspec.structs.replace(conversation, finish_optional=True)
    turns = conversation.turns
    for step in STEPS:
        turns = step(turns, profile, notices)
    return ProfileResult(keep_one_form(_with_turns(conversation, turns), notices), tuple(notices), identifiers)


def _offered(conversation: Conversation) -> int:
    """Counts the tools that are sent; a provider also counts those of other types than functions."""
    lists = [tools for field in ("tools", "functions") if isinstance(tools := conversation.params.get(field), list)]
    return max(len(conversation.tools), *map(len, lists), 0)


def _with_turns(conversation: Conversation, turns: tuple[Turn, ...]) -> Conversation:
    return conversation if turns == conversation.turns else msgspec.structs.replace(conversation, turns=turns)
