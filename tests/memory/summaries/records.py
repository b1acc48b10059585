"""Records and conversations for the tests of compression."""

from collections.abc import Container, Sequence

from gateway.core.conversation import Conversation, Turn
from gateway.history.classify import system_prefix
from gateway.memory.history_digest import Boundary, history_digests
from gateway.memory.summaries.plan import SummaryRange
from gateway.memory.summaries.substitution import AppliedSummary, applied_to
from gateway.memory.summaries.summary import Cost, Item, Known, Producer, SummaryContent, SummaryRecord, summary_text
from tests.history.strategies import assistant, calling, numbered, result, system, user

SECRET = b"secret of the state"
TENANT = "team"
CONTENT = SummaryContent((Item("goal", "Port the parser.", (1,)),))


def boundaries(turns: tuple[Turn, ...]) -> tuple[Boundary, ...]:
    return history_digests(turns, SECRET, TENANT)


def newest_match(boundaries: Sequence[Boundary], digests: Container[bytes]) -> Boundary | None:
    """The boundary with the most turns whose digest is one of these."""
    return next((boundary for boundary in reversed(boundaries) if boundary.digest in digests), None)


def record_of(
    turns: tuple[Turn, ...],
    covered: int,
    *,
    generation: int = 1,
    content: SummaryContent = CONTENT,
    known: Known = Known(),  # noqa: B008
) -> SummaryRecord:
    """The record of a summary of the first turns behind the system run."""
    found = boundaries(turns)
    digest = next(boundary.digest for boundary in found if boundary.turns == covered)
    return SummaryRecord(
        tenant=TENANT,
        digest=digest,
        turns=covered,
        root=found[0].digest,
        generation=generation,
        parent=None,
        prompt_version=1,
        created=1_790_000_000.0,
        producer=Producer("assistant", "local", "small", "req_1"),
        cost=Cost(12_000, 800, False, 4_200, 40_000, 1_500),
        content=content,
        known=known,
        text=summary_text(covered, content, known),
    )


def cover(turns: tuple[Turn, ...], covered: int) -> SummaryRange:
    """A cover of the first turns behind the system run."""
    return SummaryRange(
        boundary=next(boundary for boundary in boundaries(turns) if boundary.turns == covered),
        start=0,
        previous=None,
        generation=1,
        result_limit=None,
        output_tokens=500,
        prose_tokens=400,
        words_tokens=2_000,
        max_calls=40,
        summary_limit=4_000,
        covered_tokens=40_000,
        view_before=60_000,
        view_after=20_000,
    )


def applied(turns: tuple[Turn, ...], covered: int, generation: int = 1) -> AppliedSummary:
    return applied_to(Conversation(turns), record_of(turns, covered, generation=generation))


def agent_history(rounds: int, size: int = 3_000) -> tuple[Turn, ...]:
    """One question, and an agent that works on it: in each round a call with a result of `size` characters."""
    turns = [system(), user("Fix the failing test.")]
    for number in range(rounds):
        turns += [calling(f"call_{number}"), result(f"call_{number}", f"{number}: " + "line of code\n" * (size // 13))]
    return numbered(*turns)


def chat_history(rounds: int, size: int = 3_000) -> tuple[Turn, ...]:
    """Questions and answers, of which each has `size` characters; a last question."""
    turns = [system()]
    for number in range(rounds):
        turns += [user(f"Question {number}?"), assistant(f"Answer {number}: " + "a few words " * (size // 12))]
    return numbered(*turns, user("And now?"))


def system_and(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The leading system turns, and those behind them."""
    start = system_prefix(turns)
    return turns[:start], turns[start:]
