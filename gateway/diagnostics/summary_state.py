"""Defines what explain shows of compression: the size of a conversation, its summary, and what a job would cover.

The values load nothing of compression: `explain_summary` fills them where it is on.
"""

from typing import Literal, TypeAlias

import msgspec

# Why no job would start, beside the reasons of a plan: too few requests have carried the boundary (`unseen`); a job has
# failed and the next one waits (`backoff`), or no other one follows (`abandoned`); six failures in an hour (`hourly`);
# the tokens of the day (`budget`); a job runs (`running`); the store is away (`store`); the model, the key, the header
# x-dragoman-state or the client's own context_management switches compression off (`off`).
NotPlanned: TypeAlias = Literal["below", "futile", "small", "input"]
NotDue: TypeAlias = Literal["unseen", "backoff", "abandoned", "hourly", "budget", "running", "store", "off"]
WhyNot: TypeAlias = NotPlanned | NotDue


class SeenBoundary(msgspec.Struct, frozen=True):
    """A boundary in the index of the conversation. `present`: this request has the turns before it."""

    turns: int
    digest: str
    outcome: str
    sightings: int
    generation: int
    present: bool


class UsedSummary(msgspec.Struct, frozen=True):
    """The summary that the request uses: the turns that it stands for, who wrote it and when, and its text."""

    digest: str
    turns: int
    generation: int
    created: float
    backend: str
    model: str
    covered_tokens: int
    summary_tokens: int
    text: str


class WouldCover(msgspec.Struct, frozen=True):
    """What the next job would summarise: the turns before its boundary, their tokens, and the tokens that a request
    would send then."""

    turns: int
    tokens: int
    view_after: int
    generation: int


class SummaryState(msgspec.Struct, frozen=True, kw_only=True):
    """What compression knows of a conversation. Tokens are estimated, and multiplied by `ratio`: reported tokens by
    estimated ones of this model so far.

    `estimate` is what the request sends with the summary that it uses, `window` the model's context, `trigger` the size
    above which a summary is wanted. `root` identifies the conversation; null: the model has not spoken yet, or only a
    running gateway would know. `why_not`: why this request would start no job; null: it would.
    """

    estimate: int
    ratio: float
    window: int
    trigger: int
    root: str | None = None
    boundaries: tuple[SeenBoundary, ...] = ()
    applied: UsedSummary | None = None
    would_cover: WouldCover | None = None
    why_not: WhyNot | None = None


def summary_state_text(state: SummaryState) -> str:
    """Returns the state as one line for a terminal."""
    size = f"about {state.estimate} tokens of {state.window}, summarised above {state.trigger}"
    used = "" if state.applied is None else f"; a summary stands for {state.applied.turns} turns"
    job = "" if state.would_cover is None else f"; a job would cover {state.would_cover.turns} turns"
    return f"{size}{used}{job}{'' if state.why_not is None else f' ({state.why_not})'}"
