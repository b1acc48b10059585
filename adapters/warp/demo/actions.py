"""Builds the events of the agent wire; each function builds one action or event from plain values."""

import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import JsonObject


class Ids(msgspec.Struct, frozen=True):
    """The ids of one response."""

    conversation: str
    request: str
    task: str


def init_event(ids: Ids) -> pb.ResponseEvent:
    return pb.ResponseEvent(init=pb.StreamInit(conversation_id=ids.conversation, request_id=ids.request))


def actions_event(*actions: pb.ClientAction) -> pb.ResponseEvent:
    return pb.ResponseEvent(client_actions=pb.ClientActions(actions=actions))


def create_task(task: str, parent: str = "") -> pb.ClientAction:
    made = pb.Task(id=task)
    if parent:
        made.dependencies.parent_task_id = parent
    return pb.ClientAction(create_task=pb.ClientAction.CreateTask(task=made))


def add(task: str, *messages: pb.Message) -> pb.ClientAction:
    return pb.ClientAction(add_messages_to_task=pb.ClientAction.AddMessagesToTask(task_id=task, messages=messages))


def append(task: str, path: str, message: pb.Message) -> pb.ClientAction:
    action = pb.ClientAction.AppendToMessageContent(task_id=task, message=message)
    action.mask.paths.append(path)
    return pb.ClientAction(append_to_message_content=action)


def update(task: str, path: str, message: pb.Message) -> pb.ClientAction:
    action = pb.ClientAction.UpdateTaskMessage(task_id=task, message=message)
    action.mask.paths.append(path)
    return pb.ClientAction(update_task_message=action)


def describe(task: str, title: str) -> pb.ClientAction:
    return pb.ClientAction(
        update_task_description=pb.ClientAction.UpdateTaskDescription(task_id=task, description=title)
    )


def move(source: str, task: str, first: str, last: str, count: int, *placed: pb.Message) -> pb.ClientAction:
    """Builds the move of a range of messages to a new task, and of others to their place."""
    action = pb.ClientAction.MoveMessagesToNewTask(
        source_task_id=source,
        new_task=pb.Task(id=task),
        first_message_id=first,
        last_message_id=last,
        expected_message_count=count,
        replacement_messages=placed,
    )
    action.new_task.dependencies.parent_task_id = source
    return pb.ClientAction(move_messages_to_new_task=action)


def begin() -> pb.ClientAction:
    return pb.ClientAction(begin_transaction=pb.ClientAction.BeginTransaction())


def commit() -> pb.ClientAction:
    return pb.ClientAction(commit_transaction=pb.ClientAction.CommitTransaction())


def rollback() -> pb.ClientAction:
    return pb.ClientAction(rollback_transaction=pb.ClientAction.RollbackTransaction())


def output(message: str, task: str, text: str) -> pb.Message:
    return pb.Message(id=message, task_id=task, agent_output=pb.Message.AgentOutput(text=text))


def reasoning(message: str, task: str, text: str, seconds: int | None = None) -> pb.Message:
    thought = pb.Message.AgentReasoning(reasoning=text)
    if seconds is not None:
        thought.finished_duration.CopyFrom(Duration(seconds=seconds))
    return pb.Message(id=message, task_id=task, agent_reasoning=thought)


def mcp_call(message: str, task: str, call_id: str, name: str, args: JsonObject | None) -> pb.Message:
    """Builds a call with its arguments as a Struct. With None the arguments are omitted; an empty id or name is
    omitted, too."""
    call = pb.Message.ToolCall(call_mcp_tool=pb.Message.ToolCall.CallMCPTool())
    if call_id:
        call.tool_call_id = call_id
    if name:
        call.call_mcp_tool.name = name
    if args is not None:
        call.call_mcp_tool.args.CopyFrom(Struct())
        call.call_mcp_tool.args.update(dict(args))
    return pb.Message(id=message, task_id=task, tool_call=call)


def call_native(message: str, task: str, call_id: str, tool: str) -> pb.Message:
    """Builds a call of a tool of the wire, whose fields the schema does not define."""
    call = pb.Message.ToolCall(tool_call_id=call_id)
    getattr(call, tool).SetInParent()
    return pb.Message(id=message, task_id=task, tool_call=call)


def user_echo(message: str, task: str, query: str) -> pb.Message:
    echo = pb.Message.UserQuery(query=query, mode=pb.UserQueryMode(), intended_agent=pb.AGENT_PRIMARY)
    return pb.Message(id=message, task_id=task, user_query=echo)


def server_event(message: str, task: str, payload: str) -> pb.Message:
    return pb.Message(id=message, task_id=task, server_event=pb.Message.ServerEvent(payload=payload))
