import pytest

from adapters.warp.backend import WarpAdapter
from gateway.core.events import Finish, ReasoningDelta, ResponseStart, TextDelta, UsageReport
from gateway.testing.conformance import CHECKS, Case, Check
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    TITLE,
    acts,
    add,
    append,
    finished,
    mcp_call,
    more,
    output,
    reasoning,
)
from tests.tiers import sample

TOTALS = {"warp_token_usage": {"auto": {"total_tokens": 7}}}
TEXT = (
    PRELUDE
    + acts(BEGIN)
    + acts(add(reasoning("hm")))
    + acts(append(reasoning("m"), "agent_reasoning.reasoning"))
    + acts(add(output("Grüß")))
    + b"".join(acts(more(text)) for text in (" dich", "\u2028", "!"))
    + acts(COMMIT)
    + TITLE
    + finished(done={}, conversation_usage_metadata=TOTALS)
)
CALLS = PRELUDE + acts(BEGIN, add(output("Let me"), mcp_call("k1", args={"n": 5}), mcp_call("k2")), COMMIT) + DONE
EXPECTED = (
    ResponseStart("r1"),
    ReasoningDelta("hmm"),
    TextDelta("Grüß dich\u2028!"),
    UsageReport(total_tokens=7),
    Finish("stop", "done"),
)

CASES = [
    Case("text", WarpAdapter, TEXT, EXPECTED),
    Case("streamed", WarpAdapter, TEXT, EXPECTED, options={"rollback": "stream"}),
    Case("calls", WarpAdapter, CALLS),
    Case("structured", WarpAdapter, CALLS, options={"encoding": "structured"}),
    Case("lenient", WarpAdapter, CALLS, options={"strict_frames": False, "accept_hex": True}),
]


@sample()
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
