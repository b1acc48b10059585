"""Encodes a conversation as the body of a generateContent request."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from adapters.gemini import DIALECT
from adapters.gemini.backend.canonical import canonical_fields, tool_config
from adapters.gemini.contents import encode_turn, signature
from adapters.gemini.thinking import Thinking
from gateway.core.call_arguments import read_object
from gateway.core.conversation import (
    Block,
    Conversation,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_system,
)
from gateway.core.errors import nothing_to_send
from gateway.core.notices import Notice

_encode: Final = msgspec.json.Encoder().encode
_NO_CALLS: Final = "NONE"


def encode_body(conversation: Conversation, thinking: Thinking | None) -> tuple[bytes, tuple[Notice, ...]]:
    """Encodes the client's own fields if the client spoke this dialect; otherwise build the fields from the values.
    Raises InvalidRequest for a conversation of system text alone."""
    own = conversation.source.in_dialect(DIALECT) if conversation.source is not None else None
    notices: list[Notice] = []
    if own is None:
        fields = canonical_fields(conversation, thinking, notices)
    else:
        fields = {name: value for name, value in own.items() if name != "model"}
        _follow(conversation, fields)
    instruction, turns = _system(conversation.turns)
    if instruction is not None:
        fields["systemInstruction"] = instruction
    elif _says(fields.get("systemInstruction")):
        del fields["systemInstruction"]
    fitted = [kept for turn in turns for kept in _fitted(turn, notices)]
    contents = _contents(fitted, as_written=own is not None)
    if not contents:
        raise nothing_to_send(conversation.paths.param("messages"))
    return _encode({"contents": contents, **fields}), tuple(notices)


def _follow(conversation: Conversation, fields: dict[str, Json]) -> None:
    """Replaces what the client wrote by what the passes decided."""
    if conversation.tool_choice == "none" and fields.get("tools"):
        written = fields.get("toolConfig")
        config = written if isinstance(written, dict) else {}
        calling = config.get("functionCallingConfig")
        if not (isinstance(calling, dict) and str(calling.get("mode")).upper() == _NO_CALLS):
            fields["toolConfig"] = {**config, **tool_config(conversation)}


def _says(instruction: Json) -> bool:
    """Whether an instruction has parts, which a pass has left out: without any it is no turn."""
    return isinstance(instruction, dict) and bool(instruction.get("parts"))


def _system(turns: Sequence[Turn]) -> tuple[Json, list[Turn]]:
    """Returns the instruction, of all system turns, and the other turns."""
    rest = [turn for turn in turns if not is_system(turn)]
    system = [turn for turn in turns if is_system(turn)]
    if not system:
        return None, rest
    (first, *others) = system
    if not others and first.source is not None and first.source.in_dialect(DIALECT) is not None:
        return dict(first.source.value), rest
    parts: list[Json] = [{"text": text} for turn in system for block in turn.blocks if (text := _text(block))]
    return ({"parts": parts} if parts else None), rest


def _text(block: Block) -> str:
    return block.text if type(block) is Text else ""


def _fitted(turn: Turn, notices: list[Notice]) -> Iterator[Turn]:
    """Yields the turn without reasoning that another provider wrote, which the backend cannot use, and without empty
    text, which it refuses; nothing where no block remains."""
    if turn.source is not None and turn.source.in_dialect(DIALECT) is not None:
        yield turn
        return
    for block in turn.blocks:
        if type(block) is ToolCall and read_object(block.arguments) is None:
            detail = f"the arguments of {block.name[:64]!r} are no JSON object; they are sent as text in one"
            notices.append(
                Notice(
                    "encode",
                    "changed",
                    "ARGUMENTS_AS_TEXT",
                    detail,
                    index=turn.index,
                    tool_call_id=block.id,
                    level="warning",
                )
            )
    unsaid = [block for block in turn.blocks if isinstance(block, Text | Reasoning) and not signature(block.extra)]
    foreign = [block for block in unsaid if type(block) is Reasoning]
    empty = [block for block in unsaid if type(block) is Text and not block.text]
    if foreign:
        detail = "reasoning without a signature of the provider"
        notices.append(Notice("encode", "dropped", "REASONING_NOT_SENT", detail, index=turn.index, level="debug"))
    dropped = [*foreign, *empty]
    fitted = turn.changed(*[block for block in turn.blocks if block not in dropped]) if dropped else turn
    if fitted.blocks:
        yield fitted
    else:
        detail = "a message without content is not sent"
        notices.append(Notice("encode", "dropped", "EMPTY_TURN_NOT_SENT", detail, index=turn.index, level="debug"))


def _contents(turns: Sequence[Turn], *, as_written: bool) -> list[Json]:
    """Returns the contents. What the client wrote as one content stays one, and the results of one batch stand in one
    content, unless their client, of the same API, wrote several (`as_written`)."""
    names = {call.id: call.name for turn in turns for call in turn.calls}
    groups: list[list[tuple[Turn, JsonObject]]] = []
    for turn in turns:
        first, *others = [(turn, content) for content in encode_turn(turn, names)]
        if groups and _belong(groups[-1][-1], first, as_written):
            groups[-1].append(first)
        else:
            groups.append([first])
        groups += [[other] for other in others]
    return [_joined(group, as_written) for group in groups]


def _belong(before: tuple[Turn, JsonObject], behind: tuple[Turn, JsonObject], as_written: bool) -> bool:
    (turn, content), (other, other_content) = before, behind
    if _role(content) != _role(other_content):
        return False
    if other.index is not None and turn.index == other.index:
        return True
    return turn.role == other.role == "tool" and not (as_written and turn.source and other.source)


def _joined(group: Sequence[tuple[Turn, JsonObject]], as_written: bool) -> Json:
    """Returns one content, of a client of the same API with its parts in their order."""
    if len(group) == 1:
        return dict(group[0][1])
    parts = [part for turn, content in group if turn.role != "tool" or not as_written for part in _parts(content)]
    placed = [(result.item, part) for turn, content in group for result, part in _results(turn, content)]
    if as_written:
        for number, (position, part) in enumerate(placed):
            parts.insert(number if position is None else position, part)
    return {**group[0][1], "parts": parts}


def _results(turn: Turn, content: JsonObject) -> Iterator[tuple[ToolResult, Json]]:
    if turn.role == "tool":
        yield from zip(turn.results, _parts(content), strict=False)


def _role(content: JsonObject) -> Json:
    return content.get("role") or "user"


def _parts(content: JsonObject) -> Iterator[Json]:
    parts = content.get("parts")
    yield from parts if isinstance(parts, list) else [parts]
