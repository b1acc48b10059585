import pytest

from adapters.warp.multi_agent_pb2 import ClientAction, Message
from gateway.core.errors import BackendRejected
from gateway.core.events import (
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    TITLE,
    acts,
    add,
    append,
    decode,
    golden,
    heard,
    more,
    output,
    reasoning,
    rules,
    update,
)


def test_golden_text() -> None:
    events = decode(golden("init", "create_task", "begin", "add", "append", "commit", "done"))
    assert events == [ResponseStart("r1"), TextDelta("Hello"), Finish("stop", "done")]


def test_golden_call_has_its_real_integer() -> None:
    events = decode(golden("init", "create_task", "begin", "call", "commit", "done"))
    assert events == [
        ResponseStart("r1"),
        ToolCallStart(0, "k1", "call_mcp_tool", wrapped=True),
        ToolCallDelta(0, '{"name":"Execute","args":{"n":5}}'),
        ToolCallEnd(0),
        Finish("tool_calls", "done"),
    ]


def test_golden_reasoning() -> None:
    wire = golden("init", "create_task") + acts(add(reasoning("o", "m2"))) + golden("append_reasoning", "add", "done")
    assert heard(decode(wire)) == [
        ResponseStart("r1"),
        ReasoningDelta("o"),
        ReasoningDelta("hm"),
        TextDelta("He"),
        Finish("stop", "done"),
    ]


def test_golden_rollback() -> None:
    events = decode(golden("init", "begin", "add", "append", "rollback", "begin", "add", "commit", "done"))
    assert fold(events).text == "He"
    assert rules(events) == ["ROLLED_BACK"]


def test_golden_finish_without_a_reason_is_a_success() -> None:
    assert heard(decode(golden("init", "add", "no_reason")))[-1] == Finish("stop", None)


def test_golden_quota() -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(golden("init", "quota"))
    assert (caught.value.status, caught.value.code) == (429, "insufficient_quota")


def test_the_echo_of_the_question_and_the_title_are_no_answer() -> None:
    wire = PRELUDE + acts(BEGIN) + acts(add(output("He"))) + acts(more("llo")) + acts(COMMIT) + TITLE + DONE
    assert decode(wire) == [ResponseStart("r1"), TextDelta("Hello"), Finish("stop", "done")]


def test_a_summary_is_no_answer() -> None:
    summary = acts(ClientAction(update_task_summary={"task_id": "t1", "summary": "secret"}))
    assert fold(decode(PRELUDE + summary + acts(add(output("a"))) + DONE)).text == "a"


def test_reasoning_goes_its_own_way() -> None:
    ended = Message(id="m0", agent_reasoning={"finished_duration": {"seconds": 3}})
    wire = PRELUDE + acts(BEGIN, add(reasoning("thin")))
    wire += acts(append(reasoning("king"), "agent_reasoning.reasoning"))
    wire += acts(update(ended, "agent_reasoning.finished_duration"))
    wire += acts(add(output("an")), more("swer"), COMMIT) + DONE
    answer = fold(decode(wire))
    assert (answer.reasoning, answer.text) == ("thinking", "answer")


def test_reasoning_that_was_not_asked_for_is_left_out_with_a_notice() -> None:
    wire = (
        PRELUDE
        + acts(add(reasoning("a")), append(reasoning("b"), "agent_reasoning.reasoning"), add(output("c")))
        + DONE
    )
    events = decode(wire, reasoning=False)
    assert (fold(events).reasoning, fold(events).text) == ("", "c")
    assert rules(events) == ["REASONING_DROPPED"]
