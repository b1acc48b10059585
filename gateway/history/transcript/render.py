"""Renders a conversation as one chronological, labelled and unforgeable text, for backends that accept only text."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.classify import classify
from gateway.history.transcript.sections import Section, sections_of
from gateway.history.transcript.styles import STYLES


def in_call_order(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], list[Notice]]:
    """Sorts the results directly behind each turn with calls by the order of these calls: not every style writes
    the ids at both, and small models do not compare ids.

    Results with equal or unknown ids keep their order. Turns that are sorted already stay unchanged; of a turn with
    several results that are not, each result becomes a turn.
    """
    ordered: list[Turn] = []
    notices: list[Notice] = []
    position = 0
    while position < len(turns):
        turn = turns[position]
        position += 1
        ordered.append(turn)
        if turn.role == "assistant" and len(turn.blocks) > 1 and len(turn.calls) > 1:
            stop = position
            while stop < len(turns) and turns[stop].results:
                stop += 1
            ordered += _in_order(turn, turns[position:stop], notices)
            position = stop
    return tuple(ordered), notices


def _in_order(calling: Turn, answering: Sequence[Turn], notices: list[Notice]) -> Sequence[Turn]:
    calls = calling.calls
    ranks: dict[str, int] = {}
    for rank, call in enumerate(calls):
        ranks.setdefault(call.id, rank)
    results = [(turn, result) for turn in answering for result in turn.results]
    in_order = sorted(results, key=lambda found: ranks.get(found[1].call_id, len(calls)))
    if in_order == results:
        return answering
    detail = f"the results of {len(calls)} calls were put into the order of their calls"
    notices.append(Notice("flatten", "moved", "RESULTS_IN_CALL_ORDER", detail, index=calling.index))
    return [turn if len(turn.results) == 1 else turn.changed(result) for turn, result in in_order]


class Flattened(msgspec.Struct, frozen=True, dict=True):
    """A conversation as text: the `pieces` of its sections, which `join` makes a text of.

    `leading` counts those of the leading system sections, and `system_text` are their bare texts, joined by blank
    lines. `implicit_added` says that the text ends with a continuation turn that no client wrote.
    """

    pieces: Sequence[str]
    leading: int
    join: Callable[[Sequence[str]], str]
    system_text: str
    implicit_added: bool
    notices: tuple[Notice, ...]

    @cached_property
    def text(self) -> str:
        """Returns all of it."""
        return self.join(self.pieces)

    @cached_property
    def transcript(self) -> str:
        """Returns it without the leading system sections, for a wire with a separate field for `system_text`."""
        return self.join(self.pieces[self.leading :])


def flatten(conversation: Conversation, policy: Policy) -> Flattened:
    """Renders the conversation in the policy's style.

    A conversation that awaits its continuation ends with one instruction to the model, so that it responds instead of
    repeating the call; the turns decide this, never their wording. Results of parallel calls stand in the order of
    their calls. Raises Unsupported for images and files unless the policy allows placeholders.
    """
    turns, moved = in_call_order(conversation.turns)
    classification = classify(turns, ends_with_result=conversation.ends_with_result)
    leading = sections_of(turns[: classification.system_prefix], policy, conversation.paths)
    following = sections_of(turns[classification.system_prefix :], policy, conversation.paths)
    sections = following.sections
    notices = [*moved, *leading.notices, *following.notices]
    if classification.awaiting_continuation:
        sections = (*sections, Section("user", policy.flatten.continuation))
        notices.append(CONTINUATION_ADDED)
    style = STYLES[policy.flatten.style]
    pieces = style.write((*leading.sections, *sections), policy.flatten.labels)
    return Flattened(
        pieces,
        len(leading.sections),
        style.join,
        system_text="\n\n".join(section.text for section in leading.sections),
        implicit_added=classification.awaiting_continuation,
        notices=tuple(notices),
    )


def rendered_turns(conversation: Conversation, policy: Policy) -> list[tuple[Turn, str]]:
    """Returns the pieces that `flatten` writes, each with its turn. Raises Unsupported like it."""
    turns, _ = in_call_order(conversation.turns)
    found = [(turn, one) for turn in turns for one in sections_of([turn], policy, conversation.paths).sections]
    pieces = STYLES[policy.flatten.style].write([section for _, section in found], policy.flatten.labels)
    return [(turn, piece) for (turn, _), piece in zip(found, pieces, strict=True)]


CONTINUATION_ADDED: Final = Notice(
    "flatten",
    "added",
    "CONTINUATION_ADDED",
    "Added implicit continuation instruction for tool results",
    level="debug",
)
