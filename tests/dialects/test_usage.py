import pytest

from gateway.core.events import UsageReport
from gateway.dialects.openai_usage import usage_object
from gateway.dialects.usage import merge_usage, token_counts, usage_note


@pytest.mark.parametrize(
    ("report", "counts", "remark"),
    [
        (UsageReport(1, 2, 3), (1, 2, 3), None),
        (UsageReport(1, 2), (1, 2, 3), None),
        (UsageReport(1, None, 3), (1, 2, 3), None),
        (UsageReport(None, 2, 3), (1, 2, 3), None),
        (UsageReport(None, 5, 3), (0, 5, 3), None),
        (UsageReport(total_tokens=3), (0, 0, 3), "total_only"),
        (UsageReport(1), (1, 0, 1), "partial"),
        (UsageReport(None, 2), (0, 2, 2), "partial"),
        (UsageReport(), (0, 0, 0), "partial"),
        (UsageReport(1, 2, 3, estimated=True), (1, 2, 3), "estimated"),
    ],
)
def test_counts_and_how_far_to_trust_them(
    report: UsageReport, counts: tuple[int, int, int], remark: str | None
) -> None:
    assert token_counts(report) == tuple(usage_object(report).values()) == counts
    assert usage_note(report) == remark


def test_later_counts_complete_earlier_ones() -> None:
    first = merge_usage(None, UsageReport(5, extra={"a": 1}))
    assert merge_usage(first, UsageReport(None, 7, extra={"b": 2})) == UsageReport(5, 7, extra={"a": 1, "b": 2})
    assert merge_usage(first, UsageReport(6)).prompt_tokens == 6
