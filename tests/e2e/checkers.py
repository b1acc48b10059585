"""Checks a received backend request for a valid history, independently of the gateway's own rules."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from gateway.core.conversation import Json

_LABEL = re.compile(r"(System|User|Assistant|Tool calls|Tool result) ?(?:\(([^)\n]*)\))?: ?")


def check_chat(messages: Json) -> None:
    """A Chat Completions history: the strictest reading that any provider is known to have."""
    assert isinstance(messages, list) and messages
    used: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        assert isinstance(message, dict)
        role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
        assert role in ("system", "developer", "user", "assistant", "tool")
        assert isinstance(content, str) or (isinstance(content, list) and content) or (role == "assistant" and calls)
        if role == "tool":
            assert message["tool_call_id"] in waiting, "a result answers an open call of the turn before it"
            waiting.remove(str(message["tool_call_id"]))
            continue
        assert not waiting, "every call is answered before the conversation goes on"
        assert "tool_call_id" not in message
        waiting = [_call_id(call) for call in calls] if isinstance(calls, list) else []
        assert calls is None or (role == "assistant" and waiting), "no empty tool_calls"
        assert len(set(waiting)) == len(waiting) and used.isdisjoint(waiting), "an id names one call"
        used.update(waiting)
    assert not waiting, "no call is left open at the end"


def _call_id(call: Json) -> str:
    assert isinstance(call, dict)
    function = call["function"]
    assert call["type"] == "function" and isinstance(function, dict)
    assert isinstance(function["arguments"], str) and isinstance(function["name"], str) and function["name"]
    assert isinstance(call["id"], str) and call["id"]
    return call["id"]


def check_text(query: str) -> None:
    """A flattened history: after a turn with calls come as many results, and results stand nowhere else."""
    owed = 0
    for block in query.split("\n\n"):
        found = _LABEL.match(block)
        if found is None:
            continue
        if found.group(1) == "Tool result":
            assert owed > 0, f"a result without its call: {block!r}"
            owed -= 1
            continue
        assert owed == 0, f"a call without its result before {block!r}"
        if found.group(1) == "Assistant":
            _, _, calls = block.partition("\nTool calls: ")
            owed = len(re.findall(r"(?:^|; )Called \S+ with args: ", calls))
    assert owed == 0


class _Call(msgspec.Struct):
    tool_call_id: str = ""


class _Message(msgspec.Struct):
    tool_call: _Call | None = None
    tool_call_result: _Call | None = None


class _Task(msgspec.Struct):
    messages: Sequence[_Message] = ()


class _Context(msgspec.Struct):
    tasks: Sequence[_Task] = ()


class _Given(msgspec.Struct):
    inputs: Sequence[_Message] = ()


class _Input(msgspec.Struct):
    user_inputs: _Given = msgspec.field(default_factory=_Given)


class _Request(msgspec.Struct):
    task_context: _Context = msgspec.field(default_factory=_Context)
    input: _Input = msgspec.field(default_factory=_Input)


def check_log(summary: Json) -> None:
    """A task's log with its inputs: every call is answered once, before anybody says anything else."""
    request = msgspec.convert(summary, _Request)
    logged = [message for task in request.task_context.tasks for message in task.messages]
    waiting: list[str] = []
    used: set[str] = set()
    for message in _in_order(logged, request.input.user_inputs.inputs):
        if message.tool_call is not None:
            call_id = message.tool_call.tool_call_id
            assert call_id and call_id not in used, "an id names one call"
            used.add(call_id)
            waiting.append(call_id)
        elif message.tool_call_result is not None:
            assert message.tool_call_result.tool_call_id in waiting, "a result answers an open call"
            waiting.remove(message.tool_call_result.tool_call_id)
        else:
            assert not waiting, "every call is answered before the conversation goes on"
    assert not waiting


def _in_order(logged: Sequence[_Message], given: Sequence[_Message]) -> Iterable[_Message]:
    yield from logged
    yield from given
