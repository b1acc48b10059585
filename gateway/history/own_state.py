"""Keeps in a conversation the opaque state that its backend may read, and takes the labels off it.

- Labelled state (`gateway.core.provider_state`) goes to the backend that made it, without its label.
- State without a label goes to a backend of the client's own API, which judges it: a client may have it from elsewhere,
  and Google documents words that stand for an absent signature. A backend of another API does not get it.

Everything else of a message stays as the client wrote it.
"""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, assert_never

import msgspec

from gateway.core.conversation import (
    EMPTY,
    UNREAD,
    Block,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.core.provider_state import (
    COMPACTION_TYPES,
    REASONING_TYPES,
    STATE_FIELD,
    STATE_FIELDS,
    label_of,
    with_states,
)
from gateway.core.sealed_compaction import behind_sealed, is_compaction, sealed_text_of

# The fields of a message that list the objects which may have state: one for each wire, and that of calls.
_LISTS: Final = ("content", "input", "parts", "tool_calls")
# Of one that stands for several: the list of those, of Gemini.
_MESSAGES: Final = "contents"
# A part of Gemini with nothing else, or with empty text, is there for its signature alone.
_EMPTY_PART: Final = frozenset({"text", "thought"})

# What a model reads in the place of a compaction that only another backend can read.
UNREADABLE: Final = (
    "[Here stood a provider's own summary of the conversation so far, in a form that only that provider reads. What "
    "was said and done before this point is not known, except for the messages that are shown. Ask for what is needed.]"
)
# What stands in the place of a compaction of the gateway where none is opened: in what is made again of a recording.
SEALED: Final = "[Here stands a compaction of the gateway. A running gateway with its key sends the summary in it.]"
Loss = Literal["foreign", "compaction", "unreadable", "sealed", "unlabelled"]
_LOSSES: Final[dict[Loss, tuple[NoticeRule, str, Level]]] = {
    "foreign": ("STATE_FOREIGN", "state of another backend is not sent, of {count} messages", "info"),
    "compaction": (
        "STATE_FOREIGN",
        "{count} compactions of another backend are not sent, and with them the messages that they stand for",
        "warning",
    ),
    "unreadable": (
        "COMPACTION_UNREADABLE",
        "{count} compactions of another backend are replaced by a note, and the messages that they stand for are lost",
        "warning",
    ),
    "sealed": (
        "COMPACTION_OPENED",
        "{count} compactions of the gateway are shown as a note: a running gateway sends their summaries",
        "info",
    ),
    "unlabelled": (
        "STATE_UNLABELLED",
        "state that does not say which backend made it is not sent to one of another API, of {count} messages",
        "info",
    ),
}
_NOTES: Final[dict[Loss, str]] = {"unreadable": UNREADABLE, "sealed": SEALED}


def with_own_state(conversation: Conversation, label: str, *, passes: bool) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with the state that the backend of this label may read, and what was left out of it.

    `passes`: the backend has the client's own API. A turn that has nothing without its state is left out.
    """
    found = _stateful(conversation.turns)
    if not found:
        return conversation, []
    state_filter = _StateFilter(label, passes)
    turns: list[Turn | None] = [*conversation.turns]
    changed = False
    for at in found:
        turns[at] = state_filter.turn(conversation.turns[at])
        changed = changed or turns[at] is not conversation.turns[at]
    if not changed:
        return conversation, []
    kept: list[Turn] = []
    for turn, read in zip(conversation.turns, turns, strict=True):
        if (note := state_filter.note(turn)) is not None:
            kept.append(Turn("user", (Text(note),), index=turn.index, synthesized=True, compaction=True))
        kept += () if read is None else (read,)
    return msgspec.structs.replace(conversation, turns=tuple(kept)), [*state_filter.notices()]


def _stateful(turns: Iterable[Turn]) -> list[int]:
    """Returns the positions of the turns that may have state. Reads all of every request, with no call for a block."""
    found = []
    for at, turn in enumerate(turns):
        source = turn.source
        if STATE_FIELD in turn.extra or (source is not None and source.unread and source.unread == UNREAD):
            found.append(at)
            continue
        for block in turn.blocks:
            # All blocks but results have fields of their own; those of a file are the client's.
            if type(block) is not ToolResult and (type(block) is File or STATE_FIELD in block.extra):
                found.append(at)
                break
    return found


class _StateFilter:
    """Filters the states of one conversation, and collects what is left out."""

    def __init__(self, label: str, passes: bool) -> None:
        self._label = label
        self._passes = passes
        # Of the turn, and of the object that is read.
        self._lost: set[Loss] = set()
        self._left_out: set[Loss] = set()
        self._turns: dict[Loss, list[Turn]] = {}
        self._compacted = False

    def turn(self, turn: Turn) -> Turn | None:
        """Returns the turn; None where nothing of it is left."""
        if turn.compaction and sealed_text_of(turn) is not None:
            self._turns.setdefault("sealed", []).append(turn)
            rest = behind_sealed(turn)
            return msgspec.structs.replace(turn.changed(*rest), compaction=False) if rest else None
        self._lost, self._compacted = set(), turn.compaction
        blocks = tuple([kept for block in turn.blocks if (kept := self._block(block)) is not None])
        extra, source = turn.extra, turn.source
        if STATE_FIELD in extra:
            extra, _ = self._read(extra)
        if source is not None and self._passes:
            source = self._source(source)
        if turn.compaction and len(blocks) < len(turn.blocks) and any(map(is_compaction, turn.blocks)):
            self._lost = {*self._lost - {"compaction"}, "unreadable"}
        for loss in self._lost:
            self._turns.setdefault(loss, []).append(turn)
        if blocks == turn.blocks and extra is turn.extra and source is turn.source:
            return turn
        if turn.blocks and not blocks and not (self._passes and source is not None and _says_more(source)):
            return None
        return msgspec.structs.replace(turn, blocks=blocks, extra=extra or EMPTY, source=source)

    def notices(self) -> Iterator[Notice]:
        """Yields one notice for each kind of loss, with the first message of it."""
        for loss, turns in sorted(self._turns.items()):
            rule, detail, level = _LOSSES[loss]
            action: Action = "changed" if loss in _NOTES else "dropped"
            yield Notice("state", action, rule, detail.format(count=len(turns)), index=turns[0].index, level=level)

    def note(self, turn: Turn) -> str | None:
        """Returns what a model reads in the place of the compaction in a turn; None where nothing of it is missing."""
        for loss, note in _NOTES.items():
            if any(turn is one for one in self._turns.get(loss, ())):
                return note
        return None

    def _block(self, block: Block) -> Block | None:
        match block:
            case Text() | Image() | ToolCall() if STATE_FIELD in block.extra:
                extra, _ = self._read(block.extra)
                return block if extra is block.extra else msgspec.structs.replace(block, extra=extra or EMPTY)
            case Reasoning() if STATE_FIELD in block.extra:
                extra, lost = self._read(block.extra)
                if extra is block.extra:
                    return block
                # A backend of another API may read the text alone; one of this API refuses it.
                if lost and (self._passes or not block.text):
                    return None
                return msgspec.structs.replace(block, extra=extra or EMPTY)
            case File() if self._passes:
                part = self._object(block.part)
                if part is None or part is block.part:
                    return None if part is None else block
                return msgspec.structs.replace(block, part=part)
            case File() if self._compacted and is_compaction(block):
                return None
            case Text() | Image() | ToolCall() | Reasoning() | File() | ToolResult():
                return block
            case _:
                assert_never(block)

    def _source(self, source: Source) -> Source:
        value = self._message(source.value)
        return source if value is source.value else Source(source.dialect, value, source.listed, source.unread)

    def _message(self, value: JsonObject) -> JsonObject:
        lists: dict[str, Json] = {}
        for name in _LISTS:
            if isinstance(written := value.get(name), list):
                kept = self._objects(written)
                if kept is not written:
                    lists[name] = kept
        if isinstance(joined := value.get(_MESSAGES), list):
            kept = self._contents(joined)
            if kept is not joined:
                lists[_MESSAGES] = kept
        read, _ = self._read(value)
        return value if read is value and not lists else {**read, **lists}

    def _contents(self, written: list[Json]) -> list[Json]:
        """Returns the contents that a client of Gemini wrote as one turn; the same list where nothing changes."""
        kept: list[Json] = []
        changed = False
        for one in written:
            read = self._message(one) if isinstance(one, dict) else one
            changed = changed or read is not one
            if not isinstance(one, dict) or not isinstance(read, dict):
                kept.append(one)
            elif _has_more(read) or not _has_more(one):
                kept.append(read)
        return kept if changed else written

    def _objects(self, written: list[Json]) -> list[Json]:
        """Returns the objects of a message; the same list where nothing changes. Most of them have no state."""
        kept: list[Json] = []
        changed = False
        for one in written:
            if isinstance(one, dict) and not STATE_FIELDS.isdisjoint(one):
                read = self._object(one)
                if read is not one:
                    changed = True
                    kept += [] if read is None else [dict(read)]
                    continue
            kept.append(one)
        return kept if changed else written

    def _object(self, value: JsonObject) -> JsonObject | None:
        """Returns an object of a wire; None where it is nothing without the state that is left out."""
        read, lost = self._read(value)
        return None if lost and _is_bare(read) else read

    def _read(self, value: JsonObject) -> tuple[JsonObject, bool]:
        """Returns an object with the state that the backend may read, and whether any other was left out."""
        if STATE_FIELDS.isdisjoint(value):
            return value, False
        self._left_out.clear()
        read = with_states(value, self._own)
        if not self._left_out:
            return read, False
        self._lost |= {_loss(value) if one == "foreign" else one for one in self._left_out}
        return read, True

    def _own(self, state: str) -> str | None:
        """Returns a state as the backend made it; None for one that it may not read."""
        label = label_of(state)
        if label == self._label or (not label and self._passes):
            # A label without anything behind it is no state.
            return state[len(label) :] or None
        self._left_out.add("foreign" if label else "unlabelled")
        return None


def _kind(value: JsonObject) -> str:
    kind = value.get("type")
    return kind if isinstance(kind, str) else ""


def _loss(value: JsonObject) -> Loss:
    return "compaction" if _kind(value) in COMPACTION_TYPES and not value.get("content") else "foreign"


def _is_bare(value: JsonObject) -> bool:
    """Returns whether an object without its state says nothing."""
    kind = _kind(value)
    if kind in COMPACTION_TYPES:
        return not value.get("content")
    if kind in REASONING_TYPES or value.get("thought") is True:
        return True
    return value.keys() <= _EMPTY_PART and not value.get("text")


def _says_more(source: Source) -> bool:
    return _has_more(source.value)


def _has_more(value: JsonObject) -> bool:
    return any(isinstance(written := value.get(name), list) and written for name in (*_LISTS, _MESSAGES))


def has_unlabelled_state(conversation: Conversation) -> bool:
    """Returns whether any state of the conversation does not say which backend made it."""
    search = _UnlabelledSearch()
    for at in _stateful(conversation.turns):
        search.turn(conversation.turns[at])
    return search.found


class _UnlabelledSearch(_StateFilter):
    """Looks for state without a label, and leaves everything as it is."""

    def __init__(self) -> None:
        super().__init__("", passes=True)
        self.found = False

    def _own(self, state: str) -> str | None:
        self.found = self.found or not label_of(state)
        return state
