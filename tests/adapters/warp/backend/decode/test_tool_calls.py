import json

import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.multi_agent_pb2 import Message
from gateway.core.conversation import Conversation, Json, JsonObject, ToolCall, ToolSpec, Turn
from gateway.core.errors import BackendRejected, InvalidToolCall
from gateway.core.events import (
    Finish,
    ReasoningEnd,
    ResponseStart,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    STREAMED,
    acts,
    add,
    decode,
    decoder,
    heard,
    mcp_call,
    more,
    output,
    rules,
    update,
)


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
    assert [call.id for call in fold(events).calls] == ["k", "k_1_1", "k_1_2", "call_1_3", "call_1_4", "old_1_5"]
    assert rules(events) == [*["CALL_ID_RENAMED"] * 2, *["CALL_ID_ADDED"] * 2, "CALL_ID_RENAMED"]


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


def test_an_exposed_call_has_the_arguments_that_the_client_declares() -> None:
    call = shell("ls")
    command = call.tool_call.run_shell_command
    command.is_read_only, command.wait_until_complete = True, False
    command.risk_category = pb.RISK_CATEGORY_READ_ONLY
    declared: JsonObject = {"type": "object", "properties": {"wait_until_complete": {}, "risk_category": {}}}
    asked = Conversation((), tools=(ToolSpec("run_shell_command", "", declared),))
    events = decode(PRELUDE + acts(add(call)) + DONE, asked, native_tools="expose")
    assert json.loads(fold(events).calls[0].arguments) == {
        "command": "ls",
        "wait_until_complete": False,
        "risk_category": "RISK_CATEGORY_READ_ONLY",
    }
    assert [event.detail for event in events if isinstance(event, Notice)] == [
        "the client's tool run_shell_command does not declare is_read_only"
    ]


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
