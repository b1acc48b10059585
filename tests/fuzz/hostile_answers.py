"""Answers whose size is n, made to cost as much as they can: of each kind of wire, as bytes."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from adapters.warp.multi_agent_pb2 import ClientAction, Message
from gateway.core.conversation import Json
from tests.adapters.warp.backend import script as warp

Answers = Mapping[str, Callable[[int], bytes]]


def _event(delta: Json, finish: str | None = None) -> bytes:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"


def _call(index: int, call_id: str | None = None, name: str | None = None, arguments: str = "", **more: Json) -> bytes:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    identity: dict[str, Json] = {} if call_id is None else {"id": call_id}
    return _event({"tool_calls": [{"index": index, **identity, "function": {**function}, **more}]})


def _calls(events: Iterable[bytes]) -> bytes:
    return b"".join(events) + _event({}, "tool_calls") + b"data: [DONE]\n\n"


def _wrapped(index: int) -> bytes:
    return _call(index, f"a{index}", "call_mcp_tool", '{"name":"f",')


_END: Final = _event({}, "stop") + b"data: [DONE]\n\n"
_USAGE: Final = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\n'

NATIVE: Final[Answers] = {
    "pieces": lambda n: _event({"content": "x"}) * n + _END,
    "pieces of reasoning": lambda n: _event({"reasoning_content": "x"}) * n + _END,
    "pieces of arguments": lambda n: _calls([_call(0, "a", "f"), *[_call(0, arguments="x")] * n]),
    "pieces of a wrapped call": lambda n: _calls(
        [_wrapped(0), _call(0, arguments='"args":{"a":"'), *[_call(0, arguments="x")] * n, _call(0, arguments='"}}')]
    ),
    "calls": lambda n: _calls(_call(i, f"a{i}", "f", "{}") for i in range(n)),
    "calls of one id": lambda n: _calls(_call(i, "a", "f", "{}") for i in range(n)),
    "calls of one index": lambda n: _calls(_call(0, f"a{i}", "f", "{}") for i in range(n)),
    "calls without ids": lambda n: _calls(_call(i, None, "f", "{}") for i in range(n)),
    "calls whose derived ids are taken": lambda n: _calls(
        [
            *(_call(i, f"a_1_{n + i}", "f", "{}") for i in range(n)),
            *(_call(n + i, "a", "f", "{}") for i in range(n + 1)),
        ]
    ),
    "calls that are open at once": lambda n: _calls(
        [*map(_wrapped, range(n)), *(_call(i, arguments='"args":{}}') for i in range(n))]
    ),
    "fields of a call that waits": lambda n: _calls(
        [*(_call(0, "a", None, "", **{f"k{i}": 1}) for i in range(n)), _call(0, None, "f", "{}")]
    ),
    "fields of a call that has begun": lambda n: _calls(
        [_call(0, "a", "f", "{}"), *(_call(0, None, None, "", **{f"k{i}": 1}) for i in range(n))]
    ),
    "a name with every piece": lambda n: _calls([_call(0, "a", "f"), *[_call(0, None, "f", '{"a":1}')] * n]),
    "unknown fields": lambda n: b"".join(_event({"content": "x", "odd": {f"k{i}": [i]}}) for i in range(n)) + _END,
    "unknown events": lambda n: b"".join(b'data: {"k%d":1}\n\n' % i for i in range(n)) + _END,
    "parts": lambda n: _event({"content": [{"type": "text", "text": "x"}] * n}) + _END,
    "usage": lambda n: _USAGE * n + _END,
}


def _own(event: dict[str, Json]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _opened(index: int, kind: str = "tool_use", /, **fields: Json) -> bytes:
    block: dict[str, Json] = {"type": kind, "id": f"a{index}", "name": "f", "input": {}, **fields}
    return _own({"type": "content_block_start", "index": index, "content_block": block})


def _grown(index: int, kind: str, field: str) -> bytes:
    return _own({"type": "content_block_delta", "index": index, "delta": {"type": kind, field: "1"}})


def _closed(index: int) -> bytes:
    return _own({"type": "content_block_stop", "index": index})


_MESSAGE: Final = _own({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})
_STOPPED: Final = _own({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}) + _own({"type": "message_stop"})


def _message(*events: bytes) -> bytes:
    return b"".join((_MESSAGE, *events, _STOPPED))


MESSAGES: Final[Answers] = {
    "pieces": lambda n: _message(_opened(0, "text", text=""), _grown(0, "text_delta", "text") * n, _closed(0)),
    "pieces of thinking": lambda n: _message(
        _opened(0, "thinking"), _grown(0, "thinking_delta", "thinking") * n, _closed(0)
    ),
    "signatures": lambda n: _message(_opened(0, "thinking"), _grown(0, "signature_delta", "signature") * n, _closed(0)),
    "pieces of input": lambda n: _message(_opened(0), _grown(0, "input_json_delta", "partial_json") * n, _closed(0)),
    "pieces of another block": lambda n: _message(
        _opened(0, "odd"), _grown(0, "input_json_delta", "partial_json") * n, _closed(0)
    ),
    "blocks": lambda n: _message(*(_opened(i, "text") + _closed(i) for i in range(n))),
    "thinking": lambda n: _message(*(_opened(i, "thinking", signature="s") + _closed(i) for i in range(n))),
    "calls that are open at once": lambda n: _message(*map(_opened, range(n)), *map(_closed, range(n))),
    "other blocks": lambda n: _message(*(_opened(i, f"k{i}") + _closed(i) for i in range(n))),
    "unknown events": lambda n: _message(*(_own({"type": f"k{i}"}) for i in range(n))),
    "unknown fields": lambda n: _message(_opened(0, **{f"k{i}": i for i in range(n)}), _closed(0)),
    "usage": lambda n: _message(_own({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 1}}) * n),
}


def _log(*actions: ClientAction) -> bytes:
    return warp.PRELUDE + warp.acts(warp.add(warp.output("")), *actions) + warp.DONE


def _added(*messages: Message) -> bytes:
    return warp.PRELUDE + warp.acts(warp.add(*messages)) + warp.DONE


def _moved(target: int, *placed: Message) -> ClientAction:
    moved = {"source_task_id": "t1", "new_task": {"id": f"s{target}"}, "replacement_messages": placed}
    return ClientAction(move_messages_to_new_task={**moved, "first_message_id": "m1", "last_message_id": "m1"})


_MORE: Final = warp.more("x")
_MARKED: Final = warp.update(Message(id="m1", server_message_data="x"), "server_message_data")
_UNDONE: Final = (warp.BEGIN, _MORE, warp.ROLLBACK)

WARP: Final[Answers] = {
    "pieces": lambda n: warp.PRELUDE + warp.acts(warp.add(warp.output(""))) + warp.acts(_MORE) * n + warp.DONE,
    "pieces in one event": lambda n: _log(*[_MORE] * n),
    "pieces that wait": lambda n: _log(warp.BEGIN, *[_MORE] * n, warp.COMMIT),
    "transactions": lambda n: _log(*[warp.BEGIN, _MORE, warp.COMMIT] * n),
    "rollbacks of pieces": lambda n: _log(warp.BEGIN, *[_MORE] * n, *_UNDONE * n, warp.COMMIT),
    "transactions in each other": lambda n: _log(
        *[warp.BEGIN] * n, *[warp.add(warp.output("x", f"n{i}")) for i in range(n)], *[warp.COMMIT] * n
    ),
    "messages in each transaction": lambda n: _log(
        *[action for i in range(n) for action in (warp.BEGIN, warp.add(warp.output("x", f"n{i}")))],
        *[warp.COMMIT] * n,
    ),
    "messages": lambda n: _added(*[warp.output("x", f"m{i}") for i in range(n)]),
    "messages without ids": lambda n: _added(*[warp.output("x", "")] * n),
    "one message": lambda n: _added(*[warp.output("x")] * n),
    "calls": lambda n: _added(*[warp.mcp_call(f"k{i}", args={"n": 1}) for i in range(n)]),
    "calls of one id": lambda n: _added(*[warp.mcp_call("k", message_id=f"m{i}") for i in range(n)]),
    "calls of unknown tools": lambda n: _added(*[warp.mcp_call(f"k{i}", f"Tool{i}") for i in range(n)]),
    "keys of a call": lambda n: _added(warp.mcp_call(args={f"k{i}": i for i in range(n)})),
    "a list in a call": lambda n: _added(warp.mcp_call(args={"l": list(range(n))})),
    "subtasks": lambda n: _log(*[warp.task(f"s{i}", "t1") for i in range(n)]),
    "messages of a subtask": lambda n: _log(warp.task("s", "t1", [warp.output("x", f"z{i}") for i in range(n)])),
    "moves": lambda n: _log(
        *[warp.BEGIN] * n, *[_moved(i, warp.output("x", f"r{i}")) for i in range(n)], *[warp.ROLLBACK] * n
    ),
    "messages in the place of others": lambda n: _log(_moved(0, *[warp.output("x", f"r{i}") for i in range(n)])),
    "unknown paths": lambda n: _log(*[warp.append(warp.output("x"), f"p{i}") for i in range(n)]),
    "one path many times": lambda n: _log(warp.append(warp.output("x"), *["agent_output.text"] * n)),
    "unknown messages": lambda n: _log(*[warp.more("x", f"u{i}") for i in range(n)]),
}

_XML: Final = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n"
# What a model may write again and again.
MARKS: Final = (
    "x",
    " \n",
    "<",
    "{",
    "`",
    "User",
    "\n\nUser",
    "Assistant:",
    "<tool_call>",
    "<tool_call>\n{",
    "</tool_call>",
    "</parameter> ",
    "Action: ",
    "Action: f\nAction Input: {}\n",
    "Tool calls: Called f with args: {}\n",
    "; Called f with args: {}",
    '{"name": "x"}',
    '<tool_call>\n{"name": "f", "arguments": {"a": "\n"}}\n</tool_call>\n',
    f"<tool_call>\n{_XML}</tool_call>\n",
    "<function=",
)
# Calls that go on for n characters.
CALLS: Final[Mapping[str, Callable[[int], str]]] = {
    "a mended text": lambda n: '<tool_call>\n{"name": "f", "arguments": {"a": "' + "\n" * n + '"}}\n</tool_call>',
    "arguments before the name": lambda n: '<tool_call>\n{"arguments": {"a": "' + "\t" * n + '"}, "name": "f"}',
    "digits": lambda n: '<tool_call>\n{"name": "f", "arguments": {"a": ' + "9" * n,
    "brackets": lambda n: '<tool_call>\n{"name": "f", "arguments": {"a": ' + "[" * n,
    "a list of calls": lambda n: "<tool_call>[" + '{"name":"f"} , ' * n + "5]</tool_call>",
    "a list of no calls": lambda n: "<tool_call>[" + '{"name":"g"} , ' * n + "5]</tool_call>",
    "empty arguments": lambda n: "<tool_call>\n{" + '"args":{},' * n + '"name": "f"}',
    "fields around a function": lambda n: '<tool_call>{"function":{"name":"f"}' + ',"args":{}' * n + "}",
    "a value of closing tags": lambda n: "<tool_call>\n<function=f>\n<parameter=a>\n" + "</parameter> " * n,
}
