import pytest

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import File, Image, Json, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.errors import InvalidRequest, Unsupported
from tests.adapters.warp.backend.sent import (
    RED_DOT,
    assistant,
    both,
    call,
    conversation,
    result,
    rules,
    sent,
    system,
    user,
)

OPAQUE: dict[str, Json] = {
    "conversation_id": "c1",
    "task_id": "t1",
    "message_id": "m3",
    "request_id": "r1",
    "server_message_data": "b3BhcXVl",
}


def structured(*turns: Turn) -> pb.Request:
    return sent(conversation(*turns), encoding="structured")


def log(request: pb.Request) -> list[pb.Message]:
    return [message for task in request.task_context.tasks for message in task.messages]


def inputs(request: pb.Request) -> list[str | None]:
    return [given.WhichOneof("input") for given in request.input.user_inputs.inputs]


def test_a_conversation_that_begins_has_no_log() -> None:
    request = structured(user("hi"))
    assert request.HasField("task_context")
    assert log(request) == []
    assert request.input.user_inputs.inputs[0].user_query.query == "hi"


def test_everything_up_to_the_last_answer_is_the_log_and_the_rest_the_input() -> None:
    request = structured(user("one"), assistant("two"), user("three"), assistant("four", call("k")), result("k", "x"))
    kinds = [message.WhichOneof("message") for message in log(request)]
    assert kinds == ["user_query", "agent_output", "user_query", "agent_output", "tool_call"]
    assert inputs(request) == ["tool_call_result"]


def test_parallel_results_and_a_question_are_inputs_of_one_turn() -> None:
    request = structured(
        user("hi"), assistant("", call("a"), call("b")), result("a", "1"), result("b", "2"), user("and now?")
    )
    assert inputs(request) == ["tool_call_result", "tool_call_result", "user_query"]
    given = request.input.user_inputs.inputs
    assert [given[0].tool_call_result.tool_call_id, given[1].tool_call_result.tool_call_id] == ["a", "b"]


def test_a_question_is_in_normal_mode_to_the_primary_agent_in_every_turn() -> None:
    request = structured(user("one"), assistant("two"), user("three"))
    fresh, old = request.input.user_inputs.inputs[0].user_query, log(request)[0].user_query
    assert fresh.HasField("mode")
    assert old.HasField("mode")
    assert (fresh.intended_agent, old.intended_agent) == (pb.AGENT_PRIMARY, pb.AGENT_PRIMARY)


def test_reasoning_text_and_calls_of_an_answer_keep_their_order() -> None:
    turn = Turn("assistant", (Reasoning("hm"), Text("Let me"), call("k")))
    kinds = [message.WhichOneof("message") for message in log(structured(user("hi"), turn))]
    assert kinds == ["user_query", "agent_reasoning", "agent_output", "tool_call"]


def test_the_state_of_reasoning_returns_with_it() -> None:
    turn = Turn("assistant", (Reasoning("hm", extra={"extra_content": {"warp": OPAQUE}}), Text("Let me")))
    _, thought, said = log(structured(user("hi"), turn))
    assert (thought.id, thought.request_id, thought.server_message_data) == ("m3", "r1", "b3BhcXVl")
    assert (said.request_id, said.server_message_data) == ("", "")


def test_empty_text_beside_a_call_is_no_message_of_the_log() -> None:
    turn = Turn("assistant", (Text(""), call("k")))
    kinds = [message.WhichOneof("message") for message in log(structured(user("hi"), turn))]
    assert kinds == ["user_query", "tool_call"]


def test_a_conversation_that_ends_with_an_answer_is_resumed() -> None:
    request = structured(user("hi"), assistant("Once upon"))
    assert request.input.WhichOneof("type") == "resume_conversation"
    assert log(request)[-1].agent_output.text == "Once upon"


@pytest.mark.parametrize("turns", [[user("hi")], [user("hi"), assistant("", call("k")), result("k", "x")]])
def test_system_text_is_attached_to_the_newest_question(turns: list[Turn]) -> None:
    request = structured(system("Be"), Turn("developer", (Text("brief"),)), *turns)
    asked = [given.user_query.referenced_attachments for given in request.input.user_inputs.inputs]
    logged = [message.user_query.referenced_attachments for message in log(request)]
    (attachments,) = filter(None, (*asked, *logged))
    assert attachments["SYSTEM_PROMPT"].plain_text == "Be\n\nbrief"


def test_system_text_without_any_question_gets_an_empty_one() -> None:
    given = structured(system("Be brief")).input.user_inputs.inputs[0].user_query
    assert (given.query, given.referenced_attachments["SYSTEM_PROMPT"].plain_text) == ("", "Be brief")


def test_a_system_message_inside_the_conversation_stays_at_its_place() -> None:
    turns = (system("a"), user("b"), assistant("c"), system("d"), user("e"))
    request = structured(*turns)
    asked = [given.user_query for given in request.input.user_inputs.inputs]
    assert [query.query for query in asked] == ["<system_message>\nd\n</system_message>", "e"]
    assert asked[1].referenced_attachments["SYSTEM_PROMPT"].plain_text == "a"


def test_ids_are_those_of_the_shorter_history_and_those_of_another_conversation_differ() -> None:
    turns = [user("hi"), assistant("hello"), user("more"), assistant("yes"), user("and")]
    short, long = log(structured(*turns[:3])), log(structured(*turns))
    assert [message.id for message in long[: len(short)]] == [message.id for message in short]
    other = log(structured(user("other"), *turns[1:]))
    assert {message.task_id for message in other}.isdisjoint(message.task_id for message in long)
    assert len({message.id for message in long}) == len(long)


def test_what_the_backend_wants_back_goes_back_unchanged() -> None:
    carrying = ToolCall("k1", "Execute", "{}", {"extra_content": {"warp": {**OPAQUE, "server_id": "s9"}}})
    request = structured(user("hi"), assistant("", carrying), result("k1", "ok"))
    message = log(request)[-1]
    assert request.metadata.conversation_id == "c1"
    assert request.task_context.tasks[0].id == "t1"
    assert (message.id, message.server_message_data, message.task_id) == ("m3", "b3BhcXVl", "t1")
    assert (message.request_id, message.tool_call.call_mcp_tool.server_id) == ("r1", "s9")


def test_a_conversation_is_continued_from_the_newest_answer() -> None:
    answers = [Turn("assistant", (Text("a"),), extra={"extra_content": {"warp": {"conversation_id": c}}}) for c in "12"]
    request = structured(user("hi"), answers[0], user("more"), answers[1], user("and"))
    assert request.metadata.conversation_id == "2"


def test_images_go_with_their_question() -> None:
    shown = Turn("user", (Text("look"), Image(RED_DOT)))
    fresh = structured(shown)
    assert fresh.input.context.images[0] == pb.InputContext.Image(data=b"iVBORw0KGgo=", mime_type="image/png")
    old = structured(shown, assistant("a dot"), user("which colour?"))
    assert len(log(old)[0].user_query.context.images) == 1
    assert not old.input.HasField("context")


@pytest.mark.parametrize(
    ("turn", "param"),
    [
        (Turn("user", (Text("a"), Image("https://example.org/a.png")), index=4), "messages[4].content[1]"),
        (Turn("user", (File("input_audio", {}),)), "messages[0].content[0]"),
        (Turn("assistant", (Image(RED_DOT),)), "messages[0].content[0]"),
        (Turn("tool", (ToolResult("k", (File("file", {}),)),), index=2), "messages[2].content[0]"),
    ],
)
def test_a_part_that_cannot_be_sent_is_named(turn: Turn, param: str) -> None:
    with pytest.raises(Unsupported) as caught:
        structured(turn)
    assert caught.value.param == param
    assert param in caught.value.message


def test_a_call_that_no_assistant_made_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"messages\[0\]"):
        structured(Turn("user", (call("k"),)))


def test_the_name_of_a_speaker_is_said_to_be_left_out() -> None:
    _, notices = both(conversation(Turn("user", (Text("hi"),), name="Ann", index=0)), encoding="structured")
    assert rules(notices) == ["TURN_NAME_NOT_SENT"]
