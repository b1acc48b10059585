"""A made-up form of request with paths of its own: one list of items, as flat as a client can write a history."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Block, File, Image, Json, ToolCall, ToolResult, Turn
from gateway.core.errors import GatewayError
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice

PARAMS: Final = {
    "messages": "input",
    "tools": "functions",
    "tool_choice": "calling",
    "parallel_tool_calls": "calling.many",
    "response_format": "text.format",
    "stop": "text.ends",
    "n": "count",
    "user": "caller",
}
ITEM_PATHS: Final = FieldPaths(
    turn="input[{turn}]",
    role="input[{turn}]",
    part="input[{item}]",
    calls="input[{item}]",
    call_id="input[{item}].call_id",
    result="input[{item}].type",
    result_call_id="input[{item}].call_id",
    result_name="input[{item}].name",
    result_part="input[{item}].output[{part}]",
    tool_schema="functions[{tool}].schema",
    params=PARAMS,
    calls_term="call items",
    result_term="result item",
    call_id_term="call_id",
    unnamed_call_term="unnamed call",
)

# What only a client of chat completions knows.
CANONICAL: Final = re.compile(r"messages\[|tool_calls|tool_call_id|function_call|tool_choice|response_format")

_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")


def itemized(turns: Sequence[Turn]) -> tuple[tuple[Turn, ...], dict[str, Json]]:
    """Returns the turns as a dialect would read them from one item a block, and the document that they came from."""
    items: list[Json] = []
    read: list[Turn] = []
    for turn in turns:
        index = len(items)
        blocks: list[Block] = []
        for block in turn.blocks:
            place = len(items)
            if isinstance(block, ToolCall | ToolResult | Image | File):
                blocks.append(msgspec.structs.replace(block, item=place))
            else:
                blocks.append(block)
            items.append(_item(turn, block))
        if not turn.blocks:
            items.append({"type": turn.role})
        read.append(msgspec.structs.replace(turn, blocks=tuple(blocks), index=index, source=None))
    return tuple(read), {"input": items}


def _item(turn: Turn, block: Block) -> Json:
    if isinstance(block, ToolCall):
        return {"type": "call", "call_id": block.id}
    if isinstance(block, ToolResult):
        output: list[Json] = [{"type": type(part).__name__} for part in block.content]
        return {"type": "result", "call_id": block.call_id, "name": turn.name, "output": output}
    return {"type": turn.role}


def resolve(path: str, document: Json) -> Json:
    """Returns the value at a path of the document. Raises LookupError where there is none."""
    value: Json = document
    steps = list(_STEP.finditer(f".{path}"))
    assert "".join(step[0] for step in steps) == f".{path}"
    for step in steps:
        if step[1] is not None:
            assert isinstance(value, dict)
            value = value[step[1]]
        else:
            assert isinstance(value, list)
            value = value[int(step[2])]
    return value


def told(error: GatewayError | None, notices: Sequence[Notice]) -> list[str]:
    """Returns every text of an error and of notices that a client may read."""
    found = [notice.detail for notice in (*notices, *(() if error is None else error.notices))]
    if error is not None:
        found += [error.message, error.param or "", *_texts(dict(error.extra))]
    return found


def _texts(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for entry in value:
                yield from _texts(entry)
        case dict():
            for entry in value.values():
                yield from _texts(entry)
        case _:
            pass
