"""Finds what a provider refuses in a history beyond the message protocol: thinking that it did not sign, blank text,
ids of calls in a form of their own.

No such request is sent: the adapter leaves these out or renames them. They are reported to whoever looks for the cause
of a refusal that a client got without the gateway.
"""

from collections.abc import Iterator
from typing import Final

from gateway.adapter import Capabilities
from gateway.core.conversation import Conversation, Turn, Violation, item_of
from gateway.core.provider_state import is_unsigned
from gateway.core.rules import violation
from gateway.history.validate import validate
from gateway.providers.messages_rules import NO_DEMANDS
from gateway.providers.profile import NEUTRAL, Alphabet, Profile
from gateway.tool_calls.identifier_map import rename

_NO_BACKEND: Final = Capabilities()
_ANY_ID: Final = Alphabet()
_MESSAGES: Final = "anthropic_messages"


def refused_history(
    conversation: Conversation, profile: Profile = NEUTRAL, capabilities: Capabilities | None = None
) -> tuple[Violation, ...]:
    """Returns the violations that `validate` finds, and what the provider of the profile refuses beyond them, by
    message index. Where the profile says nothing, the capabilities of the backend's adapter decide."""
    declared = _NO_BACKEND if capabilities is None else capabilities
    messages = profile.messages or declared.messages
    found = [*validate(conversation, profile)]
    # Anthropic's rule for thinking holds where nothing says otherwise.
    if conversation.dialect == _MESSAGES and (messages is None or messages.thinking != "any"):
        found += _unsigned_thinking(conversation)
    if (messages or NO_DEMANDS).blank_text == "drop":
        found += _blank_texts(conversation)
    alphabet = profile.call_id if profile.call_id != _ANY_ID else declared.call_id
    if alphabet != _ANY_ID:
        found += _refused_ids(conversation, alphabet)
    return tuple(sorted(found, key=lambda one: one.index))


def _unsigned_thinking(conversation: Conversation) -> Iterator[Violation]:
    """Yields a violation for each block of thinking without a signature that a client of the Messages API returns."""
    paths = conversation.paths
    for turn in conversation.turns:
        for item, block in _parts(turn):
            if isinstance(block, dict) and is_unsigned(block) and turn.index is not None:
                place = paths.part.format(turn=turn.index, item=item)
                yield violation("THINKING_UNSIGNED", turn.index, param=place, paths=paths)


def _blank_texts(conversation: Conversation) -> Iterator[Violation]:
    """Yields a violation for each part of text with nothing but blanks, and for each turn of nothing else."""
    paths = conversation.paths
    for turn in conversation.turns:
        if turn.index is None or turn.source is None:
            continue
        content = turn.source.value.get("content")
        if isinstance(content, str) and not content.strip() and not turn.calls and not turn.results:
            yield violation(
                "TEXT_BLANK", turn.index, param=f"{paths.turn.format(turn=turn.index)}.content", paths=paths
            )
        for item, part in _parts(turn):
            text = part.get("text") if isinstance(part, dict) else None
            if isinstance(text, str) and not text.strip():
                place = paths.part.format(turn=turn.index, item=item)
                yield violation("TEXT_BLANK", turn.index, param=place, paths=paths)


def _parts(turn: Turn) -> Iterator[tuple[int, object]]:
    content = None if turn.source is None else turn.source.value.get("content")
    yield from enumerate(content if isinstance(content, list) else ())


def _refused_ids(conversation: Conversation, alphabet: Alphabet) -> Iterator[Violation]:
    """Yields a violation for each call whose id the provider does not accept."""
    paths = conversation.paths
    calls = [
        (turn.index, ordinal, call)
        for turn in conversation.turns
        if turn.index is not None
        for ordinal, call in enumerate(turn.calls)
        if call.id and not call.id_derived
    ]
    refused = rename([call.id for _, _, call in calls], alphabet)
    for index, ordinal, call in calls:
        if call.id in refused:
            place = paths.call_id.format(turn=index, item=item_of(call, ordinal))
            detail = f"the id {call.id!r} has characters or a length that the provider refuses"
            yield violation("CALL_ID_SHAPE", index, param=place, detail=detail, tool_call_id=call.id, paths=paths)
