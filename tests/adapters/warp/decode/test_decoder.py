import pytest

from adapters.warp.decode import tasks
from adapters.warp.multi_agent_pb2 import ClientAction, Message, ResponseEvent
from gateway.core.conversation import Conversation, Json, JsonObject, Text, ToolCall, ToolSpec, Turn
from gateway.core.errors import BackendProtocolError, BackendRejected, BackendTruncated, InvalidToolCall
from gateway.core.events import (
    Finish,
    ReasoningDelta,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.testing.events import fold, join
from tests.adapters.warp.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
    TITLE,
    acts,
    add,
    append,
    decode,
    decoder,
    finished,
    frame,
    golden,
    heard,
    init,
    mcp_call,
    more,
    output,
    reasoning,
    rules,
    task,
    update,
)

STREAMED = Conversation((), stream=True)


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


# ---- text ------------------------------------------------------------------------------------------------------------


def test_text_streams_as_it_grows() -> None:
    machine = decoder()
    machine.feed(PRELUDE)
    assert machine.feed(acts(add(output("He")))) == [TextDelta("He")]
    assert machine.feed(acts(more("llo"))) == [TextDelta("llo")]


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
def test_whether_a_transaction_holds_its_text_is_a_setting(rollback: str) -> None:
    machine = decoder(STREAMED, rollback=rollback)
    machine.feed(PRELUDE + acts(BEGIN))
    early = machine.feed(acts(add(output("He")))) + machine.feed(acts(more("llo")))
    late = machine.feed(acts(COMMIT))
    shown, held = ([TextDelta("He"), TextDelta("llo")], []) if rollback == "stream" else ([], [TextDelta("Hello")])
    assert (early, late) == (shown, held)


@pytest.mark.parametrize(
    ("text", "shown", "noted"),
    [
        ("Hello world", "Hello world", []),
        ("Hello", "Hello", []),
        ("Hell", "Hello", ["SHOWN_TEXT_REPLACED"]),
        ("Goodbye", "Hello", ["SHOWN_TEXT_REPLACED"]),
    ],
)
def test_a_replaced_text_is_not_said_twice(text: str, shown: str, noted: list[str]) -> None:
    events = decode(PRELUDE + acts(add(output("Hello")), update(output(text), "agent_output.text")) + DONE)
    assert fold(events).text == shown
    assert rules(events) == noted


def test_held_text_may_be_replaced_freely() -> None:
    events = decode(PRELUDE + acts(BEGIN, add(output("wrong")), update(output("right"), "agent_output"), COMMIT) + DONE)
    assert (fold(events).text, rules(events)) == ("right", [])


def test_an_update_of_an_unknown_message_adds_it_whole() -> None:
    events = decode(PRELUDE + acts(update(output("new"), "server_message_data")) + DONE)
    assert fold(events).text == "new"


def test_an_update_of_a_message_from_the_sent_history_says_nothing_new() -> None:
    old = update(output("from an earlier answer", "t1-1"), "server_message_data")
    events = decode(PRELUDE + acts(old, add(output("new"))) + DONE, encoding="structured")
    assert fold(events).text == "new"


def test_a_message_that_comes_twice_is_said_once() -> None:
    events = decode(PRELUDE + acts(add(output("one")), add(output("one two"))) + DONE)
    assert fold(events).text == "one two"


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (append(output("x"), "agent_output.mood"), "UNKNOWN_MASK_PATH"),
        (append(output("x", "nobody"), "agent_output.text"), "ACTION_SKIPPED"),
        (append(output("x"), "agent_output"), "ACTION_SKIPPED"),
        (append(output("x"), "timestamp.seconds.deep"), "UNKNOWN_MASK_PATH"),
        (append(output("x")), None),
    ],
)
def test_what_an_append_cannot_mean_is_skipped(action: ClientAction, rule: str | None) -> None:
    events = decode(PRELUDE + acts(add(output("a")), action, more("b")) + DONE)
    assert fold(events).text == "ab"
    assert rules(events) == ([rule] if rule else [])


def test_an_update_through_lists_of_unequal_length_is_skipped() -> None:
    seen = Message(id="q2", user_query={"context": {"images": [{"mime_type": "a"}]}})
    none = Message(id="q2", user_query={"context": {}})
    wire = PRELUDE + acts(add(seen), update(none, "user_query.context.images.mime_type"), add(output("a"))) + DONE
    assert rules(decode(wire)) == ["ACTION_SKIPPED"]


def test_an_append_of_nothing_changes_nothing() -> None:
    assert fold(decode(PRELUDE + acts(add(output("a")), more(""), more("b")) + DONE)).text == "ab"


def test_a_mask_may_name_several_paths() -> None:
    piece = Message(id="m1", agent_output={"text": "b"}, server_message_data="y")
    events = decode(PRELUDE + acts(add(output("a")), append(piece, "server_message_data", "agent_output.text")) + DONE)
    assert fold(events).text == "ab"


def test_several_messages_are_said_in_their_order() -> None:
    wire = PRELUDE + acts(BEGIN, add(output("a")), add(output("c", "m2")), more("b"), COMMIT) + DONE
    assert fold(decode(wire)).text == "abc"


def test_long_unicode_text_arrives_unchanged() -> None:
    text = "\U0001f468\u200d\U0001f469\u200d\U0001f467 日本 e\u0301 \u2028 \x00 " * 4000
    pieces = [text[start : start + 999] for start in range(0, len(text), 999)]
    wire = PRELUDE + acts(add(output(""))) + b"".join(acts(more(piece)) for piece in pieces) + DONE
    assert fold(decode(wire)).text == text


# ---- transactions ----------------------------------------------------------------------------------------------------


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


# ---- calls -----------------------------------------------------------------------------------------------------------


def test_a_call_waits_for_the_finish_when_there_is_no_transaction() -> None:
    machine = decoder()
    assert fold(machine.feed(PRELUDE + acts(add(mcp_call())))).calls == ()
    assert len(fold(machine.feed(DONE)).calls) == 1


def test_a_call_waits_for_the_commit() -> None:
    machine = decoder(STREAMED, rollback="stream")
    assert fold(machine.feed(PRELUDE + acts(BEGIN, add(mcp_call())))).calls == ()
    assert len(fold(machine.feed(acts(COMMIT))).calls) == 1
    assert heard(machine.feed(DONE)) == [Finish("tool_calls", "done")]


@pytest.mark.parametrize(
    "wire",
    [
        acts(add(mcp_call("k1"), mcp_call("k2"))),
        acts(add(mcp_call("k1")), add(mcp_call("k2"))),
        acts(add(mcp_call("k1"))) + acts(add(mcp_call("k2"))),
    ],
)
def test_parallel_calls_keep_their_own_index_and_id(wire: bytes) -> None:
    events = decode(PRELUDE + acts(BEGIN) + wire + acts(COMMIT) + DONE)
    assert [(event.index, event.id) for event in events if isinstance(event, ToolCallStart)] == [(0, "k1"), (1, "k2")]
    assert heard(events)[-1] == Finish("tool_calls", "done")


def test_a_waiting_call_may_be_replaced_but_not_one_that_was_sent() -> None:
    changed = update(mcp_call(args={"n": 2}), "tool_call.call_mcp_tool.args")
    first = mcp_call(args={"n": 1})
    waiting = decode(PRELUDE + acts(BEGIN, add(first), changed, COMMIT) + DONE)
    sent = decode(PRELUDE + acts(BEGIN, add(first), COMMIT, changed) + DONE)
    assert fold(waiting).calls[0].arguments == '{"name":"Execute","args":{"n":2}}'
    assert fold(sent).calls[0].arguments == '{"name":"Execute","args":{"n":1}}'
    assert (len(fold(sent).calls), rules(sent)) == (1, ["SHOWN_CALL_REPLACED"])


def test_ids_are_unique_and_never_missing() -> None:
    asked = Conversation((Turn("assistant", (ToolCall("old", "Execute", "{}"),)),))
    calls = [mcp_call("k", message_id=f"m{n}") for n in range(3)]
    calls += [mcp_call("", message_id="m8"), mcp_call("", message_id="m9"), mcp_call("old")]
    events = decode(PRELUDE + acts(add(*calls)) + DONE, asked)
    assert [call.id for call in fold(events).calls] == ["k", "k-2", "k-3", "call_m8", "call_m9", "old-2"]
    assert rules(events) == ["CALL_ID_MADE"] * 5


def test_missing_arguments_are_an_empty_object() -> None:
    assert fold(decode(PRELUDE + acts(add(mcp_call())) + DONE)).calls[0].arguments == '{"name":"Execute","args":{}}'


def test_an_envelope_without_a_name_is_passed_on_for_the_unwrapper_to_refuse() -> None:
    assert fold(decode(PRELUDE + acts(add(mcp_call(name=""))) + DONE)).calls[0].arguments == '{"name":"","args":{}}'


def test_lost_digits_are_noticed() -> None:
    events = decode(PRELUDE + acts(add(mcp_call(args={"n": 2**53 + 1}))) + DONE)
    assert rules(events) == ["NUMBER_INEXACT"]


def test_a_structured_history_finds_its_opaque_fields_in_the_call() -> None:
    message = mcp_call()
    message.server_message_data, message.request_id = "opaque", "r7"
    message.tool_call.call_mcp_tool.server_id = "s1"
    wire = PRELUDE + acts(add(message)) + DONE
    carried = {
        "conversation_id": "c1",
        "task_id": "t1",
        "message_id": "m-k1",
        "request_id": "r7",
        "server_message_data": "opaque",
        "server_id": "s1",
    }
    assert fold(decode(wire, encoding="structured")).calls[0].extra == {"extra_content": {"warp": carried}}
    assert fold(decode(wire)).calls[0].extra == {}


def test_a_structured_history_finds_its_opaque_fields_in_the_message() -> None:
    wire = PRELUDE + acts(add(output("a")), more("b")) + acts(add(output("c", "m2"))) + DONE
    carried: JsonObject = {"extra_content": {"warp": {"conversation_id": "c1", "task_id": "t1", "message_id": "m1"}}}
    events = decode(wire, encoding="structured")
    assert [event for event in events if isinstance(event, ReasoningEnd)] == [ReasoningEnd(carried)]
    assert isinstance(events[events.index(ReasoningEnd(carried)) + 1], TextDelta)
    assert not any(isinstance(event, ReasoningEnd) for event in decode(wire))


def test_the_total_of_a_continued_conversation_is_marked_as_an_estimate() -> None:
    carried: JsonObject = {"extra_content": {"warp": {"conversation_id": "c1"}}}
    asked = Conversation((Turn("assistant", (Text("a"),), extra=carried), Turn("user", (Text("b"),))))
    totals = {"warp_token_usage": {"a": {"total_tokens": 5}}}
    wire = PRELUDE + acts(add(output("a"))) + finished(done={}, conversation_usage_metadata=totals)
    assert fold(decode(wire, asked, encoding="structured")).usage == UsageReport(total_tokens=5, estimated=True)
    assert fold(decode(wire, asked)).usage == UsageReport(total_tokens=5)
    assert fold(decode(wire, encoding="structured")).usage == UsageReport(total_tokens=5)


def test_text_that_grew_in_a_transaction_and_was_streamed_cannot_be_rolled_back() -> None:
    with pytest.raises(BackendRejected):
        decode(PRELUDE + acts(add(output("a")), BEGIN, more("X"), ROLLBACK) + DONE, STREAMED, rollback="stream")


def shell(command: str = "ls") -> Message:
    return Message(id="n1", tool_call={"tool_call_id": "k9", "run_shell_command": {"command": command}})


SHELL = Conversation((), tools=(ToolSpec("run_shell_command"), ToolSpec("grep")))


def test_a_native_call_is_dropped_with_a_warning() -> None:
    events = decode(PRELUDE + acts(add(shell(), output("a"))) + DONE, SHELL)
    assert (fold(events).calls, fold(events).finish) == ((), Finish("stop", "done"))
    assert rules(events) == ["NATIVE_CALL_DROPPED"]


def test_a_native_call_is_exposed_to_a_client_that_declares_it() -> None:
    wire = PRELUDE + acts(add(shell('echo "ü"'))) + DONE
    assert fold(decode(wire, SHELL, native_tools="expose")).calls == (
        ToolCall("k9", "run_shell_command", '{"command":"echo \\"ü\\""}'),
    )
    with pytest.raises(BackendRejected):
        decode(wire, native_tools="expose")


def test_a_native_call_whose_fields_nobody_reads_is_never_exposed() -> None:
    grep = Message(id="n1", tool_call={"tool_call_id": "k9", "grep": {}})
    events = decode(PRELUDE + acts(add(grep, output("a"))) + DONE, SHELL, native_tools="expose")
    assert (fold(events).calls, rules(events)) == ((), ["NATIVE_CALL_DROPPED"])


@pytest.mark.parametrize(
    "message",
    [
        shell(),
        Message(id="n1", tool_call={"tool_call_id": "k9", "subagent": {}}),
        # A tool of a newer schema: field 1999 of the call.
        Message.FromString(b"\x0a\x02n1\x22\x03\xfa\x7c\x00"),
    ],
)
def test_an_answer_of_nothing_but_dropped_calls_is_an_error(message: Message) -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + acts(add(message)) + DONE)
    assert (caught.value.code, [notice.rule for notice in caught.value.notices]) == (
        "upstream_unsupported_tool",
        ["NATIVE_CALL_DROPPED"],
    )


@pytest.mark.parametrize("beside", [(), (output("a"),)])
def test_a_call_without_a_tool_is_an_error(beside: tuple[Message, ...]) -> None:
    with pytest.raises(InvalidToolCall) as caught:
        decode(PRELUDE + acts(add(*beside, Message(id="n1", tool_call={"tool_call_id": "k9"}))) + DONE)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")


def test_a_call_that_the_backend_answers_itself_is_not_the_clients() -> None:
    server = Message(id="n1", tool_call={"tool_call_id": "k9", "server": {"payload": "IgA="}})
    assert decode(PRELUDE + acts(add(server, output("a"))) + DONE) == [
        ResponseStart("r1"),
        TextDelta("a"),
        Finish("stop", "done"),
    ]


# ---- subtasks --------------------------------------------------------------------------------------------------------


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


# ---- the unknown -----------------------------------------------------------------------------------------------------


def unknown_event(number: int) -> bytes:
    return frame(ResponseEvent.FromString(bytes([(number << 3) | 2, 1, 65])))


def test_unknown_variants_are_ignored_and_noted_once_per_kind() -> None:
    action = ClientAction.FromString(b"\x9a\x06\x00")
    message = Message.FromString(b"\x0a\x02m9\xd2\x05\x00")
    strange = unknown_event(15) + unknown_event(15) + acts(action, action, add(message), add(message))
    events = decode(PRELUDE + acts(add(output("a"))) + strange + acts(more("b")) + DONE)
    assert fold(events).text == "ab"
    assert rules(events) == ["UNKNOWN_VARIANT"] * 3


def test_a_finish_with_a_reason_that_nobody_knows_is_told() -> None:
    strange = frame(ResponseEvent.FromString(b"\x1a\x02\x7a\x00"))
    events = decode(PRELUDE + acts(add(output("a"))) + strange)
    assert rules(events) == ["FINISH_REASON_UNKNOWN"]
    assert heard(events)[-1] == Finish("stop")


def test_nothing_is_appended_to_a_message_of_an_unknown_kind() -> None:
    strange = Message.FromString(b"\x0a\x02m9\xd2\x05\x00")
    piece = append(reasoning("x", "m9"), "novelty.text")
    events = decode(PRELUDE + acts(add(strange), piece, add(output("a"))) + DONE)
    assert (fold(events).reasoning, fold(events).text) == ("", "a")
    assert rules(events) == ["UNKNOWN_VARIANT", "UNKNOWN_MASK_PATH"]


def test_a_second_init_does_not_rename_the_conversation() -> None:
    wire = init("c1") + init("c2") + acts(add(mcp_call())) + DONE
    (call,) = fold(decode(wire, encoding="structured")).calls
    assert "c1" in str(call.extra) and "c2" not in str(call.extra)


def test_kinds_that_are_not_content_are_noted_once() -> None:
    found = Message(id="w1", web_search={})
    suggestion = ClientAction(show_suggestions={})
    events = decode(PRELUDE + acts(add(found), suggestion, suggestion, add(output("a"))) + DONE)
    assert (fold(events).text, rules(events)) == ("a", ["MESSAGE_IGNORED", "ACTION_IGNORED"])


def test_an_empty_event_means_nothing() -> None:
    assert decode(
        PRELUDE + b"data:\n\n" + frame(ResponseEvent()) + b"data: [DONE]\n\n" + acts(add(output("a"))) + DONE
    ) == [
        ResponseStart("r1"),
        TextDelta("a"),
        Finish("stop", "done"),
    ]


def test_another_model_than_the_one_asked_for_is_noted() -> None:
    used = Message(id="u1", model_used={"model_id": "small", "is_fallback": True})
    same = Message(id="u2", model_used={"model_id": "big"})
    assert rules(decode(PRELUDE + acts(add(used, same, output("a"))) + DONE)) == ["MODEL_FALLBACK"]


# ---- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", [b"", init(), PRELUDE, PRELUDE + acts(BEGIN, add(output("a"), mcp_call()), COMMIT)])
def test_an_end_without_a_finish_is_truncation(head: bytes) -> None:
    with pytest.raises(BackendTruncated):
        decode(head)


@pytest.mark.parametrize("body", [b"", b": quiet\n\n", b"data:\n\n", frame(ResponseEvent()), b"data: [DONE]\n\n"])
def test_an_end_without_anything_is_no_answer(body: bytes) -> None:
    with pytest.raises(BackendTruncated) as caught:
        decode(body)
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_response")


def test_half_an_event_is_a_truncated_answer() -> None:
    with pytest.raises(BackendTruncated) as caught:
        decode(init()[:-8])
    assert caught.value.code == "upstream_stream_truncated"


def test_a_last_frame_without_its_blank_line_counts() -> None:
    assert fold(decode(PRELUDE + acts(add(output("a"))) + DONE.rstrip(b"\n"))).finish == Finish("stop", "done")


def test_nothing_follows_the_finish() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + DONE + acts(more("b")) + DONE + b"data:%%%\n\n")
    assert fold(events).text == "a"
    assert events[-2:] == [Finish("stop", "done"), events[-1]]
    assert rules(events) == ["LATE_EVENT"]


def test_done_is_true_from_the_finish_on() -> None:
    machine = decoder()
    seen = [(machine.feed(wire), machine.done)[1] for wire in (PRELUDE, acts(add(output("a"))), DONE)]
    assert seen == [False, False, True]
    assert machine.close() == []


def test_an_answer_without_output_is_empty_or_an_error() -> None:
    assert rules(decode(PRELUDE + DONE)) == ["EMPTY_ANSWER"]
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + DONE, empty_answer="error")
    assert caught.value.code == "upstream_empty_answer"


def test_the_token_limit_ends_with_length() -> None:
    assert heard(decode(PRELUDE + acts(add(output("a"))) + finished(max_token_limit={})))[-1] == Finish(
        "length", "max_token_limit"
    )


def test_usage_comes_before_the_finish() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, token_usage=[{"total_input": 7, "output": 2}]))
    assert events[-2:] == [UsageReport(7, 2, 9), Finish("stop", "done")]


def test_pruned_media_are_noted() -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + finished(done={}, pruned_media={"pruned_count": 2}))
    assert rules(events) == ["MEDIA_PRUNED"]


def test_a_second_init_is_ignored() -> None:
    events = decode(init() + init("c2", "r2") + acts(add(output("a"))) + DONE)
    assert (events[0], rules(events)) == (ResponseStart("r1"), ["LATE_INIT"])


def test_an_answer_may_begin_without_an_init() -> None:
    assert join(decode(acts(add(output("a"))) + DONE))[:2] == [ResponseStart(None), TextDelta("a")]


# ---- malformed frames ------------------------------------------------------------------------------------------------

MALFORMED = [
    b"data:%%%\n\n",
    b"data:EhgKFhoUCgJ0MRIOCgJtMRoECgJI\n\n",
    b"data:_w==\n\n",
    b"data:EgQ\n\n",
    b"data:{}\n\n",
]


@pytest.mark.parametrize("broken", MALFORMED)
def test_one_malformed_event_fails_the_stream(broken: bytes) -> None:
    with pytest.raises(BackendProtocolError) as caught:
        decode(PRELUDE + acts(add(output("a"))) + broken + acts(more("b")) + DONE)
    assert caught.value.code == "upstream_invalid_event"
    assert [notice.rule for notice in caught.value.notices] == ["MALFORMED_EVENT"]


@pytest.mark.parametrize("broken", MALFORMED)
def test_a_malformed_event_is_skipped_with_a_warning_when_that_is_wanted(broken: bytes) -> None:
    events = decode(PRELUDE + acts(add(output("a"))) + broken + acts(more("b")) + DONE, strict_frames=False)
    assert (fold(events).text, rules(events)) == ("ab", ["MALFORMED_EVENT"])


def test_a_failing_feed_tells_what_it_had_noticed() -> None:
    with pytest.raises(BackendRejected) as caught:
        decode(PRELUDE + acts(COMMIT) + finished(quota_limit={}))
    assert [notice.rule for notice in caught.value.notices] == ["TRANSACTION_UNBALANCED"]


DENSE: JsonObject = {
    "properties": {"l": {"items": {"$ref": "#/$defs/d0"}}},
    "$defs": {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{(2 * i + 1) % 2000}"}, {"$ref": f"#/$defs/d{(2 * i + 2) % 2000}"}],
                  "items": {"$ref": f"#/$defs/d{(i + 1) % 2000}"}}
        for i in range(2000)
    },
}  # fmt: skip


def test_a_schema_whose_references_are_not_all_followed_is_told_once() -> None:
    deep: list[Json] = [1]
    for _ in range(40):
        deep = [deep]
    wire = PRELUDE + acts(add(*[mcp_call(f"k{n}", args={"l": deep}) for n in range(50)])) + DONE
    conversation = Conversation((), tools=(ToolSpec("Execute", "", DENSE),))
    events = decode(wire, conversation)
    assert rules(events).count("SCHEMA_NOT_FOLLOWED") == 1
    assert sum(isinstance(event, ToolCallEnd) for event in events) == 50


def test_an_answer_is_not_rewritten_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_REWRITTEN", 20_000)
    rewrite = update(Message(id="m1", server_message_data="x"), "server_message_data")
    assert isinstance(decode(PRELUDE + acts(add(output("x" * 1_000)), *[rewrite] * 4) + DONE)[-1], Finish)
    with pytest.raises(BackendProtocolError) as caught:
        decode(PRELUDE + acts(add(output("x" * 1_000)), *[rewrite] * 40) + DONE)
    assert caught.value.code == "upstream_response_too_large"


def test_taking_pieces_back_does_not_rebuild_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_REWRITTEN", 10_000)
    undone = (BEGIN, more("y"), ROLLBACK) * 40
    wire = PRELUDE + acts(BEGIN, add(output("x" * 1_000)), *undone, more("z"), COMMIT) + DONE
    assert join(heard(decode(wire))) == join(heard(decode(PRELUDE + acts(add(output("x" * 1_000 + "z"))) + DONE)))
