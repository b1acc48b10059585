"""Writes rounds of calls as a client of each dialect does: an id may be any text, or missing."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from gateway.core.conversation import ToolSpec
from gateway.dialect import ClientRequest
from gateway.dialects.document import read_document
from gateway.testing.dialect_case import GREETING, DialectCase
from tests.dialects.cases import CASES

_ASKED: Final = msgspec.structs.replace(
    GREETING, tools=tuple([ToolSpec(name, parameters={"type": "object"}) for name in "fg"])
)


class Named(msgspec.Struct, frozen=True):
    """A call or a result as the client sends it: no id is a missing one."""

    id: str | None
    function: str
    mark: str


class Round(msgspec.Struct, frozen=True):
    """A turn with calls, and their results."""

    calls: Sequence[Named]
    results: Sequence[Named]


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _input(mark: str) -> dict[str, str]:
    return {"at": mark}


def chat(one: Round) -> Iterator[Any]:
    calls = [
        _some(id=call.id, type="function", function={"name": call.function, "arguments": json.dumps(_input(call.mark))})
        for call in one.calls
    ]
    yield {"role": "assistant", "content": None, "tool_calls": calls}
    for result in one.results:
        yield _some(role="tool", tool_call_id=result.id, content=result.mark)


def ollama(one: Round) -> Iterator[Any]:
    calls = [_some(id=call.id, function={"name": call.function, "arguments": _input(call.mark)}) for call in one.calls]
    yield {"role": "assistant", "content": "", "tool_calls": calls}
    for result in one.results:
        yield _some(role="tool", tool_call_id=result.id, tool_name=result.function, content=result.mark)


def responses(one: Round) -> Iterator[Any]:
    for call in one.calls:
        arguments = json.dumps(_input(call.mark))
        yield _some(type="function_call", call_id=call.id, name=call.function, arguments=arguments)
    for result in one.results:
        yield _some(type="function_call_output", call_id=result.id, output=result.mark)


def anthropic(one: Round) -> Iterator[Any]:
    calls = [_some(type="tool_use", id=call.id, name=call.function, input=_input(call.mark)) for call in one.calls]
    yield {"role": "assistant", "content": calls}
    results = [_some(type="tool_result", tool_use_id=result.id, content=result.mark) for result in one.results]
    yield {"role": "user", "content": results}


def gemini(one: Round) -> Iterator[Any]:
    calls = [_some(id=call.id, name=call.function, args=_input(call.mark)) for call in one.calls]
    yield {"role": "model", "parts": [{"functionCall": call} for call in calls]}
    results = [_some(id=result.id, name=result.function, response={"output": result.mark}) for result in one.results]
    yield {"role": "user", "parts": [{"functionResponse": result} for result in results]}


def interactions(one: Round) -> Iterator[Any]:
    for call in one.calls:
        yield _some(type="function_call", id=call.id, name=call.function, arguments=_input(call.mark))
    for result in one.results:
        yield _some(type="function_result", call_id=result.id, name=result.function, result=result.mark)


class Client(msgspec.Struct, frozen=True):
    """How a client of a dialect sends rounds of calls."""

    case: DialectCase
    messages: Callable[[Round], Iterator[Any]]
    user: Callable[[str], Any] = lambda text: {"role": "user", "content": text}

    def request(self, made: Sequence[Round], *, stream: bool = True) -> ClientRequest:
        """The request of a client that has had these rounds, as the gateway decodes it."""
        messages = [self.user("Begin."), *[message for one in made for message in self.messages(one)]]
        return self.asks(messages, stream=stream)

    def asks(self, messages: Sequence[Any], *, stream: bool = True) -> ClientRequest:
        """A request with these messages, as the gateway decodes it."""
        asked = msgspec.structs.replace(_ASKED, stream=stream)
        fields = read_document(self.case.write(asked)).fields
        history = self.case.dialect().paths.param("messages")
        return self.case.decode(json.dumps({**fields, history: messages}).encode(), asked)


BY_NAME: Final = {str(case): case for case in CASES}
CLIENTS: Final = {
    "chat": Client(BY_NAME["openai_chat"], chat),
    "Responses": Client(BY_NAME["openai_responses"], responses),
    "Messages": Client(BY_NAME["anthropic_messages"], anthropic),
    "generateContent": Client(BY_NAME["gemini"], gemini, lambda text: {"role": "user", "parts": [{"text": text}]}),
    "Interactions": Client(
        BY_NAME["gemini_interactions"],
        interactions,
        lambda text: {"type": "user_input", "content": [{"type": "text", "text": text}]},
    ),
    "Ollama": Client(BY_NAME["ollama"], ollama),
}
