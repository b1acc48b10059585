import pytest

from adapters.warp.backend.decode import tasks
from adapters.warp.multi_agent_pb2 import ClientAction
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendRejected
from gateway.testing.events import fold, join
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
    STREAMED,
    acts,
    add,
    decode,
    finished,
    heard,
    mcp_call,
    more,
    output,
    reasoning,
    rules,
    update,
)


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
def test_a_rolled_back_call_is_never_emitted(rollback: str) -> None:
    wire = PRELUDE + acts(BEGIN, add(mcp_call("k1")), ROLLBACK, BEGIN, add(output("right")), COMMIT) + DONE
    events = decode(wire, STREAMED, rollback=rollback)
    assert (fold(events).text, fold(events).calls) == ("right", ())


def test_rolled_back_text_is_not_in_the_answer() -> None:
    wire = PRELUDE + acts(BEGIN, add(output("wrong")), more(" still"), ROLLBACK, BEGIN, add(output("right")), COMMIT)
    events = decode(wire + DONE)
    assert fold(events).text == "right"
    assert rules(events) == ["ROLLED_BACK"]


def test_text_that_was_streamed_cannot_be_rolled_back() -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + acts(BEGIN, add(output("wrong"))) + acts(ROLLBACK) + DONE, STREAMED, rollback="stream")
    assert (caught.value.status, caught.value.code) == (502, "upstream_rolled_back")


def test_what_does_not_stream_can_always_be_rolled_back() -> None:
    wire = PRELUDE + acts(BEGIN, add(output("wrong"))) + acts(ROLLBACK) + acts(add(output("right"))) + DONE
    events = decode(wire, Conversation(()), rollback="stream")
    assert events == decode(wire, Conversation(()), rollback="buffer")
    assert (fold(events).text, rules(events)) == ("right", ["ROLLED_BACK"])


def test_reasoning_that_was_streamed_may_be_rolled_back() -> None:
    wire = PRELUDE + acts(BEGIN, add(reasoning("hm")), ROLLBACK, add(output("right"))) + DONE
    events = decode(wire, STREAMED, rollback="stream")
    assert (fold(events).text, rules(events)) == ("right", ["ROLLED_BACK"])


def test_a_rollback_restores_what_stood_before_the_transaction() -> None:
    wire = PRELUDE + acts(add(output("a")), BEGIN, more("X"), ROLLBACK, more("b")) + DONE
    assert fold(decode(wire)).text == "ab"


def test_a_rollback_restores_a_call_that_waits() -> None:
    changed = mcp_call("k1", args={"n": 2})
    wire = PRELUDE + acts(add(mcp_call("k1", args={"n": 1})), BEGIN, update(changed, "tool_call"), ROLLBACK) + DONE
    assert fold(decode(wire)).calls[0].arguments == '{"name":"Execute","args":{"n":1}}'


def test_an_inner_transaction_belongs_to_the_outer_one() -> None:
    inner = (BEGIN, more("b"), COMMIT)
    kept = decode(PRELUDE + acts(BEGIN, add(output("a")), *inner, COMMIT) + DONE)
    lost = decode(PRELUDE + acts(BEGIN, add(output("a")), *inner, ROLLBACK, add(output("c"))) + DONE)
    half = decode(PRELUDE + acts(BEGIN, add(output("a")), BEGIN, more("b"), ROLLBACK, COMMIT) + DONE)
    assert [fold(events).text for events in (kept, lost, half)] == ["ab", "c", "a"]


@pytest.mark.parametrize("action", [COMMIT, ROLLBACK])
def test_a_commit_or_rollback_without_a_transaction_has_no_effect(action: ClientAction) -> None:
    events = decode(PRELUDE + acts(add(output("a")), action, more("b")) + DONE)
    assert (fold(events).text, rules(events)) == ("ab", ["TRANSACTION_UNBALANCED"])


def test_a_finish_inside_a_transaction_keeps_what_was_said() -> None:
    events = decode(PRELUDE + acts(BEGIN, add(output("a"), mcp_call())) + DONE)
    assert (fold(events).text, len(fold(events).calls)) == ("a", 1)
    assert rules(events) == ["TRANSACTION_OPEN"]


def test_a_failure_after_a_rollback_is_no_success() -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + acts(BEGIN, add(output("text")), ROLLBACK) + finished(llm_unavailable={}))
    assert caught.value.status == 503


def test_text_that_grew_in_a_transaction_and_was_streamed_cannot_be_rolled_back() -> None:
    with pytest.raises(BackendRejected):
        decode(PRELUDE + acts(add(output("a")), BEGIN, more("X"), ROLLBACK) + DONE, STREAMED, rollback="stream")


def test_taking_pieces_back_does_not_rebuild_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_REWRITTEN", 10_000)
    undone = (BEGIN, more("y"), ROLLBACK) * 40
    wire = PRELUDE + acts(BEGIN, add(output("x" * 1_000)), *undone, more("z"), COMMIT) + DONE
    assert join(heard(decode(wire))) == join(heard(decode(PRELUDE + acts(add(output("x" * 1_000 + "z"))) + DONE)))
