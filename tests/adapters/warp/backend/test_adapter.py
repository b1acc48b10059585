import base64

import msgspec
import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Conversation, Json, NamedTool, Sampling, ToolCall, ToolChoice, ToolSpec
from gateway.core.errors import BackendRejected, SettingsError, Unsupported
from gateway.core.events import Event, Finish, TextDelta, ToolCallDelta, ToolCallStart
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.testing.events import fold
from tests.adapters.warp.backend.sent import ENCODINGS, EXECUTE, Encoding, assistant, conversation, result, sent, user

LOOK = conversation(user("look"))
INIT = "CggKAmMxEgJyMQ=="
TASK = "EgoKCAoGCgQKAnQx"
HE = "EhgKFhoUCgJ0MRIOCgJtMRoECgJIZVoCdDE="
LLO = "Ei4KLCoqCg8KAm0xGgUKA2xsb1oCdDESEwoRYWdlbnRfb3V0cHV0LnRleHQaAnQx"
CALL = "EjUKMxoxCgJ0MRIrCgJtMyIhCgJrMWIbCgdFeGVjdXRlEhAKDgoBbhIJEQAAAAAAABRAWgJ0MQ=="
DONE = "GgISAA=="


def adapter(**options: object) -> WarpAdapter:
    return WarpAdapter(msgspec.convert(options, WarpOptions), 1 << 20)


def exchange(conversation: Conversation, **options: object) -> Exchange:
    return Exchange(adapter(**options), conversation, Policy())


def answered(asked: Exchange, *frames: str) -> list[Event]:
    asked.on_response_head(200, {"content-type": "text/event-stream;charset=utf-8"})
    return asked.feed("".join(f"event:data\ndata:{frame}\n\n" for frame in frames).encode()) + asked.close()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_only_text_needs_a_continuation_turn(encoding: Encoding) -> None:
    capabilities = adapter(encoding=encoding).capabilities
    assert capabilities.text_only is (encoding == "flatten")
    assert capabilities.images


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("response_format", {"type": "json_object"}),
        ("logprobs", True),
    ],
)
def test_what_the_wire_cannot_honour_is_refused_by_its_name(field: str, value: Json) -> None:
    with pytest.raises(Unsupported) as caught:
        exchange(msgspec.structs.replace(LOOK, params={field: value}))
    assert caught.value.param == field


@pytest.mark.parametrize("disabled", [False, True])
def test_a_call_of_a_built_in_tool_reaches_no_client_where_the_policy_disables_them(disabled: bool) -> None:
    shell = ToolSpec("run_shell_command", "", {"type": "object", "properties": {"command": {"type": "string"}}})
    asked = Exchange(
        adapter(native_tools="expose"),
        msgspec.structs.replace(LOOK, tools=(shell,), stream=True),
        Policy(disable_warp_tools=disabled),
    )
    call = pb.Message(id="n1", task_id="t1", tool_call={"tool_call_id": "k9", "run_shell_command": {"command": "ls"}})
    event = pb.ResponseEvent(client_actions={"actions": [{"add_messages_to_task": {"messages": [call]}}]})
    native = base64.urlsafe_b64encode(event.SerializeToString()).decode()
    events = answered(asked, INIT, TASK, HE, native, DONE)
    answer = fold(events)
    assert (answer.text, [call.name for call in answer.calls]) == ("He", [] if disabled else ["run_shell_command"])
    dropped = [event.rule for event in events if isinstance(event, Notice) and event.action == "dropped"]
    assert dropped == (["NATIVE_CALL_DROPPED"] if disabled else [])


@pytest.mark.parametrize("choice", ["required", NamedTool("Execute")])
def test_a_call_cannot_be_forced(choice: ToolChoice) -> None:
    with pytest.raises(Unsupported) as caught:
        exchange(msgspec.structs.replace(LOOK, tool_choice=choice))
    assert caught.value.param == "tool_choice"


def test_a_limit_to_one_call_is_honoured() -> None:
    asked = msgspec.structs.replace(LOOK, parallel_tool_calls=False, params={"parallel_tool_calls": False})
    request = pb.Request.FromString(exchange(asked).request.body)
    assert request.settings.supports_parallel_tool_calls is False


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_comes_back(encoding: Encoding) -> None:
    events = answered(exchange(LOOK, encoding=encoding), INIT, TASK, HE, LLO, DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hello"
    assert events[-1] == Finish("stop", "done")


def test_a_stop_sequence_ends_the_answer() -> None:
    asked = msgspec.structs.replace(LOOK, sampling=Sampling(stop=("l",)))
    events = answered(exchange(asked), INIT, TASK, HE, LLO, DONE)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "He"


def test_a_structured_call_carries_what_the_next_turn_needs() -> None:
    """Two turns of one conversation: what came with the call goes back with the history."""
    tool = msgspec.structs.replace(EXECUTE, parameters={"properties": {"n": {"type": "integer"}}})
    asked = conversation(user("run"), tools=[tool])
    events = answered(exchange(asked, encoding="structured"), INIT, TASK, CALL, DONE)
    (start,) = [event for event in events if isinstance(event, ToolCallStart)]
    arguments = "".join(event.arguments for event in events if isinstance(event, ToolCallDelta))
    assert (start.id, start.name, arguments) == ("k1", "Execute", '{"n":5}')

    call = ToolCall(start.id, start.name, arguments, start.extra)
    told = conversation(user("run"), assistant("", call), result("k1", "ok"), tools=[tool])
    again = sent(told, encoding="structured")
    (task,) = again.task_context.tasks
    assert (again.metadata.conversation_id, task.id, task.messages[-1].id) == ("c1", "t1", "m3")
    assert (
        task.messages[-1].tool_call
        == pb.ResponseEvent.FromString(base64.b64decode(CALL))
        .client_actions.actions[0]
        .add_messages_to_task.messages[0]
        .tool_call
    )


def test_an_error_is_the_backends() -> None:
    with pytest.raises(BackendRejected):
        exchange(LOOK).on_response_head(429, {}, b"{}")


def test_the_slow_parser_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("google.protobuf.internal.api_implementation.Type", lambda: "python")
    with pytest.raises(SettingsError, match="pure Python"):
        WarpAdapter(WarpOptions(), 1 << 20)
