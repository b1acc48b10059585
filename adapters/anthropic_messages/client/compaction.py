"""Reads how a client asks for a compaction of its history, and writes the block that keeps it.

Sources: Anthropic's published types `BetaCompactionConfigParam` ("Compact the whole conversation and return a signed
`compaction` block, alone"; "Cannot be combined with `context_management`"), `BetaCompact20260112EditParam` (a trigger
of input tokens, 150,000 by default) and `BetaCompactionBlock`.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from adapters.anthropic_messages.table import MessagesFields
from gateway.core.conversation import Conversation, Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.core.events import Event, PassthroughFields
from gateway.dialect import AskedCompaction

FIELD: Final = "compaction"
MANAGEMENT: Final = "context_management"
EDIT: Final = "compact_20260112"
# Where the echo says that the block is signed, and that an answer has nothing else.
SIGNED: Final = "signed"
ALONE: Final = "alone"
_TRIGGER: Final = 150_000


def asked_compaction(request: MessagesFields, fields: JsonObject) -> AskedCompaction | None:
    """Returns the compaction that a request asks for. Raises InvalidRequest for one that asks in both ways."""
    edit = _edit(fields.get(MANAGEMENT))
    if request.compaction is None or request.compaction.type != "summarize":
        return None if edit is None else AskedCompaction(_above(edit), edit.get("pause_after_compaction") is True)
    if fields.get(MANAGEMENT) is not None:
        raise InvalidRequest("compaction cannot be combined with context_management.", param="compaction")
    return AskedCompaction()


def has_instructions(fields: JsonObject) -> bool:
    """Returns whether a request that asks for a compaction says how it is to be written."""
    return any(
        isinstance(one, dict) and one.get("instructions") for one in (fields.get(FIELD), _edit(fields.get(MANAGEMENT)))
    )


def only_compacts(management: Json) -> bool:
    """Returns whether `context_management` asks for nothing but a compaction."""
    edits = management.get("edits") if isinstance(management, dict) else None
    return isinstance(edits, list) and bool(edits) and all(map(_is_edit, edits))


def without_request(conversation: Conversation) -> Conversation:
    """Returns the conversation for a backend that makes no compaction: the other edits stay."""
    source = conversation.source
    if source is None:
        return conversation
    management = source.value.get(MANAGEMENT)
    edits = management.get("edits") if isinstance(management, dict) else None
    if not isinstance(management, dict) or not isinstance(edits, list):
        return conversation
    fields = {name: value for name, value in source.value.items() if name != MANAGEMENT}
    if others := [edit for edit in edits if not _is_edit(edit)]:
        fields[MANAGEMENT] = {**management, "edits": others}
    return msgspec.structs.replace(conversation, source=msgspec.structs.replace(source, value=fields))


def compaction_opening() -> Sequence[Event]:
    """Returns the event before which the message begins."""
    return (PassthroughFields("event", {"type": "ping"}),)


def compaction_events(echo: JsonObject, sealed: str, text: str) -> Sequence[Event]:
    """Returns the events of the block, and of the end of an answer that has nothing else."""
    block: dict[str, Json] = {"type": "compaction", "content": text, "encrypted_content": sealed}
    if echo.get(SIGNED) is True:
        block |= {"encrypted_content": None, "signature": sealed}
    begun = PassthroughFields("event", {"type": "content_block_start", "index": 0, "content_block": block})
    ended = PassthroughFields("event", {"type": "content_block_stop", "index": 0})
    if echo.get(ALONE) is not True:
        return begun, ended
    last: Json = {"stop_reason": "compaction", "stop_sequence": None}
    return begun, ended, PassthroughFields("event", {"type": "message_delta", "delta": last})


def _is_edit(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") == EDIT


def _edit(management: Json) -> JsonObject | None:
    edits = management.get("edits") if isinstance(management, dict) else None
    found = [edit for edit in edits if isinstance(edit, dict) and _is_edit(edit)] if isinstance(edits, list) else []
    return found[0] if found else None


def _above(edit: JsonObject) -> int:
    trigger = edit.get("trigger")
    value = trigger.get("value") if isinstance(trigger, dict) else None
    # No history is so short that it is compacted whatever it holds.
    return max(value, 1) if type(value) is int and value >= 0 else _TRIGGER
