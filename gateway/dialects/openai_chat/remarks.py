"""The `dragoman` field of an answer: what the gateway has to say about it, next to what the backend said."""

from collections.abc import Sequence

from gateway.dialects.openai_chat.usage import usage_remark
from gateway.events import UsageReport
from gateway.notices import Notice
from gateway.types import Json


def remarks(usage: UsageReport | None, diagnostics: Sequence[Notice] | None) -> dict[str, Json]:
    """`usage`: how far to trust the counts. `diagnostics`: every notice; None when nobody asked for them."""
    said: dict[str, Json] = {}
    if usage is not None and (remark := usage_remark(usage)):
        said["usage"] = remark
    if diagnostics is not None:
        said["diagnostics"] = [notice_object(notice) for notice in diagnostics]
    return said


def notice_object(notice: Notice) -> dict[str, Json]:
    """A notice as JSON. `index` is null for what no message of the request stands for."""
    return {
        "stage": notice.stage,
        "action": notice.action,
        "rule": notice.rule,
        "detail": notice.detail,
        "index": notice.index,
        "tool_call_id": notice.tool_call_id,
        "level": notice.level,
    }
