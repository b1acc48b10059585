"""An independent reader of the agent wire for tests: server-sent bytes to messages, messages to an answer."""

import base64
import json
import re
from collections.abc import Iterable
from typing import Any

import httpx
import msgspec
from google.protobuf.json_format import MessageToDict

from adapters.warp import multi_agent_pb2 as pb
from gateway.core.conversation import Json, JsonObject

PROTOBUF = {"content-type": "application/x-protobuf"}


def question(text: str, tools: Iterable[JsonObject] = (), **settings: Any) -> pb.Request:
    """A request with one question; `tools` as OpenAI declares them."""
    request = pb.Request()
    request.input.user_inputs.inputs.add().user_query.query = text
    request.settings.supports_reasoning_message = settings.get("reasoning", True)
    request.settings.supports_parallel_tool_calls = settings.get("parallel", True)
    request.settings.supported_tools.append(settings.get("supported", 9))
    server = request.mcp_context.servers.add(id="s1", name="client")
    for tool in tools:
        function: Any = tool["function"]
        made = server.tools.add(name=function["name"], description=function.get("description", ""))
        made.input_schema.update(function["parameters"])
    return request


async def post(client: httpx.AsyncClient, url: str, request: pb.Request) -> httpx.Response:
    return await client.post(url, content=request.SerializeToString(), headers=PROTOBUF)


def data_of(wire: bytes) -> list[bytes]:
    """The data of each event; events end at blank lines, lines at CR, LF or CRLF."""
    lines = re.split(rb"\r\n|\r|\n", wire)
    events: list[bytes] = []
    held: list[bytes] = []
    for line in lines:
        if line.startswith(b"data:"):
            held.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and held:
            events.append(b"\n".join(held))
            held = []
    return events


def messages_of(wire: bytes) -> list[pb.ResponseEvent]:
    return [decoded(data) for data in data_of(wire) if data != b"[DONE]"]


def decoded(data: bytes) -> pb.ResponseEvent:
    text = data.strip(b'"').replace(b"\n", b"").replace(b"+", b"-").replace(b"/", b"_")
    return pb.ResponseEvent.FromString(base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4)))


def notation(events: Iterable[pb.ResponseEvent]) -> str:
    """The stream in shorthand: `I CT AM(server_event) B AP(agent_output.text)* F(done)`; a `*` joins repeats."""
    words: list[str] = []
    for event in events:
        for word in _words(event):
            if words and words[-1].rstrip("*") == word:
                words[-1] = f"{word}*"
            else:
                words.append(word)
    return " ".join(words)


def _words(event: pb.ResponseEvent) -> list[str]:
    match event.WhichOneof("type"):
        case "init":
            return ["I"]
        case "finished":
            return [f"F({event.finished.WhichOneof('reason') or ''})"]
        case "client_actions":
            return [_word(action) for action in event.client_actions.actions]
        case _:
            return ["E?"]


_SHORT = {
    "create_task": "CT",
    "begin_transaction": "B",
    "commit_transaction": "C",
    "rollback_transaction": "R",
    "update_task_description": "TD",
}


def _word(action: pb.ClientAction) -> str:
    kind = action.WhichOneof("action") or "?"
    match kind:
        case "add_messages_to_task":
            return f"AM({','.join(_variant(message) for message in action.add_messages_to_task.messages)})"
        case "append_to_message_content":
            return f"AP({','.join(action.append_to_message_content.mask.paths)})"
        case "update_task_message":
            return f"UP({','.join(action.update_task_message.mask.paths)})"
        case "move_messages_to_new_task":
            return f"MV({action.move_messages_to_new_task.expected_message_count})"
        case _:
            return _SHORT.get(kind, kind)


def _variant(message: pb.Message) -> str:
    kind = message.WhichOneof("message") or "?"
    return message.tool_call.WhichOneof("tool") or "?" if kind == "tool_call" else kind


class Seen(msgspec.Struct):
    """What a correct reader makes of a stream."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, Json]] = []
    ids: list[str] = []
    reason: str | None = None
    finished: bool = False


def read(events: Iterable[pb.ResponseEvent]) -> Seen:
    """Fold a stream: the root task's messages in order, transactions honoured, everything after the finish ignored."""
    log: list[pb.Message] = []
    saved: list[pb.Message] | None = None
    root = ""
    for event in events:
        if event.HasField("finished"):
            return _seen(log, root, event.finished.WhichOneof("reason"), True)
        for action in event.client_actions.actions:
            match action.WhichOneof("action"):
                case "create_task" if not action.create_task.task.dependencies.parent_task_id:
                    root = action.create_task.task.id
                case "begin_transaction":
                    saved = [_copy(message) for message in log]
                case "rollback_transaction" if saved is not None:
                    log, saved = saved, None
                case "commit_transaction":
                    saved = None
                case _:
                    _edit(log, action)
    return _seen(log, root, None, False)


def _edit(log: list[pb.Message], action: pb.ClientAction) -> None:
    if action.HasField("add_messages_to_task"):
        log += [_copy(message) for message in action.add_messages_to_task.messages]
    append, update = action.append_to_message_content, action.update_task_message
    if action.HasField("append_to_message_content"):
        for known in (message for message in log if message.id == append.message.id):
            if list(append.mask.paths) == ["agent_output.text"]:
                known.agent_output.text += append.message.agent_output.text
            if list(append.mask.paths) == ["agent_reasoning.reasoning"]:
                known.agent_reasoning.reasoning += append.message.agent_reasoning.reasoning
    if action.HasField("update_task_message"):
        found = [message for message in log if message.id == update.message.id]
        if not found:
            log.append(_copy(update.message))
        elif list(update.mask.paths) == ["agent_output.text"]:
            # What was said cannot be unsaid: only a longer text counts.
            longer = update.message.agent_output.text
            found[0].agent_output.text = max(found[0].agent_output.text, longer, key=len)


def _copy(message: pb.Message) -> pb.Message:
    copied = pb.Message()
    copied.CopyFrom(message)
    return copied


def _seen(log: list[pb.Message], root: str, reason: str | None, finished: bool) -> Seen:
    seen = Seen(calls=[], ids=[], reason=reason, finished=finished)
    for message in (message for message in log if message.task_id == root or not root):
        seen.text += message.agent_output.text
        seen.reasoning += message.agent_reasoning.reasoning
        if message.tool_call.HasField("call_mcp_tool"):
            call = message.tool_call
            seen.ids.append(call.tool_call_id)
            seen.calls.append((call.call_mcp_tool.name, _whole(MessageToDict(call.call_mcp_tool.args))))
    return seen


def _whole(value: Json) -> Json:
    result: Json = json.loads(json.dumps(value), parse_float=lambda text: _integer(float(text)))
    return result


def _integer(number: float) -> float | int:
    return int(number) if number.is_integer() else number
