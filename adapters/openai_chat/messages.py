"""Encodes a Turn as messages: the client's own where no pass changed it, else messages made from its blocks."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from adapters.openai_chat import DIALECT
from adapters.openai_chat.table import ROLES
from adapters.openai_chat.unknown_fields import call_object
from gateway.core.call_arguments import as_object, is_custom
from gateway.core.conversation import File, Image, Json, JsonObject, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.dialects.custom_input import custom_input
from gateway.providers.profile import Profile

Part = Text | Image | File

# The API wants a name beside the bytes of a file.
UNNAMED: Final = "document.pdf"
# These fields stand inside `image_url`; a part's other fields stand beside it.
_IMAGE_FIELDS: Final = frozenset({"detail", "format"})


def encode_turn(turn: Turn, profile: Profile) -> list[JsonObject]:
    """Returns one message for the turn, or one for each of its results and one for its other content."""
    if turn.source is not None and (message := turn.source.in_dialect(DIALECT)) is not None:
        return [message]
    messages: list[JsonObject] = [_result_message(turn, result) for result in turn.results]
    if not messages or len(turn.blocks) > len(messages):
        messages.append(_message(turn, profile))
    return messages


def _result_message(turn: Turn, result: ToolResult) -> JsonObject:
    name: dict[str, Json] = {} if turn.name is None else {"name": turn.name}
    content = _content(result.content)
    return {"role": "tool", "tool_call_id": result.call_id, "content": content, **name, **turn.extra}


def _message(turn: Turn, profile: Profile) -> JsonObject:
    parts: list[Part] = []
    calls: list[Json] = []
    reasoning: dict[str, Json] = {}
    for block in turn.blocks:
        match block:
            case Text() | Image() | File():
                parts.append(block)
            case Reasoning():
                before = reasoning.get(block.field)
                reasoning[block.field] = before + block.text if isinstance(before, str) else block.text
                reasoning.update(block.extra)
            case ToolCall():
                calls.append(_call(block, profile))
            case ToolResult():
                pass
            case _:
                assert_never(block)
    message: dict[str, Json] = {"role": ROLES.words[turn.role]}
    # Absent content beside calls is null; empty text stays, because the client sent it or a pass requested it.
    message["content"] = None if calls and not parts else _content(parts)
    if turn.name is not None:
        message["name"] = turn.name
    message |= reasoning
    if calls:
        message["tool_calls"] = calls
    return {**message, **turn.extra}


def _content(parts: Sequence[Part]) -> Json:
    """Returns a string for a single plain text, else an array of parts."""
    if not parts:
        return ""
    first = parts[0]
    if len(parts) == 1 and isinstance(first, Text) and not first.extra:
        return first.text
    return list(_parts(parts))


def _parts(parts: Iterable[Part]) -> Iterable[Json]:
    for part in parts:
        match part:
            case Text():
                field = "refusal" if part.extra.get("type") == "refusal" else "text"
                yield {"type": "text", field: part.text, **part.extra}
            case Image():
                inner = {key: value for key, value in part.extra.items() if key in _IMAGE_FIELDS}
                rest = {key: value for key, value in part.extra.items() if key not in _IMAGE_FIELDS}
                yield {"type": "image_url", "image_url": {"url": part.url, **inner}, **rest}
            case File():
                yield dict(part.part) or {
                    "type": "file",
                    "file": {"filename": part.name or UNNAMED, "file_data": part.url},
                }
            case _:
                assert_never(part)


def _call(call: ToolCall, profile: Profile) -> Json:
    arguments: Json = call.arguments
    if is_custom(call):
        arguments = custom_input(call.arguments)
    elif profile.arguments != "string":
        arguments = as_object(call.arguments)
    return call_object(call.id, call.name, arguments, call.extra)
