"""Recognises a request that asks its provider to compact the conversation: the gateway then leaves it alone."""

from typing import Final

from gateway.core.conversation import Conversation, Json

_FIELD: Final = "context_management"


def asks_for_compaction(conversation: Conversation) -> bool:
    """Returns whether the client's `context_management` asks for a compaction.

    OpenAI's form (Responses) is a list of entries, `{"type": "compaction", "compact_threshold": ...}`. Anthropic's is
    an object of `edits`, of which `compact_20260112` compacts; those that only clear old results or thinking do not.
    """
    fields = (conversation.params, conversation.source.value if conversation.source is not None else {})
    return any(_compacts(entry) for one in fields for entry in _entries(one.get(_FIELD)))


def _entries(field: Json) -> list[Json]:
    if isinstance(field, dict):
        field = field.get("edits")
    return field if isinstance(field, list) else []


def _compacts(entry: Json) -> bool:
    kind = entry.get("type") if isinstance(entry, dict) else None
    return isinstance(kind, str) and kind.partition("_")[0] in ("compact", "compaction")
