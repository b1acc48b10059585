"""Builds the `dragoman` field of a response: the gateway's own notes about it."""

from collections.abc import Sequence

from gateway.core.conversation import Json
from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.dialects.openai_chat.usage import usage_note


def diagnostics_field(usage: UsageReport | None, diagnostics: Sequence[Notice] | None) -> dict[str, Json]:
    """`usage`: how reliable the counts are. `diagnostics`: every notice; None unless the client requested them."""
    said: dict[str, Json] = {}
    if usage is not None and (remark := usage_note(usage)):
        said["usage"] = remark
    if diagnostics is not None:
        said["diagnostics"] = [notice_object(notice) for notice in diagnostics]
    return said


def notice_object(notice: Notice) -> dict[str, Json]:
    """Returns a notice as JSON. `index` is null for a notice about no single message of the request."""
    return {
        "stage": notice.stage,
        "action": notice.action,
        "rule": notice.rule,
        "detail": notice.detail,
        "index": notice.index,
        "tool_call_id": notice.tool_call_id,
        "level": notice.level,
    }
