"""The answer to a client that asks for a compaction of its history: the item that keeps it, and the object around it.

Sources: OpenAI's published types `CompactionTrigger` ("Must be the final input item"), `ResponseCompactionItem` and
`CompactedResponse` ("a list of all user messages, followed by a single compaction item"), `ContextManagement`; Codex
(codex-rs/core/src/compact_remote_v2.rs), which takes exactly one finished item `compaction` before
`response.completed`, and fails the turn for any other number.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from adapters.openai_responses.turn_items import Item, type_of
from gateway.core.conversation import Conversation, Json, JsonObject
from gateway.core.events import Event, PassthroughFields
from gateway.core.provider_state import COMPACTION_TYPES
from gateway.core.tokens import estimate_text
from gateway.dialect import AskedCompaction

PATH: Final = "/compact"
MANAGEMENT: Final = "context_management"
# Where the echo keeps the messages of the user that stand before the compaction, and the id of its item.
RETAINED: Final = "retained"
IDENTITY: Final = "compaction"
# What Codex retains itself, "the current /responses/compact retained-message default" in its words.
MOST_TOKENS: Final = 64_000
_DIGEST: Final = 24


def retained_messages(items: Iterable[Json]) -> list[Json]:
    """Returns the messages of the user, as items of an answer: the newest ones, of 64,000 tokens at most."""
    found = [_message(item, n) for n, item in enumerate(items) if isinstance(item, dict) and _is_users(item)]
    room = MOST_TOKENS
    for count, item in enumerate(reversed(found)):
        room -= _tokens(item)
        if room < 0:
            return [*found[len(found) - count :]]
    return [*found]


def item_identity(items: Json) -> str:
    """Returns the id of the item that keeps a compaction of these items."""
    return f"cmp_{hashlib.sha256(msgspec.json.encode(items)).hexdigest()[:_DIGEST]}"


def asked_compaction(fields: JsonObject, *, compacts: bool) -> AskedCompaction | None:
    """Returns the compaction that a request asks for: by an item (`compacts`), or by `context_management`, in which
    OpenAI compacts beside the answer."""
    if compacts:
        return AskedCompaction()
    entries = fields.get(MANAGEMENT)
    asked = isinstance(entries, list) and any(map(_is_entry, entries))
    return AskedCompaction(above=None, alone=False) if asked else None


def without_request(conversation: Conversation) -> Conversation:
    """Returns the conversation without the entries of `context_management` that ask for a compaction. The item that
    asks for one is never beside an answer."""
    source = conversation.source
    if source is None or not isinstance(entries := source.value.get(MANAGEMENT), list):
        return conversation
    fields = {name: value for name, value in source.value.items() if name != MANAGEMENT}
    if others := [entry for entry in entries if not _is_entry(entry)]:
        fields[MANAGEMENT] = others
    return msgspec.structs.replace(conversation, source=msgspec.structs.replace(source, value=fields))


def compaction_opening(echo: JsonObject) -> Sequence[Event]:
    """Returns the event with which the item begins, before it holds anything."""
    return (_item_event("added", echo, ""),)


def compaction_events(echo: JsonObject, sealed: str) -> Sequence[Event]:
    """Returns the event of the item that keeps a sealed summary."""
    return (_item_event("done", echo, sealed),)


def _item_event(step: str, echo: JsonObject, sealed: str) -> Event:
    item: Json = {"id": echo[IDENTITY], "type": "compaction", "encrypted_content": sealed}
    return PassthroughFields("event", {"type": f"response.output_item.{step}", "output_index": 0, "item": item})


def compacted_object(response: JsonObject, retained: Json) -> dict[str, Json]:
    """Returns the object of `POST /responses/compact` for the response whose output has the compaction."""
    output = response.get("output")
    made = [item for item in output if _is_compaction(item)] if isinstance(output, list) else []
    said: dict[str, Json] = {
        "id": response["id"],
        "object": "response.compaction",
        "created_at": response["created_at"],
        "output": [*(retained if isinstance(retained, list) else ()), *made],
        "usage": response.get("usage"),
    }
    return {**said, "dragoman": response["dragoman"]} if "dragoman" in response else said


def _is_entry(value: Json) -> bool:
    return isinstance(value, dict) and value.get("type") == "compaction"


def _is_users(item: Item) -> bool:
    return type_of(item) == "message" and item.get("role") == "user"


def _is_compaction(item: Json) -> bool:
    return isinstance(item, dict) and item.get("type") in COMPACTION_TYPES


def _message(item: Item, position: int) -> Item:
    content = item.get("content")
    parts: Json = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    identity = item.get("id") or f"msg_{position}"
    return {**item, "id": identity, "type": "message", "status": "completed", "content": parts}


def _tokens(item: Item) -> int:
    parts = item.get("content")
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return max(1, sum(estimate_text(text) for text in texts if isinstance(text, str)))
