"""One Turn in, its messages out: the client's own where nothing changed it, else one made from its blocks."""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

from gateway.profiles import Profile
from gateway.types import File, Image, Json, JsonObject, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.wire.json_text import NotJson, decode_json

Part = Text | Image | File

# These stand inside `image_url`; what else a part holds stands beside it.
_IMAGE_FIELDS: Final = frozenset({"detail", "format"})


def encode_turn(turn: Turn, profile: Profile) -> list[JsonObject]:
    """One message for the turn, or one for each of its results and one for what else it says."""
    if turn.source is not None:
        return [turn.source]
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
            case ToolCall():
                calls.append(_call(block, profile))
            case ToolResult():
                pass
            case _:
                assert_never(block)
    message: dict[str, Json] = {"role": "user" if turn.role == "tool" else turn.role}
    # Beside calls nothing is null: text that is empty was sent as such, or a pass asked for it.
    message["content"] = None if calls and not parts else _content(parts)
    if turn.name is not None:
        message["name"] = turn.name
    message |= reasoning
    if calls:
        message["tool_calls"] = calls
    return {**message, **turn.extra}


def _content(parts: Sequence[Part]) -> Json:
    """Text where it is nothing but one text, else an array of parts."""
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
                yield dict(part.part)
            case _:
                assert_never(part)


def _call(call: ToolCall, profile: Profile) -> Json:
    kind, field = ("custom", "input") if call.extra.get("type") == "custom" else ("function", "arguments")
    inner = call.extra.get(kind)
    rest = {key: value for key, value in call.extra.items() if key not in ("type", kind)}
    body: dict[str, Json] = {
        "name": call.name,
        field: _arguments(call.arguments) if profile.arguments == "object" else call.arguments,
        **(inner if isinstance(inner, dict) else {}),
    }
    return {"id": call.id, "type": kind, kind: body, **rest}


def _arguments(text: str) -> Json:
    """As an object, for backends that take no text. What is no object goes out as it is: it must not be invented."""
    try:
        value = decode_json(text.encode())
    except NotJson:
        return text
    return value if isinstance(value, dict) else text
