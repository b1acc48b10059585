"""Requests whose size is n, made to cost as much as they can."""

import json
from collections.abc import Callable, Mapping
from typing import Final

from gateway.core.conversation import Json

Message = dict[str, Json]


def _body(*messages: object, **fields: Json) -> bytes:
    return json.dumps({"model": "m", "messages": [*messages], **fields}).encode()


def _call(call_id: str, arguments: str = "{}", name: str = "f") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(call_id: str, content: Json = "x") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _asked(*calls: Json) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def _tool(name: str, parameters: Json = None) -> Message:
    return {"type": "function", "function": {"name": name, "parameters": parameters or {"type": "object"}}}


def _answered(text: Json) -> bytes:
    """A tool's result with this content."""
    return _body(USER, _asked(_call("a")), _result("a", text))


def _rounds(n: int, call_id: Callable[[int], str]) -> list[Json]:
    return [message for i in range(n) for message in (_asked(_call(call_id(i))), _result(call_id(i)))]


def dense(n: int) -> dict[str, Json]:
    """A schema in which every definition refers to two others."""
    definitions: dict[str, Json] = {
        f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{(2 * i + 1) % n}"}, {"$ref": f"#/$defs/d{(2 * i + 2) % n}"}]}
        for i in range(n)
    }
    return {"type": "object", "properties": {"l": {"items": {"$ref": "#/$defs/d0"}}}, "$defs": definitions}


def union(n: int) -> dict[str, Json]:
    """A schema with a parameter of n types, ten of them in each of its unions."""
    return {"properties": {"a": {"anyOf": [{"anyOf": [{"type": "integer"}] * 10}] * (n // 10 + 1)}}}


USER: Final[Message] = {"role": "user", "content": "Hello"}
_FUNCTION: Final[Message] = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
_SAID: Final[Message] = {"role": "function", "name": "f", "content": "x"}
_PIXEL: Final[Message] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

_SPOKEN: Final[Message] = {"role": "assistant", "content": '<tool_call>\n{"name": "f"}'}

REQUESTS: Final[Mapping[str, Callable[[int], bytes]]] = {
    "messages": lambda n: _body(*[USER] * n),
    "messages of many": lambda n: _body(*[{"role": "user", "content": "x", "name": f"u{i}"} for i in range(n)]),
    "messages with fields": lambda n: _body(*[{"role": "user", "content": "x", f"k{i}": 1} for i in range(n)]),
    "system messages": lambda n: _body(*[{"role": "system", "content": "x"}, USER] * n),
    "answers with reasoning": lambda n: _body(
        USER, *[{"role": "assistant", "content": "x", "reasoning_content": "y"}] * n, USER
    ),
    "unknown roles": lambda n: _body(*[{"role": f"r{i}", "content": "x"} for i in range(n)]),
    "calls of one id": lambda n: _body(USER, _asked(*[_call("a")] * n), USER),
    "results of one id": lambda n: _body(USER, _asked(_call("a")), *[_result("a")] * n),
    "orphans": lambda n: _body(USER, *[_result(f"k{i}") for i in range(n)]),
    "calls before all results": lambda n: _body(
        USER, _asked(*[_call(f"k{i}") for i in range(n)]), *[_result(f"k{n - i}") for i in range(n)]
    ),
    "rounds": lambda n: _body(USER, *_rounds(n, lambda i: f"k{i}")),
    "rounds of one id": lambda n: _body(USER, *_rounds(n, lambda _: "a")),
    "rounds of odd ids": lambda n: _body(USER, *_rounds(n, lambda i: f"k {i}")),
    "unanswered rounds": lambda n: _body(USER, *[_asked(_call(f"k{i}")) for i in range(n)]),
    "results before calls": lambda n: _body(
        USER, *[_result(f"k{i}") for i in range(n)], *[_asked(_call(f"k{i}")) for i in range(n)]
    ),
    "results without ids": lambda n: _body(USER, _asked(*[_call("")] * n), *[_result("")] * n),
    "functions": lambda n: _body(USER, *[_FUNCTION, _SAID] * n),
    "functions before results": lambda n: _body(USER, *[_FUNCTION] * n, *[_SAID] * n),
    "tools": lambda n: _body(USER, tools=[_tool(f"f{i}") for i in range(n)]),
    "tools of one name": lambda n: _body(USER, tools=[_tool("f")] * n),
    "tools of odd names": lambda n: _body(USER, tools=[_tool(f"f {i}") for i in range(n)]),
    "a tool of dense references": lambda n: _body(USER, tools=[_tool("f", dense(n))]),
    "a tool of a deep union": lambda n: _body(USER, tools=[_tool("f", union(n))]),
    "parts": lambda n: _body({"role": "user", "content": [{"type": "text", "text": "x"}] * n}),
    "parts of a result": lambda n: _answered([{"type": "text", "text": "x"}] * n),
    "parts that are no objects": lambda n: _body({"role": "user", "content": [1] * n}),
    "calls that are no objects": lambda n: _body(USER, {"role": "assistant", "content": "x", "tool_calls": [1] * n}),
    "messages that are no objects": lambda n: _body(USER, *[1] * n),
    "images of a result": lambda n: _answered([_PIXEL] * n),
    "words that look like calls, and many tools": lambda n: _body(
        USER, *[_SPOKEN] * n, tools=[_tool(f"f{i}") for i in range(n)]
    ),
    "images": lambda n: _body({"role": "user", "content": [_PIXEL] * n}),
    "labels": lambda n: _answered("User: x\n\n" * n),
    "blanks": lambda n: _answered(" \n\t" * n + "x"),
    "quotes": lambda n: _answered('> "\\' * n),
    "one line": lambda n: _answered("x" * n),
    "one line of blanks": lambda n: _answered(" " * n),
    "one line in a bracket": lambda n: _answered("user (" + "\u0301\u0316" * n),
    "lines of every kind": lambda n: _answered("x\u2028\r\x85" * n),
    "combining marks": lambda n: _answered("a" + "\u0301\u0316" * n),
    "lines of combining marks": lambda n: _answered(("a" + "\u0301\u0316" * 60 + "\n") * (n // 60 + 1)),
    "ligatures": lambda n: _answered("\ufdfa" * n),
    "unseen characters": lambda n: _answered("\x7f\u2028" * n),
    "fences": lambda n: _answered("`" * n + "\n" + "<" * n),
    "half characters": lambda n: _answered("\ud83d" * n),
    "arguments": lambda n: _body(USER, _asked(_call("a", '{"a":' * n)), _result("a"), USER),
    "arguments of marks": lambda n: _body(USER, _asked(_call("a", "\u0301\u0316" * n)), _result("a"), USER),
    "arguments that tell calls": lambda n: _body(USER, _asked(_call("a", "; Called " * n)), _result("a"), USER),
    "long ids": lambda n: _body(USER, _asked(_call("a" * n)), _result("a" * n), USER),
    "one repeated call": lambda n: _body(USER, *[_asked(_call("a", '{"n": 1}')), _result("a")] * n),
    "unknown fields": lambda n: _body(USER, **{f"k{i}": "x" for i in range(n)}),
}
