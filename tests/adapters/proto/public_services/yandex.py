"""Yandex's text generation as its published schema, its pages and the exchanges recorded with its SDK have it.

- A message holds one kind of content: a text, calls, or results (`text_common.proto`).
- Calls and results have no ids. The SDK sends the results of one message of calls as one message of the role `user`, in
  the order of the calls, with the names of the functions.
- Each message of a stream holds the text so far and the counts so far (recorded streams of `yandexgpt`), and a status.
- `temperature` is from 0 to 1, `max_tokens` above 0, a function by name one of those that are offered.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from google.protobuf.json_format import MessageToDict

from gateway.core.conversation import Json, JsonObject
from tests.adapters.proto.public_services.service import (
    Called,
    Message,
    Offered,
    Refused,
    Reply,
    Request,
    Said,
    in_pieces,
    of_kind,
    word_of,
)

_ENDS: Final = {"stop": "FINAL", "length": "TRUNCATED_FINAL", "content_filter": "CONTENT_FILTER"}
_MODEL: Final = re.compile(r"gpt://[^/]+/[^/]+(/[^/]+)?")


class Yandex:
    """Implements `Service`."""

    name = "yandex"
    scheme = "Api-Key"
    path = "/yandex.cloud.ai.foundation_models.v1.TextGenerationService/Completion"
    model = "gpt://folder/yandexgpt/latest"
    choices = frozenset({"auto", "none", "required", "named"})
    most_calls = 8

    def __init__(self, entry: Mapping[str, Json] | None = None) -> None:
        """`entry`: that of settings.json, without its address; by default the preset."""
        self.entry = entry or {"adapter": "proto", "preset": self.name, "api_key_scheme": "Api-Key"}

    def read(self, message: Message) -> Request:
        """Returns what a request says. Raises Refused."""
        options = message.completion_options
        if not _MODEL.fullmatch(message.model_uri):
            raise Refused(f"invalid model_uri {message.model_uri!r}")
        temperature = options.temperature.value if options.HasField("temperature") else None
        if temperature is not None and not 0 <= temperature <= 1:
            raise Refused("temperature must be in [0, 1]")
        max_tokens = options.max_tokens.value if options.HasField("max_tokens") else None
        if max_tokens is not None and max_tokens <= 0:
            raise Refused("max_tokens must be positive")
        tools = tuple(_tool(tool) for tool in message.tools)
        return Request(
            message.model_uri,
            tuple(_history(message.messages)),
            tools,
            _choice(message, {tool.name for tool in tools}),
            max_tokens,
            temperature,
            options.stream,
            others=dict(_others(message)),
        )

    def write(self, reply: Reply) -> Iterator[Mapping[str, Any]]:
        """Yields the messages of a streamed answer as JSON of protobuf."""
        for count, text in enumerate(in_pieces(reply.pieces), 1):
            yield _response({"text": text}, "PARTIAL", count)
        if reply.status is None and not reply.held:
            yield self.whole(reply)

    def whole(self, reply: Reply) -> Mapping[str, Any]:
        """Returns the message of an answer that is not streamed, which is also the last one of a stream. It holds the
        calls, or else the text."""
        count = len(reply.pieces) + 1
        if reply.calls:
            calls = [{"functionCall": {"name": name, "arguments": arguments}} for name, arguments in reply.calls]
            return _response({"toolCallList": {"toolCalls": calls}}, "TOOL_CALLS", count)
        text = "".join(reply.pieces) if reply.instead is None else reply.instead
        return _response({"text": text}, _ENDS[reply.finish], count)


def _others(message: Message) -> Iterator[tuple[str, Json]]:
    options = message.completion_options
    if options.HasField("reasoning_options"):
        yield "reasoning", word_of(options.reasoning_options, "mode")
    if message.HasField("parallel_tool_calls"):
        yield "parallel_tool_calls", message.parallel_tool_calls.value
    if message.WhichOneof("ResponseFormat") is not None:
        yield message.WhichOneof("ResponseFormat"), MessageToDict(message.json_schema.schema)
    if strict := [tool.function.name for tool in message.tools if tool.function.strict]:
        yield "strict", [*strict]


def _response(content: Mapping[str, Any], end: str, count: int) -> Mapping[str, Any]:
    message = {"role": "assistant", **content}
    usage = {"inputTextTokens": "7", "completionTokens": str(count), "totalTokens": str(7 + count)}
    return {
        "alternatives": [{"message": message, "status": f"ALTERNATIVE_STATUS_{end}"}],
        "usage": {**usage, "completionTokensDetails": {}},
        "modelVersion": "09.02.2025",
    }


def _history(messages: Any) -> Iterator[Said | Called]:
    waiting: list[tuple[str, JsonObject]] = []
    for message in messages:
        kind = of_kind(message, "Content")
        if waiting and kind != "tool_result_list":
            raise Refused("calls without results")
        if message.role not in ("system", "assistant", "user"):
            raise Refused(f"unknown role {message.role!r}")
        match kind:
            case "text":
                if not message.text:
                    raise Refused("empty text")
                yield Said(message.role, message.text)
            case "tool_call_list":
                if message.role != "assistant":
                    raise Refused("calls that the model did not make")
                waiting = [_call(call) for call in message.tool_call_list.tool_calls]
            case _:
                if message.role != "user":
                    raise Refused("results of the model")
                results = [_result(result) for result in message.tool_result_list.tool_results]
                if [name for name, _ in results] != [name for name, _ in waiting]:
                    raise Refused("other results than the calls before them")
                yield from (
                    Called(name, arguments, text) for (name, arguments), (_, text) in zip(waiting, results, strict=True)
                )
                waiting = []
    if waiting:
        raise Refused("calls without results")


def _call(call: Message) -> tuple[str, JsonObject]:
    of_kind(call, "ToolCallType")
    return call.function_call.name, MessageToDict(call.function_call.arguments)


def _result(result: Message) -> tuple[str, str]:
    of_kind(result, "ToolResultType")
    of_kind(result.function_result, "ContentType")
    return result.function_result.name, result.function_result.content


def _tool(tool: Message) -> Offered:
    of_kind(tool, "ToolType")
    function = tool.function
    return Offered(function.name, function.description, MessageToDict(function.parameters))


def _choice(message: Message, offered: set[str]) -> str | None:
    if not message.HasField("tool_choice"):
        return None
    if of_kind(message.tool_choice, "ToolChoice") == "mode":
        return word_of(message.tool_choice, "mode").lower()
    name = str(message.tool_choice.function_name)
    if name not in offered:
        raise Refused(f"tool_choice names {name!r}, which is not offered")
    return name


YANDEX: Final = Yandex()
