"""Says in one sentence what happened to a request."""

from collections.abc import Iterator
from typing import Final

from gateway.inspector.summary import Summary
from gateway.inspector.views.answer import AssembledAnswer, assembled_answer, passed_bytes
from gateway.inspector.views.remade import Remade
from gateway.recording.lines import Cut, EndLine

_CUTS: Final[dict[Cut, str]] = {
    "fin": "ended its answer before it was complete",
    "reset": "broke the connection",
    "timeout": "was silent for too long",
}
_REASONS: Final = {
    "length": "the limit of tokens ended it",
    "content_filter": "a filter of contents ended it",
}
_MOST_NAMES: Final = 4
_MOST_NAME: Final = 40


def brief_headline(summary: Summary) -> str:
    """Returns what is known of a request without its contents."""
    if summary.live:
        return "The request is being served."
    if summary.code == "client_gone":
        return "The client left before its answer was complete."
    if summary.code:
        return f"The request failed with {summary.code} (status {summary.status})."
    return f"The request was answered with the status {summary.status}."


def headline(summary: Summary, remade: Remade) -> str:
    """Returns what happened to a request: what the backend answered, or who failed and where; of one that is being
    served, what it waits for or has got so far."""
    interaction, end = remade.interaction, remade.interaction.end
    backend = "The backend" if interaction.route is None else f"The backend {interaction.route.backend}"
    if summary.live:
        return _so_far(backend, remade)
    if end is None:
        return brief_headline(summary)
    if interaction.passed and end.cut is None:
        return _said_of_passed(backend, remade, end)
    if not end.code:
        return f"{backend} answered with {_said(assembled_answer(remade))}."
    if end.cut == "client_gone":
        return brief_headline(summary)
    if end.cut is not None:
        return f"{backend} {_CUTS[end.cut]}."
    if interaction.sent is None:
        return "The gateway refused the request; nothing was sent to a backend."
    head = interaction.head
    if head is None:
        return f"{backend} did not answer."
    if head.status >= 400:
        return f"{backend} refused the request with the status {head.status}."
    if end.failure is not None and end.failure.upstream:
        return f"The answer of {backend[0].lower()}{backend[1:]} failed."
    return f"The gateway ended the request after {backend[0].lower()}{backend[1:]} had answered."


def _so_far(backend: str, remade: Remade) -> str:
    interaction = remade.interaction
    if interaction.passed:
        return f"The request was passed to {backend[0].lower()}{backend[1:]}."
    if interaction.sent is None:
        return "The gateway prepares the request; nothing was sent to a backend yet."
    if interaction.head is None:
        return f"{backend} has not answered yet."
    said = ", ".join(_counts(assembled_answer(remade)))
    return f"{backend} is answering: {said} so far." if said else f"{backend} has begun to answer."


def _said_of_passed(backend: str, remade: Remade, end: EndLine) -> str:
    """Returns what is known of a request that was passed on as it came."""
    if not end.code:
        return f"{backend} answered with {passed_bytes(remade):,} bytes, which were passed on."
    if end.failure is not None and end.failure.upstream:
        return f"{backend} failed with {end.code}."
    return f"The gateway ended the request while it was passed to {backend[0].lower()}{backend[1:]}."


def _said(answer: AssembledAnswer) -> str:
    said = ", ".join(_counts(answer)) or "nothing"
    reason = _REASONS.get(answer.finish or "")
    return f"{said}; {reason}" if reason else said


def _counts(answer: AssembledAnswer) -> Iterator[str]:
    for kind in ("thinking", "text"):
        size = sum(len(part.text) for part in answer.parts if part.kind == kind)
        if size:
            yield f"{size:,} characters of {kind}"
    names = [part.name for part in answer.parts if part.kind == "call"]
    if names:
        shown = ", ".join(name[:_MOST_NAME] for name in dict.fromkeys(names[:_MOST_NAMES]))
        more = ", ..." if len(names) > _MOST_NAMES else ""
        yield f"{len(names)} {'call' if len(names) == 1 else 'calls'} ({shown}{more})"
