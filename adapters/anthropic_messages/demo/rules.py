"""Refuses a request that breaks a rule of the Messages API, with the words of the place where it breaks it.

Sources: Anthropic, API reference, `POST /v1/messages`; extended thinking; tool use.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec

from adapters.anthropic_messages.demo.thinking import wrong_field
from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.endpoint import Refused

_ROLES: Final = frozenset({"user", "assistant", "system"})
_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_LEAST_BUDGET: Final = 1024
# The fields that each type of block requires, with their JSON types.
_BLOCKS: Final[dict[str, dict[str, type]]] = {
    "text": {"text": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "search_result": {"source": str, "title": str, "content": list},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": dict},
    "tool_result": {"tool_use_id": str},
    "server_tool_use": {"id": str, "name": str, "input": dict},
    "web_search_tool_result": {"tool_use_id": str},
    "tool_addition": {"tool": dict},
    "tool_removal": {"tool": dict},
}
_DIRECTIVES: Final = frozenset({"tool_addition", "tool_removal"})


Block = dict[str, Json]


class Message(msgspec.Struct, frozen=True):
    """One message; a content that is text is one block of text."""

    role: str
    content: list[Block]

    def of_type(self, kind: str) -> list[Block]:
        """Returns the blocks of this type."""
        return [block for block in self.content if block.get("type") == kind]


def read_messages(body: JsonObject) -> list[Message]:
    """Returns the messages. Raises Refused for one without a role or with an unknown or incomplete block."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    return [_message(message, f"messages.{at}") for at, message in enumerate(messages)]


def _message(message: Json, place: str) -> Message:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise Refused(f"{place}.role: must be one of user, assistant, system")
    content = message.get("content")
    blocks: Json = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if message["role"] == "system" and isinstance(message.get("output_config"), dict) and not blocks:
        blocks = []
    elif not isinstance(blocks, list) or not blocks:
        raise Refused(f"{place}.content: must be text or a list of blocks, and not empty")
    return Message(str(message["role"]), [_block(block, f"{place}.content.{at}") for at, block in enumerate(blocks)])


def _block(block: Json, place: str) -> Block:
    kind = block.get("type") if isinstance(block, dict) else None
    if not isinstance(block, dict) or not isinstance(kind, str) or kind not in _BLOCKS:
        raise Refused(f"{place}.type: must be one of {', '.join(_BLOCKS)}")
    for field, required in _BLOCKS[kind].items():
        if not isinstance(block.get(field), required):
            raise Refused(f"{place}.{kind}.{field}: field required")
    return block


def check_request(body: JsonObject, messages: Sequence[Message]) -> None:
    """Raises Refused for a request that breaks a rule about its fields, its calls or its thinking."""
    checks = (_fields(body), _texts(messages), _calls(messages), _directives(body, messages), _thinking(body, messages))
    for sentence in chain(*checks):
        raise Refused(sentence)


def _fields(body: JsonObject) -> Iterator[str]:
    if not isinstance(body.get("model"), str):
        yield "model: field required"
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        yield "max_tokens: field required, a whole number of 1 or more"
    stops = body.get("stop_sequences")
    if any(not (isinstance(stop, str) and stop.strip()) for stop in (stops if isinstance(stops, list) else ())):
        yield "stop_sequences: each stop sequence must contain non-whitespace"
    tools = body.get("tools")
    for at, tool in enumerate(tools if isinstance(tools, list) else ()):
        yield from _tool(tool, f"tools.{at}")
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and not tools:
        yield "tool_choice: may only be specified while providing tools"


def _tool(tool: Json, place: str) -> Iterator[str]:
    if not isinstance(tool, dict) or not _NAME.fullmatch(str(tool.get("name"))):
        yield f"{place}.name: must match {_NAME.pattern}"
    elif tool.get("type") in (None, "custom"):
        schema = tool.get("input_schema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            yield f"{place}.custom.input_schema.type: must be object"


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for at, message in enumerate(messages):
        if any(not str(block["text"]) for block in message.of_type("text")):
            yield f"messages.{at}: text content blocks must be non-empty"
    last = messages[-1]
    if last.role == "assistant" and last.of_type("text") and str(last.of_type("text")[-1]["text"])[-1:].isspace():
        yield "messages: final assistant content cannot end with trailing whitespace"


def _calls(messages: Sequence[Message]) -> Iterator[str]:
    """Yields the violations of the rule that the results of all calls stand first in the next message."""
    waiting: list[Json] = []
    seen: set[Json] = set()
    for at, message in enumerate(messages):
        results = [block.get("tool_use_id") for block in message.of_type("tool_result")]
        for answered in results:
            if answered not in waiting or message.role != "user":
                yield f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {answered}"
        if missing := [call for call in waiting if call not in results]:
            yield f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks: {missing[0]}"
        if len(results) > len(set(results)):
            yield f"messages.{at}: each tool_use must have a single result"
        kinds = [block.get("type") == "tool_result" for block in message.content]
        if kinds != sorted(kinds, reverse=True):
            yield f"messages.{at}: `tool_result` blocks must precede the other content"
        waiting = [block.get("id") for block in message.of_type("tool_use")]
        for call in waiting:
            if not _ID.fullmatch(str(call)):
                yield f"messages.{at}: the id of a `tool_use` block must match ^[a-zA-Z0-9_-]+$"
            if call in seen:
                yield f"messages.{at}: `tool_use` ids must be unique"
            seen.add(call)
    if waiting:
        yield f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks: {waiting[0]}"


def _directives(body: JsonObject, messages: Sequence[Message]) -> Iterator[str]:
    """Yields the directives in a message of another role, and those that name no tool.

    Source: Anthropic, "Mid-conversation system messages".
    """
    tools = body.get("tools")
    names = {tool.get("name") for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict)}
    for at, message in enumerate(messages):
        for position, block in enumerate(message.content):
            if block.get("type") not in _DIRECTIVES:
                continue
            place = f"messages.{at}.content.{position}"
            if message.role != "system":
                yield f"{place}: `{block.get('type')}` is only permitted on role 'system' messages"
            match block.get("tool"):
                case {"type": "tool_definition", "definition": {"name": str(name)}}:
                    names.add(name)
                case {"type": "tool_reference", "name": name} if name not in names:
                    yield f"{place}.tool.name: no tool of this name is declared"
                case _:
                    pass


def offered_tools(body: JsonObject, messages: Sequence[Message]) -> list[Json]:
    """Returns the tools of a request that its messages leave in force, in the order in which they came."""
    tools = body.get("tools")
    entries = [tool for tool in (tools if isinstance(tools, list) else ()) if isinstance(tool, dict)]
    declared: dict[Json, Json] = {str(tool.get("name")): tool for tool in entries}
    offered = dict.fromkeys(declared)
    for message in messages:
        for block in message.content:
            match block:
                case {"type": "tool_addition", "tool": {"definition": {"name": str(name)} as definition}}:
                    declared[name] = definition
                    offered[name] = None
                case {"type": "tool_addition", "tool": {"name": str(name)}}:
                    offered[name] = None
                case {"type": "tool_removal", "tool": {"name": str(name)}}:
                    offered.pop(name, None)
                case _:
                    pass
    return [declared[name] for name in offered if name in declared]


def _thinking(body: JsonObject, messages: Sequence[Message]) -> Iterator[str]:
    for at, message in enumerate(messages):
        for position, block in enumerate(message.content):
            if block.get("type") in _THINKING and (field := wrong_field(block)) is not None:
                yield f"messages.{at}.content.{position}: Invalid `{field}` in `{block.get('type')}` block"
    thinking = body.get("thinking")
    mode = thinking.get("type") if isinstance(thinking, dict) else "disabled"
    if mode == "enabled" and isinstance(thinking, dict):
        yield from _budget(thinking.get("budget_tokens"), body.get("max_tokens"))
        yield from _running_loop(messages)
    if mode == "disabled":
        return
    if body.get("temperature") not in (None, 1) or body.get("top_k") is not None:
        yield "`temperature` may only be set to 1, and `top_k` must be unset, when thinking is enabled."
    choice = body.get("tool_choice")
    if isinstance(choice, dict) and choice.get("type") in ("any", "tool"):
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _budget(budget: Json, limit: Json) -> Iterator[str]:
    if not isinstance(budget, int) or budget < _LEAST_BUDGET:
        yield f"thinking.enabled.budget_tokens: must be {_LEAST_BUDGET} or more"
    elif isinstance(limit, int) and budget >= limit:
        yield "`max_tokens` must be greater than `thinking.budget_tokens`"


def _running_loop(messages: Sequence[Message]) -> Iterator[str]:
    """Yields a message with calls since the last question that does not begin with thinking."""
    for at in range(len(messages) - 1, 0, -1):
        if messages[at].role == "user" and not messages[at].of_type("tool_result"):
            return
        if not messages[at].of_type("tool_use"):
            continue
        first = messages[at].content[0].get("type")
        if first not in _THINKING:
            yield f"messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{first}`."
