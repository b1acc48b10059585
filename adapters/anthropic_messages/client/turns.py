"""Reads the system prompt and each message as turns, which keep their source; every repaired fault names its rule."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import msgspec

from adapters.anthropic_messages import DIALECT
from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.content import IN_ASSISTANT, IN_SYSTEM_MESSAGE, IN_USER, ContentReader
from adapters.anthropic_messages.client.paths import PATHS
from adapters.anthropic_messages.table import ROLES
from gateway.core.conversation import (
    EMPTY,
    Block,
    Json,
    JsonObject,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

_BLOCKS: Final[dict[Role, frozenset[str]]] = {"user": IN_USER, "assistant": IN_ASSISTANT, "system": IN_SYSTEM_MESSAGE}
_READ: Final = frozenset({"role", "content"})
# The fields by which a message of the system is a directive.
_DIRECTING: Final = frozenset({"clear_at", "output_config"})


def read_turns(messages: Sequence[Json], reader: ContentReader) -> tuple[Turn, ...]:
    """Returns the turns of every message that is an object: each result of a user's message is a turn of its own, and
    they stand before that of its other blocks. `reader` collects the violations, the changes and the directives. Raises
    InvalidRequest for a directive outside a message of the system."""
    turns: list[Turn] = []
    odd: list[int] = []
    # Whether neighbouring messages make calls.
    apart = False
    for index, message in enumerate(messages):
        # Many messages are nothing but a role and a text.
        if isinstance(message, dict) and len(message) == 2:
            role, text = message.get("role"), message.get("content")
            if isinstance(text, str) and isinstance(role, str) and (known := ROLES.values.get(role)) is not None:
                turns.append(
                    Turn(
                        known,
                        (Text(text, EMPTY),),
                        name=None,
                        index=index,
                        extra=EMPTY,
                        source=Source(DIALECT, message),
                    )
                )
                continue
        if isinstance(message, dict):
            read = _read_message(message, index, reader)
            apart = apart or bool(turns and turns[-1].calls and read[0].calls)
            turns += read
        else:
            odd.append(index)
    reader.faults.add_each(
        "NOT_OBJECT",
        len(odd),
        lambda n: (odd[n], "", f"the message is {kind_of(messages[odd[n]])}, not an object"),
        "messages are not objects",
    )
    return tuple(_with_joined_calls(turns) if apart else turns)


def _read_message(message: dict[str, Json], index: int, reader: ContentReader) -> list[Turn]:
    role, content = _role(message, index, reader.faults), message.get("content")
    extra = EMPTY if message.keys() <= _READ else {name: message[name] for name in message if name not in _READ}
    directs = False
    if not _DIRECTING.isdisjoint(extra):
        directs = True
        extra = _read_directing(message, role, index, extra, reader)
    if isinstance(content, str):
        return [Turn(role, (Text(content),), index=index, extra=extra, source=Source(DIALECT, message))]
    if role == "system" and ((content == [] and (directs or extra)) or (content is None and directs)):
        return [_without_content(message, index, extra, reader.changes)]
    read = reader.read(content, index, ".content", _BLOCKS[role])
    results = {position: block for position, block in read if type(block) is ToolResult}
    blocks = tuple([block for _, block in read if type(block) is not ToolResult])
    if not results:
        compaction = index in reader.compactions
        return [
            Turn(
                role,
                blocks,
                name=None,
                index=index,
                extra=extra,
                source=Source(DIALECT, message, True),
                compaction=compaction,
            )
        ]
    assert isinstance(content, list)  # the results have been read from it
    turns = [_result_turn(message, content[position], result, index, extra) for position, result in results.items()]
    others = [block for position, block in enumerate(content) if position not in results]
    # Nothing but empty text would become an empty message of the user.
    if blocks or not all(map(_is_empty_text, others)):
        if max(results) >= len(results):
            detail = "the tool results of a message are read before its other blocks"
            reader.changes.add("moved", "RESULTS_FIRST", detail, index=index)
        source = Source(DIALECT, {**message, "content": others}, True)
        turns.append(Turn("user", blocks, index=index, extra=extra, source=source))
    return turns


def _read_directing(
    message: JsonObject, role: Role, index: int, extra: JsonObject, reader: ContentReader
) -> JsonObject:
    """Keeps the fields that are directives for their reader, and returns the others. Raises InvalidRequest for a
    message that is not of the system."""
    names = [name for name in extra if name in _DIRECTING]
    if role != "system":
        param = f"{PATHS.turn.format(turn=index)}.{names[0]}"
        raise InvalidRequest(f"{param} is only permitted on messages of the role system.", param=param)
    reader.directing.append((index, message))
    return {name: value for name, value in extra.items() if name not in _DIRECTING} or EMPTY


def _without_content(message: JsonObject, index: int, extra: JsonObject, changes: Changes) -> Turn:
    """Returns a message of the system that says something by its other fields alone.

    Source: Anthropic, "Per-message effort": `content: []` with `output_config`; `BetaSystemMessageParam` of its SDK,
    whose `content` may be missing.
    """
    for name in extra:
        changes.drop_field(f"messages[{index}].{name}")
    return Turn("system", (), index=index, extra=extra, source=Source(DIALECT, message, True))


def _with_joined_calls(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Yields each run of messages with calls as one turn, whose results follow all of them.

    Source: Anthropic, API reference, `messages`: consecutive messages of one role are combined into a single turn.
    """
    for calling, run in groupby(turns, lambda turn: bool(turn.calls)):
        neighbours = [*run]
        yield from [_joined(neighbours)] if calling and len(neighbours) > 1 else neighbours


def _joined(run: Sequence[Turn]) -> Turn:
    messages = [turn.source.value for turn in run if turn.source is not None]
    content: list[Json] = []
    blocks: list[Block] = []
    for turn, message in zip(run, messages, strict=True):
        blocks += [_behind(block, len(content)) for block in turn.blocks]
        content += _blocks_of(message)
    fields = {name: value for message in messages for name, value in message.items()}
    extra = {name: value for turn in run for name, value in turn.extra.items()}
    source = Source(DIALECT, {**fields, "content": content}, True)
    compaction = any(turn.compaction for turn in run)
    return Turn("assistant", tuple(blocks), index=run[0].index, extra=extra, source=source, compaction=compaction)


def _behind(block: Block, count: int) -> Block:
    """Returns a block at its position behind `count` others."""
    if isinstance(block, ToolCall) and block.item is not None:
        return msgspec.structs.replace(block, item=count + block.item)
    return block


def _blocks_of(message: JsonObject) -> list[Json]:
    """Returns the content of a message with calls."""
    content = message["content"]
    return content if isinstance(content, list) else [content]


def _is_empty_text(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and block.get("text") == ""


def _result_turn(message: JsonObject, block: Json, result: ToolResult, index: int, extra: JsonObject) -> Turn:
    """Returns the turn of a result. A result has no fields of its own: its turn keeps the mark for the cache."""
    if isinstance(block, dict) and (mark := block.get("cache_control")) is not None:
        extra = {**extra, "cache_control": mark}
    return Turn(
        "tool",
        (result,),
        name=None,
        index=index,
        extra=extra,
        source=Source(DIALECT, {**message, "content": [block]}, True),
    )


def _role(message: JsonObject, index: int, faults: Faults) -> Role:
    """Returns the role of the turn; a message without a known one is the user's. Faults: ROLE_TYPE, ROLE_UNKNOWN."""
    role = message.get("role")
    if isinstance(role, str):
        if (known := ROLES.values.get(role)) is not None:
            return known
        faults.add("ROLE_UNKNOWN", index, ".role", f"the role {role[:40]!r} is unknown; read as user")
    else:
        said = f"the role is {kind_of(role)}, not text" if "role" in message else "the message has no role"
        faults.add("ROLE_TYPE", index, ".role", said)
    return "user"
