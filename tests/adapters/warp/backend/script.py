"""Short builders for what the backend sends, and the events that a decoder makes of it."""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct

from adapters.warp.backend.decode.decoder import WarpDecoder
from adapters.warp.backend.options import WarpOptions
from adapters.warp.multi_agent_pb2 import ClientAction, Message, ResponseEvent
from gateway.core.conversation import Conversation, JsonObject, ToolSpec
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.testing.replay import replay

MAX_EVENT = 1 << 20

# One ResponseEvent each, written with another encoder than ours.
GOLDEN: Mapping[str, str] = {
    "init": "CggKAmMxEgJyMQ==",
    "create_task": "EgoKCAoGCgQKAnQx",
    "begin": "EgQKAkoA",
    "add": "EhgKFhoUCgJ0MRIOCgJtMRoECgJIZVoCdDE=",
    "append": "Ei4KLCoqCg8KAm0xGgUKA2xsb1oCdDESEwoRYWdlbnRfb3V0cHV0LnRleHQaAnQx",
    "append_reasoning": "EjUKMyoxCg4KAm0yWgJ0MXoECgJobRIbChlhZ2VudF9yZWFzb25pbmcucmVhc29uaW5nGgJ0MQ==",
    "call": "EjUKMxoxCgJ0MRIrCgJtMyIhCgJrMWIbCgdFeGVjdXRlEhAKDgoBbhIJEQAAAAAAABRAWgJ0MQ==",
    "commit": "EgQKAlIA",
    "rollback": "EgQKAloA",
    "done": "GgISAA==",
    "quota": "GgIiAA==",
    "no_reason": "GgA=",
}

EXECUTE = ToolSpec("Execute", "", {"type": "object", "properties": {"n": {"type": "integer"}}})
ASKED = Conversation((), tools=(EXECUTE,))
STREAMED = Conversation((), stream=True)


def golden(*names: str) -> bytes:
    return b"".join(f"event:data\ndata:{GOLDEN[name]}\n\n".encode() for name in names)


def frame(event: ResponseEvent) -> bytes:
    return b"event:data\ndata:" + base64.urlsafe_b64encode(event.SerializeToString()) + b"\n\n"


def acts(*actions: ClientAction) -> bytes:
    """One event with these actions."""
    event = ResponseEvent()
    event.client_actions.actions.extend(actions)
    return frame(event)


def init(conversation_id: str = "c1", request_id: str = "r1") -> bytes:
    return frame(ResponseEvent(init={"conversation_id": conversation_id, "request_id": request_id}))


def finished(**fields: Any) -> bytes:
    return frame(ResponseEvent(finished=fields))


def task(task_id: str = "t1", parent: str = "", messages: Iterable[Message] = ()) -> ClientAction:
    made = ClientAction()
    made.create_task.task.id = task_id
    made.create_task.task.messages.extend(messages)
    if parent:
        made.create_task.task.dependencies.parent_task_id = parent
    return made


def add(*messages: Message, task_id: str = "t1") -> ClientAction:
    return ClientAction(add_messages_to_task={"task_id": task_id, "messages": messages})


def append(message: Message, *paths: str, task_id: str = "t1") -> ClientAction:
    return ClientAction(append_to_message_content={"message": message, "mask": {"paths": paths}, "task_id": task_id})


def update(message: Message, *paths: str, task_id: str = "t1") -> ClientAction:
    return ClientAction(update_task_message={"message": message, "mask": {"paths": paths}, "task_id": task_id})


def move(
    first: str, last: str, count: int, *placed: Message, source: str = "t1", target: str = "t2", **parent: str
) -> ClientAction:
    moved = {
        "source_task_id": source,
        "new_task": {"id": target, "dependencies": parent},
        "first_message_id": first,
        "last_message_id": last,
        "expected_message_count": count,
        "replacement_messages": placed,
    }
    return ClientAction(move_messages_to_new_task=moved)


def output(text: str, message_id: str = "m1") -> Message:
    return Message(id=message_id, task_id="t1", agent_output={"text": text})


def reasoning(text: str, message_id: str = "m0") -> Message:
    return Message(id=message_id, task_id="t1", agent_reasoning={"reasoning": text})


def more(text: str, message_id: str = "m1", task_id: str = "t1") -> ClientAction:
    return append(output(text, message_id), "agent_output.text", task_id=task_id)


def mcp_call(
    call_id: str = "k1", name: str = "Execute", args: JsonObject | None = None, message_id: str = ""
) -> Message:
    made = Message(id=message_id or f"m-{call_id}", task_id="t1")
    made.tool_call.tool_call_id = call_id
    made.tool_call.call_mcp_tool.name = name
    if args is not None:
        made.tool_call.call_mcp_tool.args.CopyFrom(struct(args))
    return made


def struct(value: JsonObject) -> Struct:
    made = Struct()
    made.update(dict(value))
    return made


BEGIN = ClientAction(begin_transaction={})
COMMIT = ClientAction(commit_transaction={})
ROLLBACK = ClientAction(rollback_transaction={})
DONE = finished(done={})
PRELUDE = (
    init()
    + acts(task())
    + acts(add(Message(id="s1", server_event={"payload": "opaque"})))
    + acts(add(Message(id="q1", user_query={"query": "the question"})))
    + acts(
        update(Message(id="q1", user_query={"query": "the question"}, server_message_data="x"), "server_message_data")
    )
)
TITLE = acts(ClientAction(update_task_description={"task_id": "t1", "description": "a title"}))


def decoder(conversation: Conversation = ASKED, **options: Any) -> WarpDecoder:
    return WarpDecoder(WarpOptions(**options), conversation, MAX_EVENT)


def decode(wire: bytes, conversation: Conversation = ASKED, **options: Any) -> list[Event]:
    """The events of a whole answer, checked against the grammar. Raises BackendError."""
    return replay(decoder(conversation, **options), [wire])


def heard(events: Iterable[Event]) -> list[Event]:
    """Without the notices."""
    return [event for event in events if not isinstance(event, Notice)]


def rules(events: Iterable[Event], minimum: Callable[[Notice], bool] = lambda notice: True) -> list[str]:
    """The codes of the notices."""
    return [event.rule for event in events if isinstance(event, Notice) and minimum(event)]
