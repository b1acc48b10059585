"""Reads the system prompt and each message as turns, which keep their source; every repaired fault names its rule."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import EMPTY, Json, JsonObject, Role, Source, Text, ToolResult, Turn
from gateway.dialects.anthropic_messages import DIALECT
from gateway.dialects.anthropic_messages.changes import Changes
from gateway.dialects.anthropic_messages.content import IN_ASSISTANT, IN_SYSTEM, IN_USER, ContentReader
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
_BLOCKS: Final[dict[Role, frozenset[str]]] = {"user": IN_USER, "assistant": IN_ASSISTANT, "system": IN_SYSTEM}
_READ: Final = frozenset({"role", "content"})
# Claude Code begins its system prompt with a line of this name, which changes with every request: it would keep a
# backend from finding the prompt in its cache.
_BILLING: Final = "x-anthropic-billing-header:"


def read_system(system: Json, faults: Faults, changes: Changes) -> tuple[Turn, ...]:
    """Returns the system prompt as one turn with a text for each block; no turn where it is absent or empty."""
    if not system:
        return ()
    reader = ContentReader(faults, changes)
    read = [block for _, block in reader.read(system, -1, "system", IN_SYSTEM)]
    blocks = [block for block in read if not (type(block) is Text and block.text.startswith(_BILLING))]
    if len(blocks) < len(read):
        changes.drop_field("system", f"the text of the system prompt that begins with {_BILLING!r} is left out")
    source = Source(DIALECT, {"role": "system", "content": system}, isinstance(system, list))
    return (Turn("system", tuple(blocks), source=source),) if blocks else ()


def read_turns(messages: Sequence[Json], faults: Faults, changes: Changes) -> tuple[Turn, ...]:
    """Returns the turns of every message that is an object: each result of a user's message is a turn of its own, and
    they stand before that of its other blocks. `faults` collects the violations."""
    turns: list[Turn] = []
    odd: list[int] = []
    reader = ContentReader(faults, changes)
    for index, message in enumerate(messages):
        # Many messages are nothing but a role and a text.
        if isinstance(message, dict) and len(message) == 2:
            role, text = message.get("role"), message.get("content")
            if isinstance(text, str) and isinstance(role, str) and (known := _ROLES.get(role)) is not None:
                turns.append(Turn(known, (Text(text, EMPTY),), None, index, EMPTY, Source(DIALECT, message)))
                continue
        if isinstance(message, dict):
            turns += _read_message(message, index, reader)
        else:
            odd.append(index)
    faults.add_each(
        "NOT_OBJECT",
        len(odd),
        lambda n: (odd[n], "", f"the message is {kind_of(messages[odd[n]])}, not an object"),
        "messages are not objects",
    )
    return tuple(turns)


def _read_message(message: dict[str, Json], index: int, reader: ContentReader) -> list[Turn]:
    role, content = _role(message, index, reader.faults), message.get("content")
    extra = EMPTY if message.keys() <= _READ else {name: message[name] for name in message if name not in _READ}
    if isinstance(content, str):
        return [Turn(role, (Text(content),), None, index, extra, Source(DIALECT, message))]
    read = reader.read(content, index, ".content", _BLOCKS[role])
    results = {position: block for position, block in read if type(block) is ToolResult}
    blocks = tuple([block for _, block in read if type(block) is not ToolResult])
    if not results:
        compaction = index in reader.compactions
        return [Turn(role, blocks, None, index, extra, Source(DIALECT, message, True), compaction=compaction)]
    assert isinstance(content, list)  # the results have been read from it
    turns = [_result_turn(message, content[position], result, index, extra) for position, result in results.items()]
    others = [block for position, block in enumerate(content) if position not in results]
    # Nothing but empty text would become an empty message of the user.
    if blocks or not all(map(_is_empty_text, others)):
        if max(results) >= len(results):
            detail = "the tool results of a message are read before its other blocks"
            reader.changes.add("moved", "RESULTS_FIRST", detail, index=index)
        source = Source(DIALECT, {**message, "content": others}, True)
        turns.append(Turn("user", blocks, None, index, extra, source))
    return turns


def _is_empty_text(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and block.get("text") == ""


def _result_turn(message: JsonObject, block: Json, result: ToolResult, index: int, extra: JsonObject) -> Turn:
    """Returns the turn of a result. A result has no fields of its own: its turn keeps the mark for the cache."""
    if isinstance(block, dict) and (mark := block.get("cache_control")) is not None:
        extra = {**extra, "cache_control": mark}
    return Turn("tool", (result,), None, index, extra, Source(DIALECT, {**message, "content": [block]}, True))


def _role(message: JsonObject, index: int, faults: Faults) -> Role:
    """Returns the role of the turn; a message without a known one is the user's. Faults: ROLE_TYPE, ROLE_UNKNOWN."""
    role = message.get("role")
    if isinstance(role, str):
        if (known := _ROLES.get(role)) is not None:
            return known
        faults.add("ROLE_UNKNOWN", index, ".role", f"the role {role[:40]!r} is unknown; read as user")
    else:
        said = f"the role is {kind_of(role)}, not text" if "role" in message else "the message has no role"
        faults.add("ROLE_TYPE", index, ".role", said)
    return "user"
