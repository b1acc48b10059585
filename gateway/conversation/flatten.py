"""A conversation -> one text, for backends that take nothing else: chronological, labelled, and impossible to forge."""

from typing import Final

import msgspec

from gateway.conversation.classify import classify
from gateway.conversation.sections import Section, sections_of
from gateway.conversation.styles import STYLES
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation


class Flattened(msgspec.Struct, frozen=True):
    """A conversation as text.

    `text` is all of it; `transcript` is the same without the leading system sections, for a wire that has a place
    of its own for `system_text` (their bare texts, joined by blank lines). `implicit_added` says that the text ends
    with a continuation turn that no client wrote.
    """

    text: str
    transcript: str
    system_text: str
    implicit_added: bool
    notices: tuple[Notice, ...]


def flatten(conversation: Conversation, policy: Policy) -> Flattened:
    """The conversation in the policy's style. Raises Unsupported for images and files unless they may be placeholders.

    A conversation that awaits its continuation ends with one instruction to the model, so that it answers instead of
    repeating the call; whether it does is decided by the turns, never by their wording.
    """
    classification = classify(conversation.turns)
    leading = sections_of(conversation.turns[: classification.system_prefix], policy)
    following = sections_of(conversation.turns[classification.system_prefix :], policy)
    sections = following.sections
    notices = [*leading.notices, *following.notices]
    if classification.awaiting_continuation:
        sections = (*sections, Section("user", policy.flatten.continuation))
        notices.append(CONTINUATION_ADDED)
    style = STYLES[policy.flatten.style]
    pieces = style.write((*leading.sections, *sections), policy.flatten.labels)
    return Flattened(
        text=style.join(pieces),
        transcript=style.join(pieces[len(leading.sections) :]),
        system_text="\n\n".join(section.text for section in leading.sections),
        implicit_added=classification.awaiting_continuation,
        notices=tuple(notices),
    )


CONTINUATION_ADDED: Final = Notice(
    "flatten",
    "added",
    "CONTINUATION_ADDED",
    "Added implicit continuation instruction for tool results",
    level="debug",
)
