"""Tests that a move of messages to a new task changes the log and never the response.

The semantics are those of the wire's own client: it leaves on the screen what it has shown.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.backend.decode import tasks
from adapters.warp.backend.decode.entry import Entry
from adapters.warp.multi_agent_pb2 import ClientAction, Message
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event, TextDelta
from gateway.core.notices import Notice
from gateway.testing.events import fold
from gateway.testing.replay import replay
from tests.adapters.warp.backend.script import (
    ASKED,
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
    STREAMED,
    acts,
    add,
    append,
    decode,
    decoder,
    init,
    mcp_call,
    more,
    move,
    output,
    reasoning,
    rules,
    task,
    update,
)


def subagent(message_id: str = "r1") -> Message:
    return Message(id=message_id, task_id="t1", tool_call={"tool_call_id": "s1", "subagent": {}})


def answer(*actions: ClientAction, conversation: Conversation = STREAMED, **options: Any) -> list[Event]:
    return decode(PRELUDE + acts(*actions) + DONE, conversation, **options)


BODY = (add(output("One.", "m1")), add(output(" Two.", "m2")), add(mcp_call("k1")))


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
@pytest.mark.parametrize("position", range(len(BODY) + 1))
def test_a_move_leaves_the_response_as_it_is(position: int, rollback: str) -> None:
    ids = ["s1", "q1", "m1", "m2", "m-k1"][: position + 2]
    moved = move(ids[0], ids[-1], len(ids), subagent(), output("a summary", "r2"))
    events = answer(*BODY[:position], moved, *BODY[position:], rollback=rollback)
    plain = fold(answer(*BODY, rollback=rollback))
    assert (fold(events).text, fold(events).calls) == (plain.text, plain.calls) == ("One. Two.", plain.calls)
    assert [event for event in events if isinstance(event, Notice)] == [
        Notice(
            "backend",
            "seen",
            "MESSAGES_MOVED",
            f"the backend moved {len(ids)} messages to another task; what was said remains",
            level="info",
        )
    ]


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
def test_what_is_held_in_a_transaction_is_sent_though_it_was_moved(rollback: str) -> None:
    events = answer(
        BEGIN, add(output("a"), mcp_call()), move("q1", "m-k1", 3, subagent()), COMMIT, more("b"), rollback=rollback
    )
    assert (fold(events).text, len(fold(events).calls)) == ("ab", 1)


def test_what_stands_in_their_place_never_becomes_part_of_the_response() -> None:
    summary = output("a summary", "r1")
    later = (
        append(output(" more", "r1"), "agent_output.text"),
        update(output("another", "r1"), "agent_output"),
        add(output("again", "r1")),
    )
    events = answer(add(output("a")), move("q1", "q1", 1, summary), *later, more("b"))
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED"])


def test_the_new_task_is_a_subtask_also_without_a_parent() -> None:
    events = answer(add(output("a")), move("q1", "q1", 1), add(output("x", "m9"), task_id="t2"), more("b"))
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED", "SUBTASK_HIDDEN"])


def test_the_new_task_is_a_subtask_also_when_it_is_created_later() -> None:
    later = (task("t2"), add(output("x", "m9"), task_id="t2"), more("b"))
    events = answer(add(output("a")), move("q1", "q1", 1), *later)
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED", "SUBTASK_HIDDEN"])


MOVED = move("m1", "m1", 1, subagent())


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
@pytest.mark.parametrize(
    "later",
    [
        [more(" bbb", task_id="t2"), more(" ccc", task_id="t2")],
        [more(" bbb", task_id="t1"), more(" ccc", task_id="t2")],
        [move("m1", "m1", 1, subagent("r2"), source="t2", target="t3"), more(" bbb ccc", task_id="t3")],
        [BEGIN, more(" bbb", task_id="t2"), COMMIT, more(" ccc", task_id="t2")],
        [update(output("One. bbb ccc"), "agent_output.text", task_id="t2")],
        [add(output("One. bbb ccc"), task_id="t2")],
        [append(output(" bbb ccc"), "agent_output.text", "message_id", task_id="t2")],
    ],
)
def test_what_was_moved_grows_in_its_new_task(later: list[ClientAction], rollback: str) -> None:
    split = decoder(STREAMED, rollback=rollback)
    events = replay(split, [PRELUDE, *map(acts, [add(output("One.")), MOVED, *later]), DONE])
    assert fold(events).text == "One. bbb ccc"
    assert not {"SUBTASK_HIDDEN", "ACTION_SKIPPED"} & set(rules(events))
    assert fold(answer(add(output("One.")), MOVED, *later, rollback=rollback)).text == "One. bbb ccc"


def test_a_rollback_takes_back_what_grew_in_the_new_task() -> None:
    later = (BEGIN, more(" no", task_id="t2"), ROLLBACK, more(" Two.", task_id="t2"))
    assert fold(answer(add(output("One.")), MOVED, *later)).text == "One. Two."


def test_reasoning_that_was_moved_grows_in_its_new_task() -> None:
    moved = move("m0", "m0", 1, subagent())
    later = append(reasoning(" on"), "agent_reasoning.reasoning", task_id="t2")
    events = answer(add(reasoning("go")), moved, later)
    assert (fold(events).reasoning, rules(events)) == ("go on", ["MESSAGES_MOVED"])


@pytest.mark.parametrize("paths", [["tool_call"], ["tool_call.call_mcp_tool.args"]])
def test_a_call_that_was_moved_gets_its_arguments_in_its_new_task(paths: list[str]) -> None:
    moved = move("m-k1", "m-k1", 1, subagent())
    later = update(mcp_call(args={"n": 5}), *paths, task_id="t2")
    events = answer(add(mcp_call(args={})), moved, later, conversation=ASKED)
    [call] = fold(events).calls
    assert (call.arguments, rules(events)) == ('{"name":"Execute","args":{"n":5}}', ["MESSAGES_MOVED"])


def test_a_message_of_a_subtask_stays_hidden_wherever_it_is_moved() -> None:
    inner = Message(id="z", task_id="t2", agent_output={"text": "sub"})
    hidden = (task("t2", "t1", [inner]), move("z", "z", 1, source="t2", target="t3"), more(" more", "z", task_id="t3"))
    events = answer(add(output("a")), *hidden, more("b"))
    assert (fold(events).text, rules(events)) == ("ab", ["SUBTASK_HIDDEN", "MESSAGES_MOVED"])


def test_messages_may_move_to_a_subtask_that_exists() -> None:
    moves = (MOVED, move("m2", "m2", 1, subagent("r2")))
    events = answer(task("t2", "t1"), add(output("a"), output("b", "m2")), *moves, more("c", "m2", task_id="t2"))
    assert (fold(events).text, rules(events)) == ("abc", ["MESSAGES_MOVED", "MESSAGES_MOVED"])


def test_a_move_looks_at_its_own_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed: list[Entry] = []
    made: list[Entry] = []

    class Counted(Entry):
        def __init__(self, message: Message, task_id: str) -> None:
            made.append(self)
            super().__init__(message, task_id)

        @property
        def weight(self) -> int:
            weighed.append(self)
            return super().weight

    monkeypatch.setattr(tasks, "Entry", Counted)
    machine = decoder(STREAMED)
    machine.feed(PRELUDE + acts(*(add(output("x", f"m{n}")) for n in range(300))))
    before, weighed_before = len(made), len(weighed)
    moves = [move(f"r{n - 1}" if n else "m0", f"r{n - 1}" if n else "m299", 1, subagent(f"r{n}")) for n in range(100)]
    events = machine.feed(acts(*moves))
    assert rules(events) == ["MESSAGES_MOVED"] * 100
    assert (len(made) - before, len(weighed) - weighed_before) == (100, 0)


def test_a_move_may_begin_with_what_stands_in_the_place_of_another() -> None:
    first = move("s1", "m1", 3, subagent("r1"), output("a", "m1"))
    events = answer(add(output("a")), first, add(output("b", "m2")), move("r1", "m2", 3, target="t3"))
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED", "MESSAGES_MOVED"])


@pytest.mark.parametrize(("count", "words"), [(0, "messages"), (1, "a message"), (2, "2 messages")])
def test_the_notice_of_a_move_says_how_many(count: int, words: str) -> None:
    events = answer(add(output("a")), move("m1", "m1", count))
    details = [event.detail for event in events if isinstance(event, Notice)]
    assert details == [f"the backend moved {words} to another task; what was said remains"]


def test_a_rollback_takes_a_move_back() -> None:
    moved = move("s1", "m1", 3, subagent("r1"))
    events = answer(add(output("a")), BEGIN, moved, ROLLBACK, move("r1", "m1", 2), moved, add(output("b", "m2")))
    assert fold(events).text == "ab"
    assert rules(events) == ["MESSAGES_MOVED", "ROLLED_BACK", "ACTION_SKIPPED", "MESSAGES_MOVED"]


def test_a_message_may_come_after_its_id_was_rolled_back_in_a_move() -> None:
    events = answer(
        BEGIN, move("q1", "q1", 1, output("a summary", "r1")), ROLLBACK, add(output("a", "r1")), more("b", "r1")
    )
    assert fold(events).text == "ab"


@pytest.mark.parametrize("ends", [("m7", "m1"), ("q1", "m7"), ("m7", "m8"), ("", "")])
def test_a_range_that_does_not_exist_has_no_effect_and_a_notice(ends: tuple[str, str]) -> None:
    summary = output("a summary", "r1")
    events = answer(add(output("a")), move(*ends, 2, summary), append(summary, "agent_output.text"), more("b"))
    assert (fold(events).text, rules(events)) == ("ab", ["ACTION_SKIPPED"])


CONTINUED = Conversation((Turn("user", (Text("q"),)), Turn("assistant", (Text("a"),)), Turn("user", (Text("r"),))))


def test_a_range_may_be_older_than_the_response_if_the_request_had_a_log() -> None:
    events = answer(add(output("a")), move("old", "m1", 9), more("b"), conversation=CONTINUED, encoding="structured")
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED"])


def test_a_range_of_a_subtask_is_not_looked_into() -> None:
    events = answer(task("t5", "t1"), add(output("a")), move("x", "y", 3, source="t5"), more("b"))
    assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED"])


@pytest.mark.parametrize("source", ["", "t9"])
@pytest.mark.parametrize("rollback", ["buffer", "stream"])
def test_an_unknown_task_is_an_invalid_event(source: str, rollback: str) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        answer(add(output("a")), move("q1", "q1", 1, source=source), rollback=rollback)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_event")


@pytest.mark.parametrize("target", ["", "t1"])
def test_a_new_task_that_is_none_is_an_invalid_event(target: str) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        answer(add(output("a")), move("q1", "q1", 1, target=target))
    assert caught.value.code == "upstream_invalid_event"


def test_a_move_waits_for_the_root_and_is_applied_if_none_came() -> None:
    wire = init() + acts(add(output("a", "m1")), move("m1", "m1", 1, output("a summary", "r1")), more("b"))
    for rest in (acts(task()) + DONE, DONE):
        events = decode(wire + rest, STREAMED)
        assert (fold(events).text, rules(events)) == ("ab", ["MESSAGES_MOVED"])


def test_a_response_without_a_root_does_not_move_to_itself() -> None:
    wire = init() + acts(add(output("a", "m1")), move("m1", "m1", 1, target="t1"))
    with pytest.raises(BackendProtocolError) as caught:
        decode(wire + DONE, STREAMED)
    assert caught.value.code == "upstream_invalid_event"


def test_text_that_came_before_the_invalid_move_is_not_lost() -> None:
    machine = decoder(STREAMED)
    assert machine.feed(PRELUDE + acts(add(output("a"))))[-1] == TextDelta("a")
    with pytest.raises(BackendProtocolError) as caught:
        machine.feed(acts(more("b"), move("q1", "q1", 1, source="t9")))
    assert caught.value.take_events() == [TextDelta("b")]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=6), st.booleans())
def test_moves_of_any_range_leave_any_response_as_it_is(ranges: list[tuple[int, int, bool]], buffers: bool) -> None:
    said = [add(output(f"{n} ", f"m{n}")) for n in range(6)]
    actions = list(said)
    for at, (first, last, committed) in enumerate(ranges):
        moved = move(f"m{first}", f"m{last}", max(last - first + 1, 0), subagent(f"r{at}"), target=f"u{at}")
        actions[min(last + 1, len(actions)) : 0] = [BEGIN, moved, COMMIT if committed else ROLLBACK]
    rollback = "buffer" if buffers else "stream"
    assert fold(answer(*actions, rollback=rollback)).text == fold(answer(*said, rollback=rollback)).text
