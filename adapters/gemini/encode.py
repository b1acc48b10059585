"""Encodes a conversation as the body of a generateContent request."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from adapters.gemini.canonical import Thinking, canonical_fields, tool_config
from gateway.core.conversation import Conversation, Json, JsonObject, Reasoning, Text, ToolCall, Turn
from gateway.core.notices import Notice
from gateway.dialects.gemini import DIALECT
from gateway.dialects.gemini.contents import encode_turn, signature
from gateway.history.call_arguments import read_object
from gateway.history.classify import is_system

_encode: Final = msgspec.json.Encoder().encode


def encode_body(conversation: Conversation, thinking: Thinking) -> tuple[bytes, tuple[Notice, ...]]:
    """Encode the client's own fields if the client spoke this dialect; otherwise build the fields from the values."""
    own = conversation.source.in_dialect(DIALECT) if conversation.source is not None else None
    notices: list[Notice] = []
    if own is None:
        fields = canonical_fields(conversation, thinking, notices)
    else:
        fields = {name: value for name, value in own.items() if name != "model"}
        _follow(conversation, fields)
    instruction, turns = _system(conversation.turns)
    if instruction is None:
        fields.pop("systemInstruction", None)
    else:
        fields["systemInstruction"] = instruction
    contents = _contents([_readable(turn, notices) for turn in turns])
    return _encode({"contents": contents, **fields}), tuple(notices)


def _follow(conversation: Conversation, fields: dict[str, Json]) -> None:
    """Replace what the client wrote by what the passes decided."""
    if conversation.tool_choice == "none" and fields.get("tools"):
        written = fields.get("toolConfig")
        fields["toolConfig"] = {**(written if isinstance(written, dict) else {}), **tool_config(conversation)}


def _system(turns: Sequence[Turn]) -> tuple[Json, list[Turn]]:
    """Return the instruction, of all system turns, and the other turns."""
    rest = [turn for turn in turns if not is_system(turn)]
    system = [turn for turn in turns if is_system(turn)]
    if not system:
        return None, rest
    (first, *others) = system
    if not others and first.source is not None and first.source.in_dialect(DIALECT) is not None:
        return dict(first.source.value), rest
    return {"parts": [{"text": block.text} for turn in system for block in turn.blocks if type(block) is Text]}, rest


def _readable(turn: Turn, notices: list[Notice]) -> Turn:
    """Return the turn without reasoning that another provider wrote, which the backend cannot use."""
    if turn.source is not None and turn.source.in_dialect(DIALECT) is not None:
        return turn
    foreign = [block for block in turn.blocks if type(block) is Reasoning and not signature(block.extra)]
    for block in turn.blocks:
        if type(block) is ToolCall and read_object(block.arguments) is None:
            detail = f"the arguments of {block.name[:64]!r} are no JSON object; they are sent as text in one"
            notices.append(Notice("encode", "changed", "ARGUMENTS_AS_TEXT", detail, turn.index, block.id, "warning"))
    if not foreign:
        return turn
    detail = "reasoning without a signature of the provider"
    notices.append(Notice("encode", "dropped", "REASONING_NOT_SENT", detail, turn.index, level="debug"))
    return turn.changed(*[block for block in turn.blocks if block not in foreign])


def _contents(turns: Sequence[Turn]) -> list[Json]:
    """Return the contents. The results of one batch stand in one content, and what the client wrote as one content
    stays one."""
    names = {call.id: call.name for turn in turns for call in turn.calls}
    contents: list[Json] = []
    before: Turn | None = None
    for turn in turns:
        for content in encode_turn(turn, names):
            last = contents[-1] if contents else None
            if (
                before is not None
                and _belong(before, turn)
                and isinstance(last, dict)
                and _role(last) == _role(content)
            ):
                contents[-1] = {**last, "parts": [*_parts(last), *_parts(content)]}
            else:
                contents.append(dict(content))
            before = turn
    return contents


def _belong(before: Turn, turn: Turn) -> bool:
    return (before.role == turn.role == "tool") or (turn.index is not None and before.index == turn.index)


def _role(content: JsonObject) -> Json:
    return content.get("role") or "user"


def _parts(content: JsonObject) -> Iterator[Json]:
    parts = content.get("parts")
    yield from parts if isinstance(parts, list) else [parts]
