"""Reads the items of `input` as turns.

Neighbouring reasoning, messages of the assistant and calls are one turn of the assistant; every output of a call is a
turn of its own. An item that is no turn is kept in the source of the turn behind it, so that a backend of the same
dialect receives the whole input; for any other backend it is left out with a notice.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import msgspec

from adapters.openai_responses import DIALECT, PROVIDER
from adapters.openai_responses.call_items import (
    CALL_KINDS,
    FORMS,
    OUTPUT_KINDS,
    is_hosted,
    output_failed,
    output_text,
)
from adapters.openai_responses.client.content import read_content
from adapters.openai_responses.client.directives import read_update
from adapters.openai_responses.function_names import ClientTool, ToolKind, ToolNames
from adapters.openai_responses.turn_items import ITEMS, REFERENCE, Item, type_of
from gateway.core.call_arguments import custom_arguments
from gateway.core.conversation import (
    EMPTY,
    UNREAD,
    Block,
    Directive,
    File,
    Json,
    JsonObject,
    Reasoning,
    Role,
    Source,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.core.provider_state import read_named_state, with_provider_state
from gateway.core.sealed_compaction import NO_SEAL, sealed_text_in, unreadable_compaction
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

UNNAMED: Final = "unknown"
_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}
# Fields of a message that the gateway reads, or that an answer of the dialect adds.
_MESSAGE_FIELDS: Final = frozenset({"type", "role", "content", "id", "status"})
_CALL_FIELDS: Final = frozenset({"type", "id", "status", "call_id", "name", "namespace", "execution"})
# The one whose text is optional.
_OPTIONAL: Final = "context_compaction"
_COMPACTIONS: Final = frozenset({"compaction", "compaction_summary", _OPTIONAL})
# Changes what the answers behind it are asked for.
_UPDATE: Final = "configuration_update"
# Asks for a compaction of the items before it.
TRIGGER: Final = "compaction_trigger"
# Their tools have joined those of the request.
_READ: Final = frozenset({"message", "reasoning", *CALL_KINDS, *OUTPUT_KINDS, *_COMPACTIONS})
_TOOL_LISTS: Final = frozenset({"additional_tools"})
# Items of tools that OpenAI or the client runs.
_CUSTOM: Final = "custom_tool_call"
_HOSTED: Final = frozenset({"tool_search_call", "tool_search_output", "shell_call", "shell_call_output", _CUSTOM})


class InputTurns(NamedTuple):
    """The turns of all items. `compacted`: a compaction of the gateway is among them; `compacts`: one is asked for."""

    turns: tuple[Turn, ...]
    compacted: bool
    compacts: bool


def own_items(value: Json) -> list[Json]:
    """Returns the items of `input`: a text, which is one message, or an array. Raises InvalidRequest for another
    value."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list):
        message = f"input must be text or an array; it is {kind_of(value)}."
        raise InvalidRequest(message, code="invalid_type", param="input")
    return value


def read_items(
    items: Sequence[Json],
    names: ToolNames,
    faults: Faults,
    notices: list[Notice],
    earlier: int = 0,
    directives: list[Directive] | None = None,
) -> InputTurns:
    """Returns the turns of these items, of which so many as `earlier` says were stored and stand before those of the
    request. `names` gives calls the names of their functions. `directives` receives those of the items.

    A reference to an item names one of the earlier ones. Raises InvalidRequest for an item that only OpenAI has.
    """
    answered = {
        call_id
        for item in items
        if isinstance(item, dict) and type_of(item) in OUTPUT_KINDS and isinstance(call_id := item.get("call_id"), str)
    }
    reader = _Reader(names, faults, notices, earlier, answered, [] if directives is None else directives)
    odd: list[int] = []
    for position, item in enumerate(items):
        if isinstance(item, dict):
            reader.read(item, position)
        else:
            odd.append(position)
    if odd:
        faults.add_each(
            "NOT_OBJECT",
            len(odd),
            lambda n: (odd[n], "", f"the item is {kind_of(items[odd[n]])}, not an object"),
            "items are not objects",
        )
    return reader.finish()


def _source(items: Sequence[Json]) -> Source:
    """Returns the items of a turn; those that none of its blocks holds are its unread part."""
    whole = all(isinstance(item, dict) and type_of(item) in _READ for item in items)
    return Source(DIALECT, {ITEMS: [*items]}, unread=frozenset() if whole else UNREAD)


class _Reader:
    """Reads items in order; the assistant's are collected until another one begins a turn.

    `position` is the place of an item among all, which `Faults` takes; the client knows the item by its `_index`.
    """

    def __init__(
        self,
        names: ToolNames,
        faults: Faults,
        notices: list[Notice],
        earlier: int,
        answered: set[str],
        directives: list[Directive],
    ) -> None:
        self._names = names
        # The ids of the calls of custom tools that the client ran.
        self._answered = answered
        self._faults = faults
        self._notices = notices
        self._earlier = earlier
        self._directives = directives
        self._turns: list[Turn] = []
        # The assistant's turn so far: its blocks, its unknown fields, and the index of its first item.
        self._said: list[Block] = []
        self._said_fields: dict[str, Json] = {}
        self._first = 0
        # The items since the last turn.
        self._items: list[Item] = []
        # The ids of calls that OpenAI ran, whose outputs may not say so.
        self._hosted: set[str] = set()
        self._compacted = False
        self._compacts = False

    def read(self, item: Item, position: int) -> None:
        kind = type_of(item)
        if self._compacts:
            param = f"{ITEMS}[{self._index(position)}]"
            raise InvalidRequest(f"{param} stands behind a {TRIGGER}, which must be the last item.", param=param)
        if self._is_hosted(kind, item):
            self._unsent(item, kind, position)
        elif kind in CALL_KINDS:
            self._say((self._call(CALL_KINDS[kind], item, position),), item, position)
        elif kind in OUTPUT_KINDS:
            self._turn("tool", (self._result(OUTPUT_KINDS[kind], item, position),), item, position)
        elif kind == "message":
            self._message(item, position)
        elif kind == "reasoning":
            self._say(_reasoning(item), item, position)
        elif kind in _COMPACTIONS:
            # As a part that only its maker reads: dropping it would lose the history that it stands for.
            sealed = sealed_text_in(item)
            if sealed == NO_SEAL or (sealed is None and kind != _OPTIONAL and not item.get("encrypted_content")):
                raise unreadable_compaction(f"{ITEMS}[{self._index(position)}]")
            self._compacted = self._compacted or sealed is not None
            self._turn("user", (File(kind, item, 0),), item, position, compaction=True)
        elif kind == TRIGGER:
            # For a backend of the same API, which compacts by itself.
            self._compacts = True
            self._items.append(item)
        elif kind == _UPDATE:
            # Its place is in the source of the turn behind it, whatever stands before it.
            self._end_assistant()
            self._items.append(item)
            self._directives += read_update(item, self._index(position))
        elif kind == REFERENCE:
            detail = "the item is part of the history of previous_response_id already"
            self._note("dropped", "ITEM_REPEATED", detail, position, "info")
        else:
            self._unsent(item, kind, position)

    def _is_hosted(self, kind: str, item: Item) -> bool:
        """Returns whether the item is a call that OpenAI ran, or the output of one."""
        if kind not in _HOSTED:
            return False
        call_id = item.get("call_id")
        if kind == _CUSTOM and isinstance(call_id, str) and call_id in self._answered:
            return False
        if is_hosted(item, lambda: self._names):
            self._hosted |= {call_id} if isinstance(call_id, str) else set()
            return True
        return kind in OUTPUT_KINDS and isinstance(call_id, str) and call_id in self._hosted

    def _unsent(self, item: Item, kind: str, position: int) -> None:
        """Keeps an item for a backend of the same API."""
        self._items.append(item)
        if kind not in _TOOL_LISTS:
            detail = f"no other API has an item of type {kind[:40]!r}"
            self._note("dropped", "ITEM_NOT_SENT", detail, position, "warning")

    def finish(self) -> InputTurns:
        """Returns all turns."""
        self._end_assistant()
        if self._items and self._turns and (source := self._turns[-1].source) is not None:
            before = source.value[ITEMS]
            assert isinstance(before, list)  # every source of this reader has its items
            items: list[Json] = [*before, *self._items]
            last = msgspec.structs.replace(self._turns[-1], source=_source(items))
            self._turns[-1] = last
        return InputTurns(tuple(self._turns), self._compacted, self._compacts)

    def _index(self, position: int) -> int:
        """Returns the index by which the client knows an item: below 0 for a stored one."""
        return position - self._earlier

    def _note(self, action: Action, rule: NoticeRule, detail: str, position: int, level: Level) -> None:
        self._notices.append(Notice("decode", action, rule, detail, index=self._index(position), level=level))

    def _say(self, blocks: tuple[Block, ...], item: Item, position: int) -> None:
        """Adds blocks to the assistant's turn."""
        if not self._said:
            self._first = self._index(position)
        self._said += blocks
        self._items.append(item)

    def _end_assistant(self) -> None:
        if self._said:
            self._add(Turn("assistant", tuple(self._said), index=self._first, extra=self._said_fields or EMPTY))
            self._said, self._said_fields = [], {}

    def _turn(
        self,
        role: Role,
        blocks: tuple[Block, ...],
        item: Item,
        position: int,
        extra: JsonObject = EMPTY,
        compaction: bool = False,
    ) -> None:
        self._end_assistant()
        self._items.append(item)
        self._add(Turn(role, blocks, index=self._index(position), extra=extra, compaction=compaction))

    def _add(self, turn: Turn) -> None:
        self._turns.append(msgspec.structs.replace(turn, source=_source(self._items)))
        self._items = []

    def _message(self, item: Item, position: int) -> None:
        role = self._role(item, position)
        blocks = read_content(item.get("content"), position, "content", self._faults)
        extra = _rest(item, _MESSAGE_FIELDS)
        if role == "assistant":
            self._say(blocks, item, position)
            self._said_fields.update(extra)
        else:
            self._turn(role, blocks, item, position, extra)

    def _role(self, item: Item, position: int) -> Role:
        role = item.get("role")
        if isinstance(role, str) and (known := _ROLES.get(role)) is not None:
            return known
        if isinstance(role, str):
            self._faults.add("ROLE_UNKNOWN", position, ".role", f"the role {role[:40]!r} is unknown; read as user")
        else:
            said = f"the role is {kind_of(role)}, not text" if "role" in item else "the message has no role"
            self._faults.add("ROLE_TYPE", position, ".role", said)
        return "user"

    def _call(self, kind: ToolKind, item: Item, position: int) -> ToolCall:
        call_id = self._call_id(item, position, "CALL_ID_MISSING")
        name = kind if kind not in ("function", "custom") else self._called(item, position, call_id)
        namespace = item.get("namespace")
        tool = ClientTool(kind, name, namespace if isinstance(namespace, str) else None)
        arguments = self._arguments(kind, item, position, call_id)
        extra = _rest(item, _CALL_FIELDS | {FORMS[kind].field})
        return ToolCall(call_id, self._names.name(tool), arguments, extra, item=self._index(position))

    def _called(self, item: Item, position: int, call_id: str) -> str:
        name = item.get("name")
        if isinstance(name, str) and name.strip():
            return name
        self._faults.add("CALL_NAME", position, ".name", "a tool call has no name", call_id or None)
        return UNNAMED

    def _arguments(self, kind: ToolKind, item: Item, position: int, call_id: str) -> str:
        form = FORMS[kind]
        written = item.get(form.field)
        if not isinstance(written, dict if form.is_object else str):
            wanted = "an object" if form.is_object else "text"
            detail = f"{form.field} is {kind_of(written)}, not {wanted}"
            self._faults.add("CALL_ARGS_TYPE", position, f".{form.field}", detail, call_id or None)
        if written is None:
            text = "" if kind == "custom" else "{}"
        else:
            text = written if isinstance(written, str) else msgspec.json.encode(written).decode()
        return custom_arguments(text) if kind == "custom" else text

    def _result(self, kind: ToolKind, item: Item, position: int) -> ToolResult:
        call_id = self._call_id(item, position, "TOOL_ID_MISSING")
        content = read_content(output_text(kind, item), position, "output", self._faults)
        return ToolResult(call_id, content, is_error=output_failed(item), item=self._index(position))

    def _call_id(self, item: Item, position: int, rule: Literal["CALL_ID_MISSING", "TOOL_ID_MISSING"]) -> str:
        call_id = item.get("call_id")
        if call_id is None and type_of(item) == FORMS["local_shell"].output:
            # The reference has no `call_id` for it: its `id` is that of the call.
            call_id = item.get("id")
        if isinstance(call_id, str) and call_id.strip():
            return call_id
        said = "" if call_id is None or isinstance(call_id, str) else f"call_id is {kind_of(call_id)}, not text"
        self._faults.add(rule, position, ".call_id", said)
        return ""


def _rest(item: Item, read: frozenset[str]) -> JsonObject:
    """Returns the fields of an item that its turn or block does not hold itself."""
    if item.keys() <= read:
        return EMPTY
    return {name: value for name, value in item.items() if name not in read and value is not None} or EMPTY


def _reasoning(item: Item) -> tuple[Reasoning, ...]:
    """Returns the reasoning in an item; none in one without text and state.

    The readable text is the reasoning itself, or its summary. What only its maker can read goes back to it."""
    text = "\n\n".join(_texts(item.get("content")) or _texts(item.get("summary")))
    encrypted = item.get("encrypted_content")
    if not isinstance(encrypted, str) or not encrypted:
        return (Reasoning(text),) if text else ()
    if named := read_named_state(encrypted):
        return (Reasoning(text, extra=named),)
    state: dict[str, Json] = {"encrypted_content": encrypted}
    if isinstance(identity := item.get("id"), str) and identity:
        state["id"] = identity
    return (Reasoning(text, extra=with_provider_state(PROVIDER, state)),)


def _texts(parts: Json) -> list[str]:
    if not isinstance(parts, list):
        return []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return [text for text in texts if isinstance(text, str)]
