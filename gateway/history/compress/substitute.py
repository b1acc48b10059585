"""Puts a summary in the place of the turns that it covers."""

from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.notices import Notice
from gateway.history.compress.chain import system_run
from gateway.history.compress.summary_record import SummaryRecord
from gateway.history.compress.view import repeated_turns


class AppliedSummary(msgspec.Struct, frozen=True):
    """A summary that applies to a request: the record, and the very turns behind the digest that matched.

    `covered` are those of the repaired conversation, behind the system run.
    """

    record: SummaryRecord
    covered: tuple[Turn, ...]

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        """Returns the conversation with one user turn for the covered ones, and the notice of it.

        The turn stands behind the system run. It is no system turn, because what a tool returned must not gain
        authority, and no assistant turn, because several providers want the user to begin. What the agent works on
        follows it once more where it is covered (`repeated_turns`).

        The conversation comes back unchanged, with a warning, where its turns are not those behind the digest.
        """
        turns = conversation.turns
        start = system_run(turns)
        behind = start + len(self.covered)
        if turns[start:behind] != self.covered or behind >= len(turns):
            return conversation, (MISMATCH,)
        stands_in = Turn("user", (Text(self.record.text),), synthesized=True, summary=True)
        again = [turns[position] for position in repeated_turns(turns, behind)]
        sent = (*turns[:start], stands_in, *again, *turns[behind:])
        return msgspec.structs.replace(conversation, turns=sent), (self._notice(turns, start, behind - 1),)

    def _notice(self, turns: tuple[Turn, ...], first: int, last: int) -> Notice:
        record = self.record
        left_out = record.known.words_left_out
        unsaid = f"; the words of {left_out} of these messages had no room in it" if left_out else ""
        detail = (
            f"messages {index_of(turns, first)} to {index_of(turns, last)} are sent as a summary of generation "
            f"{record.generation}, about {record.cost.covered_tokens} tokens as {record.cost.summary_tokens}{unsaid}"
        )
        return Notice("state", "changed", "HISTORY_SUMMARIZED", detail, index_of(turns, first))


def applied_to(conversation: Conversation, record: SummaryRecord) -> AppliedSummary:
    """Returns the summary for a repaired conversation in whose chain the record's digest stands.

    Raises ValueError for a conversation that is shorter than the record.
    """
    start = system_run(conversation.turns)
    covered = conversation.turns[start : start + record.turns]
    if len(covered) != record.turns:
        raise ValueError(f"the record covers {record.turns} turns, the conversation has {len(covered)}")
    return AppliedSummary(record, covered)


MISMATCH: Final = Notice(
    "state",
    "ignored",
    "SUMMARY_MISMATCH",
    "a stored summary was not used: it covers other messages than this request has",
    level="warning",
)


def index_of(turns: tuple[Turn, ...], position: int) -> int:
    """Returns the position by which the client knows the turn that stands at this one."""
    index = turns[position].index
    return position if index is None else index
