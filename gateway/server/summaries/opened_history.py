"""Opens the compactions of the gateway in a client's history: their summaries stand in the place of what they cover."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from gateway.core.conversation import Conversation, Text, Turn, index_of
from gateway.core.notices import Notice
from gateway.core.sealed_compaction import behind_sealed, sealed_text_of, unreadable_compaction
from gateway.core.tokens import estimate_text, estimate_turn, estimate_view
from gateway.history.classify import system_prefix
from gateway.memory.summaries.sealed_summary import SealedSummary, SealUnreadable

if TYPE_CHECKING:
    from gateway.server.summaries.seal import SummarySeal


class Opened(msgspec.Struct, frozen=True):
    """A conversation with the text of the newest sealed summary in its place, that summary (None: there is none), and
    the notices."""

    conversation: Conversation
    summary: SealedSummary | None = None
    notices: tuple[Notice, ...] = ()


def open_history(seal: "SummarySeal", tenant: str, conversation: Conversation) -> Opened:
    """Returns the conversation with its newest sealed summary opened. An older one is left out: the newest one covers
    it. Raises InvalidRequest for one that cannot be opened: the same error for whatever reason."""
    turns = conversation.turns
    sealed = [position for position, turn in enumerate(turns) if turn.compaction and sealed_text_of(turn) is not None]
    if not sealed:
        return Opened(conversation)
    newest = sealed[-1]
    text = sealed_text_of(turns[newest])
    assert text is not None  # it has just been found
    index = index_of(turns, newest)
    try:
        summary = seal.open(tenant, text)
    except SealUnreadable:
        raise unreadable_compaction(conversation.paths.turn.format(turn=index)) from None
    stands_in = stand_in(summary, turns[newest].index)
    notices = [_opened(summary, stands_in, index)]
    if turns[newest].role == "assistant":
        # A block of Messages stands for everything before it, and the model's own words follow it.
        kept = (*turns[: system_prefix(turns)], stands_in, *_behind(turns[newest]), *turns[newest + 1 :])
    else:
        older = frozenset(sealed[:-1])
        kept = tuple(
            stands_in if position == newest else turn for position, turn in enumerate(turns) if position not in older
        )
        notices += [_superseded(index_of(turns, position)) for position in sealed[:-1]]
    return Opened(msgspec.structs.replace(conversation, turns=kept), summary, tuple(notices))


def stand_in(summary: SealedSummary, index: int | None = None) -> Turn:
    """Returns the turn that a model reads in the place of the covered ones."""
    return Turn("user", (Text(summary.text),), index=index, synthesized=True, summary=True, compaction=True)


def is_due(opened: Opened, above: int) -> bool:
    """Returns whether a history has more tokens than `above`, as it would be sent, and a compaction would make it
    shorter: the model has answered in it, and more is said in it than its last compaction holds."""
    turns = opened.conversation.turns
    if not any(turn.role == "assistant" for turn in turns) or estimate_view(opened.conversation) <= above:
        return False
    held = sum(estimate_turn(turn) for turn in turns if turn.summary)
    return sum(estimate_turn(turn) for turn in turns[system_prefix(turns) :]) > 2 * held


def _behind(turn: Turn) -> Sequence[Turn]:
    """Returns what the model said behind the last sealed summary in its turn."""
    rest = behind_sealed(turn)
    return (msgspec.structs.replace(turn.changed(*rest), compaction=False),) if rest else ()


def _opened(summary: SealedSummary, stands_in: Turn, index: int) -> Notice:
    tokens = estimate_text(stands_in.text)
    detail = f"a compaction that stands for {summary.turns} messages is sent as its summary, about {tokens} tokens"
    return Notice("state", "changed", "COMPACTION_OPENED", detail, index=index)


def _superseded(index: int) -> Notice:
    detail = "a compaction is left out, because a newer one stands for what is before it"
    return Notice("state", "dropped", "COMPACTION_SUPERSEDED", detail, index=index)
