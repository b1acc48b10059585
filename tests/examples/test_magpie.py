import msgspec
import pytest

from gateway.core.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.events import (
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.policy import Policy
from gateway.testing.conformance import CHECKS, Case, Check
from tests.examples.magpie import MagpieAdapter, MagpieOptions

WIRE = b"""\
{"think": "Two of "}
{"think": "them."}
{"say": "I look, \xe6\x97\xa5\xe6\x9c\xac."}
{"call": "look", "id": "m1", "input": "{\\"at\\""}
{"input": ": 1}"}
{"call": "look", "id": "m2", "input": "{}"}
{"end": "called", "tokens": 9}
"""

CASES = [
    Case(
        "calls",
        MagpieAdapter,
        WIRE,
        expected=(
            ResponseStart(),
            ReasoningDelta("Two of them."),
            TextDelta("I look, 日本."),
            ToolCallStart(0, "m1", "look"),
            ToolCallDelta(0, '{"at": 1}'),
            ToolCallEnd(0),
            ToolCallStart(1, "m2", "look"),
            ToolCallDelta(1, "{}"),
            ToolCallEnd(1),
            UsageReport(completion_tokens=9),
            Finish("tool_calls", "called"),
        ),
    ),
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_magpie_conforms(case: Case, check: Check) -> None:
    check(case)


def test_a_round_of_calls_goes_out_with_its_thoughts_and_results() -> None:
    called = (Reasoning("Where?"), ToolCall("m1", "look", '{"at": 1}'))
    turns = (
        Turn("user", (Text("Look."),)),
        Turn("assistant", called),
        Turn("tool", (ToolResult("m1", (Text("A ring."),)),)),
    )
    asked = Conversation(turns, (ToolSpec("look"),), model="m")
    request = MagpieAdapter(MagpieOptions(), 1024).encode(asked, Policy())
    body = msgspec.json.decode(request.body)
    assert body["tools"] == [{"name": "look", "about": "", "input": {}}]
    assert body["history"] == [
        {"who": "user", "says": "Look."},
        {
            "who": "assistant",
            "says": "",
            "thinks": "Where?",
            "calls": [{"id": "m1", "tool": "look", "input": {"at": 1}}],
        },
        {"who": "tool", "of": "m1", "says": "A ring."},
    ]
