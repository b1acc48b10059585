"""Shows what is known of one request beside its texts: the route, the times, the error, the notices, the checks."""

from collections.abc import Iterator, Sequence

import msgspec

from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Level, Notice
from gateway.core.requirements import Requirement, broken
from gateway.core.rules import RULES
from gateway.inspector.summary import Summary
from gateway.inspector.texts import error_text
from gateway.inspector.views.answer import answer_end
from gateway.inspector.views.headline import brief_headline, headline
from gateway.inspector.views.remade import Remade
from gateway.inspector.views.value_changes import ValueChange, value_changes
from gateway.recording.lines import EndLine, Marks
from gateway.recording.recording import Interaction


class RouteView(msgspec.Struct, frozen=True):
    """Where the request went. `model` is the client's name, `profile` that of the provider's rules."""

    model: str
    backend: str
    adapter: str
    profile: str


class ErrorView(msgspec.Struct, frozen=True):
    """Why the request failed. `cause` is what the code means, which no words of others are in, and `advice` what to do;
    `cut`, `came` and `expected` as in AnswerEnd. `backend_words` is the message as the backend wrote it; empty: it is
    not the backend's, or nobody may see it."""

    status: int
    code: str
    message: str
    phase: str
    cause: str = ""
    advice: str = ""
    cut: str | None = None
    came: str = ""
    expected: str = ""
    backend_words: str = ""


class NoticeView(msgspec.Struct, frozen=True):
    """One notice: `sentence` is its detail, `advice` how the client avoids it, and `changes` are the values of its
    message before and behind its stage. `quiet`: it reports no change, and nobody has to act on it. `loses` are
    the words of `x-dragoman-require` that it breaks."""

    number: int
    rule: str
    stage: str
    action: str
    index: int | None
    sentence: str
    advice: str
    level: Level
    quiet: bool
    changes: tuple[ValueChange, ...] = ()
    loses: tuple[Requirement, ...] = ()


class TryView(msgspec.Struct, frozen=True):
    """A try with another model, which failed `at` so many milliseconds; `status` is that of the backend's response (0:
    there was none), and `cause` what the code means."""

    at: float
    model: str
    backend: str
    code: str
    status: int
    cause: str = ""


class StageSize(msgspec.Struct, frozen=True):
    """How many messages a stage has; of the answer, how many events."""

    name: str
    messages: int


class CheckView(msgspec.Struct, frozen=True):
    """Whether a part that is made again equals what was captured. A difference is a defect of the gateway."""

    name: str
    same: bool
    differences: tuple[str, ...] = ()


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `previous` is the id of the one before it in its conversation; `absent` says what is not here, and
    why (where there are `stages`, it is a part of the answer); `bodies` names what is here of its
    bytes, as a whole or in part: `received`, `sent`, `answer`. `tries` are those with other models, which have failed.
    `lost` says how the request does otherwise than it did with its words replaced, of which the rest is made.
    `headline` is one sentence about what happened."""

    summary: Summary
    headline: str
    route: RouteView | None = None
    marks: dict[str, float | None]
    error: ErrorView | None = None
    notices: Sequence[NoticeView] = ()
    tries: Sequence[TryView] = ()
    stages: Sequence[StageSize] = ()
    checks: Sequence[CheckView] = ()
    previous: str | None = None
    absent: str | None = None
    bodies: Sequence[str] = ()
    lost: Sequence[str] = ()

    @classmethod
    def of(cls, summary: Summary, absent: str) -> "Detail":
        """Returns the detail of a request whose contents are not here."""
        error = None
        if summary.code and not summary.live:
            text = error_text(summary.code)
            cause = text.cause or "The code is the backend's own; its words are not here."
            error = ErrorView(summary.status, summary.code, "", "", cause, text.remedy)
        headline = brief_headline(summary)
        return cls(summary=summary, headline=headline, marks=marks_of(Marks()), error=error, absent=absent)


def detail(summary: Summary, remade: Remade, previous: str | None) -> Detail:
    """Returns the detail of a request."""
    interaction = remade.interaction
    route, end = interaction.route, interaction.end
    return Detail(
        summary=summary,
        headline=headline(summary, remade),
        route=None if route is None else RouteView(route.model, route.backend, route.adapter, route.profile),
        marks=marks_of(Marks() if end is None else end.marks),
        error=_error(remade, end),
        notices=notice_views(remade, remade.notices),
        tries=tuple(_tries(interaction)),
        stages=tuple(_stages(remade)),
        checks=tuple(_checks(remade)),
        previous=previous,
        absent=remade.absent or None,
        bodies=tuple(_bodies(interaction)),
        lost=remade.lost,
    )


def _tries(interaction: Interaction) -> Iterator[TryView]:
    for one in interaction.tries:
        yield TryView(one.t, one.model, one.backend, one.code, one.status, error_text(one.code).cause)


def _bodies(interaction: Interaction) -> Iterator[str]:
    if interaction.body is not None or interaction.request.beginning is not None:
        yield "received"
    if interaction.sent is not None and interaction.sent.body is not None:
        yield "sent"
    if interaction.steps:
        yield "answer"


def marks_of(marks: Marks) -> dict[str, float | None]:
    """Returns every mark by its name, also those that were not reached."""
    return {name: getattr(marks, name) for name in Marks.__struct_fields__}


def _error(remade: Remade, end: EndLine | None) -> ErrorView | None:
    if end is None or not end.code:
        return None
    failure, answer = end.failure, answer_end(remade)
    text = error_text(end.code)
    advice = text.remedy if failure is None else str(failure.extra.get("advice", "")) or text.remedy
    message = _message(remade, end)
    return ErrorView(
        end.status,
        end.code,
        message,
        end.phase,
        text.cause,
        advice,
        answer.cut,
        answer.came,
        answer.expected,
        remade.backend_words,
    )


def _message(remade: Remade, end: EndLine) -> str:
    """Returns the words of the error; empty where nobody may see them: what cannot be made again is the backend's."""
    failure = end.failure
    if failure is None:
        return "The client left before its answer was complete." if end.cut == "client_gone" else ""
    if failure.upstream and remade.run is None and not remade.backend_words:
        return ""
    return failure.message


def notice_views(remade: Remade, notices: Sequence[Notice]) -> tuple[NoticeView, ...]:
    """Returns notices about a request as a person reads them, in the words of the client's dialect."""
    conversation = None if remade.run is None else remade.run.conversation
    paths = CANONICAL_PATHS if conversation is None else conversation.paths
    changes = value_changes(remade, notices)
    return tuple(_notice(number, notice, paths, changes.get(number, ())) for number, notice in enumerate(notices))


def _notice(number: int, notice: Notice, paths: FieldPaths, changes: tuple[ValueChange, ...]) -> NoticeView:
    rule = RULES.get(notice.rule)
    return NoticeView(
        number,
        notice.rule,
        notice.stage,
        notice.action,
        notice.index,
        notice.detail,
        "" if rule is None else paths.worded(rule.advice),
        notice.level,
        notice.action == "seen" and notice.level == "debug",
        changes,
        broken(notice),
    )


def _stages(remade: Remade) -> Iterator[StageSize]:
    turns = remade.turns
    sizes = {"client": turns.client, "repaired": turns.repaired, "trimmed": turns.trimmed, "sent": turns.sent}
    yield from (StageSize(name, len(found)) for name, found in sizes.items() if found)
    if remade.run is not None and remade.interaction.head is not None:
        yield StageSize("answer", sum(map(len, remade.run.events)))


def _checks(remade: Remade) -> Iterator[CheckView]:
    for check in remade.checks:
        # The bytes around a difference are contents.
        place = check.difference.partition(": was ")[0]
        yield CheckView(check.subject, not place, (place,) if place else ())
