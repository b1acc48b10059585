"""Builds the 400 response that names the violations."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import Json, Violation
from gateway.core.errors import InvalidRequest
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Notice
from gateway.history.rules import RULES

LISTED: Final = 50


def violation_error(violations: Sequence[Violation], paths: FieldPaths = CANONICAL_PATHS) -> InvalidRequest:
    """Returns the error for a refused conversation: the first violation in words, and all of them as fields.

    The fields hold the first 50 of a long list. `param` is the path of the first faulty value, `code` the first rule's.
    """
    first = violations[0]
    where = "The request" if first.index < 0 else paths.turn.format(turn=first.index)
    call = f" (tool call id {first.tool_call_id!r})" if first.tool_call_id else ""
    more = _more(len(violations) - 1)
    listed: list[Json] = [_entry(found) for found in violations[:LISTED]]
    return InvalidRequest(
        f"{where}{call} breaks the rule {first.rule}: {first.detail.rstrip('.')}. {first.advice}{more}",
        code=RULES[first.rule].code if first.rule in RULES else None,
        param=first.param,
        extra={**_entry(first), "violations": listed, "violation_count": len(violations)},
        notices=[_notice(found) for found in violations[:LISTED]],
    )


def _more(count: int) -> str:
    if count < 2:
        return " One more violation is listed in `violations`." if count else ""
    listed = f"; the first {LISTED - 1} of them are" if count >= LISTED else ", which are"
    return f" There are {count} more violations{listed} listed in `violations`."


def _entry(found: Violation) -> dict[str, Json]:
    return {
        "rule": found.rule,
        "index": found.index,
        "tool_call_id": found.tool_call_id,
        "param": found.param,
        "detail": found.detail,
        "advice": found.advice,
    }


def _notice(found: Violation) -> Notice:
    index = found.index if found.index >= 0 else None
    return Notice("validate", "failed", found.rule, found.detail, index, found.tool_call_id, "warning")
