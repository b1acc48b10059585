"""Encodes turns as messages: the client's own where no pass changed it, else messages made from its blocks."""

from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from adapters.anthropic_messages import DIALECT, PROVIDER
from adapters.anthropic_messages.table import ROLES
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
)
from gateway.core.data_url import held_data
from gateway.core.provider_state import provider_state

# The fields beside its content that a block may have; those of another dialect's parts mean nothing here.
_BLOCK_FIELDS: Final = ("cache_control", "citations")
_WITHOUT_FIELDS: Final = frozenset({"thinking", "redacted_thinking"})


def encode_turn(turn: Turn) -> list[JsonObject]:
    """Returns the message of a turn as a list of one."""
    return [encode_message(turn)]


def encode_message(turn: Turn) -> JsonObject:
    """Returns the message of a turn. Results are the message of a user; of a developer it is that of the system."""
    if turn.source is not None and (message := turn.source.in_dialect(DIALECT)) is not None:
        return message
    return {"role": ROLES.words[turn.role], "content": _content(turn)}


class MessageMerger(msgspec.Struct):
    """Joins neighbouring messages of one role, which the API reads as one: results and what the user says to them.

    Those that a client of this API wrote apart stay apart. `runs` are the messages so far that will be one.
    """

    runs: list[list[JsonObject]] = []
    _index: int | None = None

    def add(self, message: JsonObject, index: int | None = None) -> None:
        """Adds a message. `index` is that of the client's own message of this API which it is, or is a part of."""
        last = self.runs[-1] if self.runs else None
        apart = index is not None and self._index is not None and index != self._index
        if last is None or apart or last[0]["role"] != message["role"]:
            self.runs.append([message])
            self._index = index
            return
        last.append(message)
        self._index = None if index is None else self._index

    def messages(self) -> list[JsonObject]:
        """Returns the messages."""
        return [run[0] if len(run) == 1 else _joined(run) for run in self.runs]


def _joined(run: Sequence[JsonObject]) -> JsonObject:
    """Returns one message. Of a field that several of them have, the last value is kept."""
    joined: dict[str, Json] = {}
    for message in run:
        joined.update(message)
    joined["content"] = [block for message in run for block in content_blocks(message["content"])]
    return joined


def content_blocks(content: Json) -> list[Json]:
    """Returns the content of a message as a list of blocks; empty text is no block."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


def encode_blocks(blocks: Sequence[Block]) -> list[Json]:
    """Returns the blocks of a message in their order. Empty text is left out, because the API refuses it."""
    return [encode_block(block) for block in blocks if not (type(block) is Text and not block.text)]


def encode_block(block: Block) -> dict[str, Json]:
    """Returns a block of a message."""
    match block:
        case ToolCall():
            call: dict[str, Json] = {"type": "tool_use", "id": block.id, "name": block.name}
            return {**call, "input": as_object(block.arguments), **_fields(block.extra)}
        case ToolResult():
            return _result(block)
        case Text():
            return {"type": "text", "text": block.text, **_fields(block.extra)}
        case Image():
            return {"type": "image", "source": _source_at(block.url), **_fields(block.extra)}
        case File():
            return dict(block.part) or _document(block)
        case Reasoning():
            return _thinking(block)
        case _:
            assert_never(block)


def encode_content(turn: Turn) -> list[Json]:
    """Returns the blocks of a turn. Fields of the message are those of its last block, as only blocks have any here."""
    blocks = encode_blocks(turn.blocks)
    if blocks and isinstance(last := blocks[-1], dict) and last["type"] not in _WITHOUT_FIELDS:
        last |= _fields(turn.extra)
    return blocks


def _content(turn: Turn) -> Json:
    """Returns a string for a single plain text, else a list of blocks."""
    if not turn.blocks:
        return ""
    first = turn.blocks[0]
    if len(turn.blocks) == 1 and type(first) is Text and not (_fields(first.extra) or _fields(turn.extra)):
        return first.text
    return encode_content(turn)


def _thinking(block: Reasoning) -> dict[str, Json]:
    state = provider_state(block.extra, PROVIDER)
    if "data" in state:
        return {"type": "redacted_thinking", "data": state["data"]}
    return {"type": "thinking", "thinking": block.text, "signature": state.get("signature", "")}


def _result(block: ToolResult) -> dict[str, Json]:
    result: dict[str, Json] = {"type": "tool_result", "tool_use_id": block.call_id}
    first = block.content[0] if block.content else None
    if len(block.content) == 1 and type(first) is Text and not _fields(first.extra):
        result["content"] = first.text
    elif block.content:
        result["content"] = encode_blocks(block.content)
    if block.is_error:
        result["is_error"] = True
    return result


def _source_at(url: str) -> Json:
    """Returns the source of an image or a document by its URL, of a `data:` URL the base64 that it holds."""
    held = held_data(url)
    if held is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": held.media_type, "data": held.data}


def _document(block: File) -> dict[str, Json]:
    title: dict[str, Json] = {"title": block.name} if block.name else {}
    return {"type": "document", "source": _source_at(block.url), **title}


def _fields(extra: JsonObject) -> dict[str, Json]:
    return {name: extra[name] for name in _BLOCK_FIELDS if name in extra} if extra else {}
