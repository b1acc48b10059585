"""Encodes a Turn as contents: the client's own where no pass changed it, else one made from its blocks."""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from adapters.gemini import CONTENTS, DIALECT, PROVIDER
from adapters.gemini.parts import SIGNATURE, STATE_SIGNATURE
from adapters.gemini.table import ROLES
from gateway.core.call_arguments import as_object
from gateway.core.conversation import (
    Block,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_system,
)
from gateway.core.data_url import held_data
from gateway.core.provider_state import provider_state

NO_NAMES: Final[Mapping[str, str]] = {}


def encode_turn(turn: Turn, names: Mapping[str, str] = NO_NAMES) -> list[JsonObject]:
    """Returns the contents of a turn; nothing for a system turn, which stands in `systemInstruction`.

    `names` are the functions of calls by the calls' ids: a result has its function's name.
    """
    if is_system(turn):
        return []
    if turn.source is not None and (content := turn.source.in_dialect(DIALECT)) is not None:
        joined = content.get(CONTENTS)
        return [one for one in joined if isinstance(one, dict)] if isinstance(joined, list) else [content]
    parts: list[Json] = [part for block in turn.blocks for part in encode_block(block, names)]
    return [{"role": ROLES.words[turn.role], "parts": parts}]


def encode_block(block: Block, names: Mapping[str, str]) -> Iterator[Json]:
    """Yields the part of a block; nothing for reasoning without text that has no state of this provider."""
    match block:
        case Text():
            yield {"text": block.text, **signature(block.extra)}
        case Reasoning():
            if block.text:
                yield {"text": block.text, "thought": True, **signature(block.extra)}
            elif said := signature(block.extra):
                yield {"text": "", **said}
        case Image():
            yield _data(block.url)
        case File():
            yield dict(block.part) or _data(block.url)
        case ToolCall():
            yield {"functionCall": call_object(block.id, block.name, block.arguments), **signature(block.extra)}
        case ToolResult():
            yield {"functionResponse": _response(block, names)}
        case _:
            assert_never(block)


def call_object(id: str, name: str, arguments: str) -> dict[str, Json]:
    """Returns a call in the dialect's form. Arguments that are no object stand in one."""
    return {"id": id, "name": name, "args": as_object(arguments)}


def signature(extra: JsonObject) -> dict[str, Json]:
    """Returns the field with the state that `extra` holds of this provider, if there is one."""
    said = provider_state(extra, PROVIDER).get(STATE_SIGNATURE) if extra else None
    return {SIGNATURE: said} if isinstance(said, str) else {}


def _data(url: str) -> dict[str, Json]:
    held = held_data(url)
    if held is None:
        return {"fileData": {"fileUri": url}}
    return {"inlineData": {"mimeType": held.media_type, "data": held.data}}


def _response(result: ToolResult, names: Mapping[str, str]) -> Json:
    name: dict[str, Json] = {"name": names[result.call_id]} if result.call_id in names else {}
    said: dict[str, Json] = {"error" if result.is_error else "output": result.text}
    parts: list[Json] = [
        part for block in result.content if not isinstance(block, Text) for part in encode_block(block, NO_NAMES)
    ]
    shown: dict[str, Json] = {"parts": parts} if parts else {}
    return {"id": result.call_id, **name, "response": said, **shown}
