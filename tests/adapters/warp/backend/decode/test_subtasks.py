import pytest

from adapters.warp.multi_agent_pb2 import ClientAction
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendRejected
from gateway.core.events import (
    ResponseStart,
    TextDelta,
)
from gateway.core.notices import Notice
from gateway.testing.events import fold, join
from tests.adapters.warp.backend.script import (
    BEGIN,
    DONE,
    PRELUDE,
    ROLLBACK,
    acts,
    add,
    append,
    decode,
    decoder,
    init,
    mcp_call,
    more,
    output,
    rules,
    task,
    update,
)


def test_a_subtask_is_not_mixed_into_the_answer() -> None:
    hidden = output("hidden", "h1")
    wire = PRELUDE + acts(add(output("a")), task("t2", parent="t1", messages=[hidden]))
    wire += acts(
        add(output("hidden", "h2"), task_id="t2"), append(output("x", "h2"), "agent_output.text", task_id="t2")
    )
    wire += acts(update(output("y", "h2"), "agent_output.text", task_id="t2"), more("b"))
    events = decode(wire + DONE)
    assert (fold(events).text, rules(events)) == ("ab", ["SUBTASK_HIDDEN"])


SUBTASK = task("t2", parent="t1")


HIDDEN = Notice(
    "backend", "dropped", "SUBTASK_HIDDEN", "the text of a subtask is not part of the response", level="warning"
)


def said_by(task_id: str, text: str) -> ClientAction:
    return append(output(text), "agent_output.text", task_id=task_id)


@pytest.mark.parametrize(
    "actions",
    [
        pytest.param((SUBTASK, add(output("a")), said_by("t2", "x"), more("b")), id="appended"),
        pytest.param((SUBTASK, add(output("x"), task_id="t2"), add(output("a")), more("b")), id="added first"),
        pytest.param((SUBTASK, add(output("a")), add(output("x"), task_id="t2"), more("b")), id="added second"),
        pytest.param(
            (SUBTASK, add(output("a")), update(output("x"), "agent_output", task_id="t2"), more("b")), id="updated"
        ),
        pytest.param((add(output("a")), more("b"), said_by("t2", "x"), SUBTASK), id="appended before"),
        pytest.param((add(output("x"), task_id="t2"), SUBTASK, add(output("a")), more("b")), id="added before"),
    ],
)
def test_a_subtask_that_shares_a_messages_id_is_left_out(actions: tuple[ClientAction, ...]) -> None:
    for wire in (acts(*actions), b"".join(acts(action) for action in actions)):
        events = decode(PRELUDE + wire + DONE)
        assert (fold(events).text, rules(events)) == ("ab", ["SUBTASK_HIDDEN"])


def test_a_subtask_that_comes_before_the_root_is_left_out() -> None:
    wire = init() + acts(add(output("x", "h1"), task_id="t2"), said_by("t2", "y"), SUBTASK, task())
    events = decode(wire + acts(add(output("a"))) + DONE)
    assert (fold(events).text, rules(events)) == ("a", ["SUBTASK_HIDDEN"])


def test_what_comes_before_any_task_waits_until_the_root_is_known() -> None:
    machine = decoder()
    assert machine.feed(init() + acts(add(output("a")), more("b"))) == [ResponseStart("r1")]
    assert join(machine.feed(acts(task()))) == [TextDelta("ab")]
    assert machine.feed(acts(more("c"))) == [TextDelta("c")]


def test_what_waits_for_its_task_is_still_taken_back() -> None:
    wire = init() + acts(BEGIN, add(output("no"))) + acts(ROLLBACK) + acts(add(output("a", "m2"))) + DONE
    assert fold(decode(wire)).text == "a"


def test_a_backend_that_goes_on_with_the_clients_task_is_heard_at_once() -> None:
    said = Turn(
        "assistant", (Text("a"),), extra={"extra_content": {"warp": {"conversation_id": "c1", "task_id": "t1"}}}
    )
    asked = Conversation((Turn("user", (Text("q"),)), said, Turn("user", (Text("r"),))))
    machine = decoder(asked, encoding="structured")
    machine.feed(init())
    assert [event for event in machine.feed(acts(add(output("b")))) if isinstance(event, TextDelta)] == [TextDelta("b")]
    assert machine.feed(acts(add(output("x", "h1"), task_id="t2"), SUBTASK))[0] == HIDDEN
    assert machine.feed(acts(more("c"))) == [TextDelta("c")]


def test_a_backend_that_answers_in_a_task_of_its_own_is_heard_in_the_end() -> None:
    asked = Conversation((Turn("user", (Text("q"),)), Turn("assistant", (Text("a"),)), Turn("user", (Text("r"),))))
    wire = init() + acts(add(output("x", "h1"), task_id="t2"), SUBTASK, add(output("b"))) + DONE
    events = decode(wire, asked, encoding="structured")
    assert (fold(events).text, rules(events)) == ("b", ["SUBTASK_HIDDEN"])


def test_a_message_of_a_new_root_task_counts() -> None:
    assert fold(decode(init() + acts(task(messages=[output("a")])) + DONE)).text == "a"


def test_an_answer_of_nothing_but_a_subtasks_call_is_an_error() -> None:
    with pytest.raises(BackendRejected):
        decode(PRELUDE + acts(task("t2", parent="t1"), add(mcp_call(), task_id="t2")) + DONE)
