"""Says a finding in one sentence for a person, and in names for filters and metrics."""

from typing import Final, assert_never

from gateway.diagnostics.prompt_cache.finding import (
    Cause,
    ClientChange,
    FieldChange,
    Finding,
    How,
    Place,
    ProviderMiss,
    RouteChange,
    RuleChange,
    SummaryChange,
    Unmarked,
)
from gateway.providers.prefix_rules import Part

_DONE: Final[dict[How, str]] = {
    "changed": "changed",
    "added": "added",
    "removed": "removed",
    "reordered": "changed the order from",
}
_BEHIND: Final[dict[Part, str]] = {
    "tools": "the tools, the system text and the messages",
    "system": "the system text and the messages",
    "messages": "the messages",
}


def cause_name(cause: Cause) -> str:
    """Returns the name of a cause, one of few: `client_tools`, `client_system`, `client_messages`, `client_fields`,
    `rule`, `summary`, `model`, `provider`, `unmarked`."""
    match cause:
        case ClientChange():
            return f"client_{cause.place.part}"
        case FieldChange():
            return "client_fields" if cause.rule is None else "rule"
        case RuleChange():
            return "rule"
        case SummaryChange():
            return "summary"
        case RouteChange():
            return "model"
        case ProviderMiss():
            return "provider"
        case Unmarked():
            return "unmarked"
        case _:
            assert_never(cause)


def cause_rule(cause: Cause) -> str:
    """Returns the rule of the gateway that is the cause; empty: none is, or no notice names it."""
    return (cause.rule or "") if isinstance(cause, RuleChange | FieldChange) else ""


def finding_sentence(finding: Finding) -> str:
    """Returns what a person reads: who did what, and how many tokens are read anew."""
    if not finding.lost:
        cost = "nothing behind that was in the request before"
    elif finding.cached is None:
        cost = f"about {finding.lost:,} tokens that the request before had too are read anew"
    else:
        cost = (
            f"{finding.lost:,} tokens that the request before had too are read anew "
            f"({finding.cached:,} were read from the cache)"
        )
    return f"{_cause_words(finding.cause)}: {cost}."


def _cause_words(cause: Cause) -> str:
    match cause:
        case ClientChange():
            return f"The client {_DONE[cause.place.how]} {_unit(cause.place)}"
        case RuleChange():
            by = f"by the rule {cause.rule}" if cause.rule else "without a notice, a defect"
            return f"The gateway {_DONE[cause.place.how]} {_unit(cause.place)} {by}"
        case SummaryChange():
            return f"A summary came, changed or ended at {_unit(cause.place)}"
        case RouteChange():
            return f"The requests went to different models or backends, {cause.before} and {cause.now}"
        case FieldChange():
            who = "The client" if cause.rule is None else f"The gateway ({cause.rule or 'without a notice, a defect'})"
            return f"{who} changed {cause.field}, on which the cache of {_BEHIND[cause.part]} depends"
        case ProviderMiss():
            when = "" if cause.idle_s is None else f", answered {cause.idle_s:g} s earlier"
            return f"The provider missed: the prompt begins as the one before{when}, but its cache was not read"
        case Unmarked():
            return "The request marks nothing with cache_control, without which this API caches nothing"
        case _:
            assert_never(cause)


def _unit(place: Place) -> str:
    match place.part:
        case "tools":
            return f"tools[{place.position}]"
        case "system":
            return f"the system text (block {place.position})"
        case "messages":
            return (
                f"message {place.position} of those that were sent"
                if place.index is None
                else f"message [{place.index}]"
            )
        case _:
            assert_never(place.part)
