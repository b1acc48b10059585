"""GigaChat's chat as its published schema and its pages have it.

- The roles are `system`, `assistant`, `user` and `function`; a system message comes first, if at all.
- A message holds at most one call. A result is a message of the role `function` with the name of the function, and its
  content is a JSON object; it follows its call.
- A stream brings pieces of the text, and a call as a whole with the finish reason `function_call`.
- A message with a call has a `functions_state_id`, which the client may return with it.
- The modes of calls are `auto` and `none`, and `forced` with the name of a function that is offered. Without functions
  `auto` calls functions of the service itself.
- `temperature` is above 0, `max_tokens` as well.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.core.conversation import Json, JsonObject
from tests.adapters.proto.public_services.service import (
    Called,
    Message,
    Offered,
    Refused,
    Reply,
    Request,
    Said,
    word_of,
)

STATE: Final = "77d3fb14-457a-46ba-937e-8d856156d003"
_ENDS: Final = {"stop": "stop", "length": "length", "content_filter": "blacklist", "invalid_call": "error"}


class GigaChat:
    """Implements `Service`."""

    name = "gigachat"
    scheme = "Bearer"
    model = "GigaChat-2-Max"
    choices = frozenset({"auto", "none", "named"})
    most_calls = 1

    def __init__(self, method: str = "ChatStream") -> None:
        """`method`: of the service, `Chat` for answers in one message."""
        self.path = f"/gigachat.v1.ChatService/{method}"
        self.entry: Mapping[str, Json] = {"adapter": "proto", "preset": self.name, "method": self.path[1:]}

    def read(self, message: Message) -> Request:
        """Returns what a request says. Raises Refused."""
        options = message.options
        if not message.model:
            raise Refused("no model")
        for field in ("temperature", "max_tokens"):
            if options.HasField(field) and getattr(options, field) <= 0:
                raise Refused(f"{field} must be above 0")
        tools = tuple(
            Offered(function.name, function.description, _object(function.parameters)) for function in options.functions
        )
        states = [one.functions_state_id for one in message.messages if one.functions_state_id]
        return Request(
            message.model,
            tuple(_history(message.messages)),
            tools,
            _choice(options, {tool.name for tool in tools}),
            options.max_tokens if options.HasField("max_tokens") else None,
            options.temperature if options.HasField("temperature") else None,
            state=states[-1] if states else None,
        )

    def write(self, reply: Reply) -> Iterator[Mapping[str, Any]]:
        """Yields the messages of a streamed answer as JSON of protobuf."""
        for count, piece in enumerate(reply.pieces, 1):
            yield _response({"content": piece}, "", count)
        if reply.status is None and not reply.held:
            yield _ended(reply, "")

    def whole(self, reply: Reply) -> Mapping[str, Any]:
        """Returns the message of an answer that is not streamed."""
        return _ended(reply, "".join(reply.pieces))


def _ended(reply: Reply, content: str) -> Mapping[str, Any]:
    count = len(reply.pieces) + 1
    if not reply.calls:
        return _response({"content": content}, _ENDS[reply.finish], count)
    ((name, arguments),) = reply.calls
    call = {"name": name, "arguments": json.dumps(arguments)}
    return _response({"content": content, "functionCall": call, "functionsStateId": STATE}, "function_call", count)


def _response(content: Mapping[str, Any], end: str, count: int) -> Mapping[str, Any]:
    message = {"role": "assistant", **content}
    return {
        "alternatives": [{"message": message, "finishReason": end}],
        "usage": {"promptTokens": 7, "completionTokens": count, "totalTokens": 7 + count},
        "modelInfo": {"name": "GigaChat-2-Max", "version": "2.0.28.2"},
        "timestamp": "1700000000",
    }


def _history(messages: Any) -> Iterator[Said | Called]:
    waiting: tuple[str, JsonObject] | None = None
    for place, message in enumerate(messages):
        if message.role not in ("system", "assistant", "user", "function"):
            raise Refused(f"unknown role {message.role!r}")
        if message.role == "system" and place:
            raise Refused("the system message must be the first one")
        if (message.role == "function") is not (waiting is not None):
            raise Refused("a call and its result must follow each other")
        if message.role == "function":
            assert waiting is not None
            if message.function_name != waiting[0]:
                raise Refused("a result of another function than the call before it")
            result = _object(message.content)
            # The gateway's own form of a text.
            yield Called(*waiting, str(result["result"]), failed=result.get("is_error") is True)
            waiting = None
            continue
        if message.content:
            yield Said(message.role, message.content)
        if message.HasField("function_call"):
            if message.role != "assistant":
                raise Refused("a call that the model did not make")
            waiting = message.function_call.name, _object(message.function_call.arguments)
        elif not message.content:
            raise Refused("an empty message")
    if waiting is not None:
        raise Refused("a call without its result")


def _object(text: str) -> JsonObject:
    try:
        value: Json = json.loads(text)
    except ValueError:
        raise Refused(f"no JSON: {text!r}") from None
    if not isinstance(value, dict):
        raise Refused(f"no JSON object: {text!r}")
    return value


def _choice(options: Message, offered: set[str]) -> str | None:
    if not options.HasField("function_call"):
        return None
    policy = options.function_call
    word = word_of(policy, "mode")
    if word == "auto" and not offered:
        raise Refused("auto without functions would call those of the service")
    if word != "forced":
        return word
    if policy.name not in offered:
        raise Refused(f"the forced function {policy.name!r} is not offered")
    return str(policy.name)


GIGACHAT: Final = GigaChat()
