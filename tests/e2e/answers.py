"""Reads an HTTP response of the gateway like a strict OpenAI client; invalid content is a failure."""

import json
from collections.abc import Sequence
from typing import Final

import httpx
import msgspec

from gateway.core.conversation import Json, JsonObject

DONE: Final = "[DONE]"


class Call(msgspec.Struct):
    """A tool call, its arguments as the text that arrived."""

    id: str
    name: str
    arguments: str = ""


class Answer(msgspec.Struct, kw_only=True):
    """`error` is the error object, in the body or in the stream; `said` the gateway's own remarks."""

    status: int
    headers: dict[str, str]
    text: str = ""
    reasoning: str = ""
    calls: list[Call] = []
    finish: str | None = None
    usage: dict[str, Json] | None = None
    error: dict[str, Json] | None = None
    said: dict[str, Json] = {}
    done: bool = False
    comments: int = 0

    @property
    def named(self) -> list[tuple[str, str]]:
        """The calls without their ids."""
        return [(call.name, call.arguments) for call in self.calls]

    @property
    def code(self) -> Json:
        """The error's code."""
        return None if self.error is None else self.error["code"]

    @property
    def changes(self) -> str:
        """What the gateway says it changed."""
        return self.headers.get("x-dragoman-changes", "")

    @property
    def rules(self) -> list[Json]:
        """The rules of all notices, of an answer that was asked to explain itself."""
        found = self.said["diagnostics"]
        assert isinstance(found, list)
        return [entry["rule"] for entry in found if isinstance(entry, dict)]


def read_whole(response: httpx.Response) -> Answer:
    """A `chat.completion` object or an error object."""
    answer = _head(response)
    body = response.json()
    if response.status_code != 200:
        answer.error = _error(body)
        return answer
    (choice,) = body["choices"]
    message = choice["message"]
    assert (body["object"], message["role"], choice["index"]) == ("chat.completion", "assistant", 0)
    answer.text = message["content"] or ""
    answer.reasoning = message.get("reasoning_content", "")
    answer.calls = [_whole_call(call) for call in message.get("tool_calls", ())]
    answer.finish, answer.usage, answer.said = choice["finish_reason"], body.get("usage"), body.get("dragoman", {})
    answer.done = True
    return answer


def read_stream(response: httpx.Response) -> Answer:
    """A stream of chunks: one id, the role once and first, dense call indices, one end."""
    answer = _head(response)
    frames = response.content.decode().split("\n\n")
    assert frames.pop() == "", "the last event is cut"
    ids: set[str] = set()
    role = 0
    for frame in frames:
        if frame.startswith(":"):
            answer.comments += 1
            continue
        assert not answer.done and answer.error is None, f"after the end came {frame!r}"
        data = frame.removeprefix("data: ")
        assert data != frame and "\n" not in data, frame
        if data == DONE:
            answer.done = True
            continue
        body = json.loads(data)
        if "error" in body:
            answer.error = _error(body)
            continue
        ids.add(body["id"])
        assert body["object"] == "chat.completion.chunk"
        answer.usage = body.get("usage") or answer.usage
        answer.said = body.get("dragoman", answer.said)
        for choice in body["choices"]:
            assert choice["index"] == 0 and answer.finish is None
            role += "role" in choice["delta"]
            assert role == 1
            _delta(answer, choice["delta"])
            answer.finish = choice["finish_reason"]
    assert len(ids) <= 1
    assert answer.done == (answer.error is None), "a stream ends with [DONE] or with an error, never with neither"
    assert (answer.finish is None) == (answer.error is not None)
    return answer


def _head(response: httpx.Response) -> Answer:
    assert response.headers["x-request-id"]
    return Answer(status=response.status_code, headers=dict(response.headers))


def _error(body: Json) -> dict[str, Json]:
    assert isinstance(body, dict) and list(body) == ["error"]
    error = body["error"]
    assert isinstance(error, dict) and {"message", "type", "param", "code"} <= error.keys()
    assert isinstance(error["message"], str) and error["message"]
    return dict(error)


def _whole_call(call: JsonObject) -> Call:
    assert call["type"] == "function"
    return msgspec.convert({"id": call["id"], **msgspec.convert(call["function"], dict[str, str])}, Call)


def _delta(answer: Answer, delta: dict[str, Json]) -> None:
    answer.text += str(delta.get("content") or "")
    answer.reasoning += str(delta.get("reasoning_content") or "")
    calls = delta.get("tool_calls")
    for call in msgspec.convert([] if calls is None else calls, Sequence[_CallDelta]):
        if call.index == len(answer.calls):
            assert call.id and call.type == "function" and call.function.name
            answer.calls.append(Call(call.id, call.function.name))
        else:
            assert call.id is None and call.function.name is None
        answer.calls[call.index].arguments += call.function.arguments


class _FunctionDelta(msgspec.Struct):
    name: str | None = None
    arguments: str = ""


class _CallDelta(msgspec.Struct):
    index: int
    function: _FunctionDelta
    id: str | None = None
    type: str | None = None
