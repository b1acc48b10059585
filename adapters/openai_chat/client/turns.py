"""Reads each message as one Turn, which keeps its source; every repaired fault names its rule."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from adapters.openai_chat import DIALECT
from adapters.openai_chat.client.calls import derived_id, plain_calls, read_calls, read_function_call
from adapters.openai_chat.client.content import read_content
from adapters.openai_chat.client.foreign_forms import has_foreign_blocks, with_blocks_read
from adapters.openai_chat.table import ROLES
from gateway.core.conversation import (
    EMPTY,
    Block,
    Json,
    JsonObject,
    Reasoning,
    Role,
    Source,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.dialects.content_parts import Part
from gateway.dialects.derived_ids import derive_ids
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults

Message = dict[str, Json]

_REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
_SPEAKER_KEYS: Final = frozenset({"role", "content", "name"})
_ASSISTANT_KEYS: Final = frozenset({*_SPEAKER_KEYS, *_REASONING_FIELDS, "tool_calls", "function_call", "refusal"})
_TEXT_KEYS: Final = frozenset({*_REASONING_FIELDS, "name", "refusal"})
_TOOL_KEYS: Final = frozenset({*_SPEAKER_KEYS, "tool_call_id"})
_NONE: Final[frozenset[str]] = frozenset()
_NULL_CONTENT: Final = frozenset({"content"})
_SPEAKERS: Final = ROLES.values


def read_turns(messages: Sequence[Json], faults: Faults, known: tuple[Turn, ...] = ()) -> tuple[Turn, ...]:
    """Returns a turn for every message that is an object; of one with blocks of the Messages API, one for each result
    as well. `faults` collects the violations. `known` are the turns of the first messages."""
    turns: list[Turn] = [*known]
    odd: list[int] = []
    reader = _Reader(faults)
    begin = len(known) if known else 0
    for index, message in enumerate(messages[begin:] if known else messages, begin):
        # Most messages are nothing but a role and a text, a call or a result.
        if isinstance(message, dict) and len(message) == 2:
            role, text = message.get("role"), message.get("content")
            if isinstance(text, str) and isinstance(role, str) and (speaker := _SPEAKERS.get(role)) is not None:
                turns.append(Turn(speaker, (Text(text),), index=index, source=Source(DIALECT, message)))
                continue
        if isinstance(message, dict):
            turn = (_plain_turn(message, index) if len(message) == 3 else None) or reader.turn(message, index)
            listed = turn.source is not None and turn.source.listed
            turns += with_blocks_read(turn, faults) if listed and has_foreign_blocks(turn) else (turn,)
        else:
            odd.append(index)
    if odd:
        _report_odd(messages, odd, faults)
    if reader.numbered:
        turns = _without_numbers(turns, reader.numbered)
    return _with_ids(turns, faults) if reader.derives else tuple(turns)


def _plain_turn(message: Message, index: int) -> Turn | None:
    """Returns the turn of a message of three fields in the form that most calls and results have: calls with a text or
    with null, or a result in one text. None: the message has another form."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        call_id = message.get("tool_call_id")
        if not isinstance(content, str) or not isinstance(call_id, str) or not call_id.strip():
            return None
        result = ToolResult(call_id, (Text(content),))
        return Turn("tool", (result,), index=index, source=Source(DIALECT, message))
    if role != "assistant":
        return None
    calls = plain_calls(message.get("tool_calls"))
    if not calls:
        return None
    if isinstance(content, str):
        return Turn("assistant", (Text(content), *calls), index=index, source=Source(DIALECT, message))
    if content is None and "content" in message:
        source = Source(DIALECT, message, unread=_NULL_CONTENT)
        return Turn("assistant", calls, index=index, source=source)
    return None


def _report_odd(messages: Sequence[Json], odd: Sequence[int], faults: Faults) -> None:
    faults.add_each(
        "NOT_OBJECT",
        len(odd),
        lambda n: (odd[n], "", f"the message is {kind_of(messages[odd[n]])}, not an object"),
        "messages are not objects",
    )


def _with_ids(turns: Sequence[Turn], faults: Faults) -> tuple[Turn, ...]:
    derived = derive_ids(turns)
    for index in derived.mixed:
        detail = "a function message answers one of tool_calls; it is read as a tool message"
        faults.add("CALL_FORMS_MIXED", index, ".role", detail)
    return derived.turns


def _without_numbers(turns: Sequence[Turn], numbered: set[int]) -> list[Turn]:
    """A number in `tool_call_id` counts only if a call has it: any other is no id, and the position decides."""
    known = {call.id for turn in turns for call in turn.calls}
    return [
        msgspec.structs.replace(turn, blocks=tuple(_known(block, known) for block in turn.blocks))
        if turn.index in numbered
        else turn
        for turn in turns
    ]


def _known(block: Block, known: set[str]) -> Block:
    if isinstance(block, ToolResult) and block.call_id not in known:
        return msgspec.structs.replace(block, call_id="")
    return block


class _Reader(msgspec.Struct):
    """Reads single messages, and records what depends on all of them.

    `numbered` are the indices of results whose id was a number; `derives` says that a call or a result has the
    deprecated form without ids.
    """

    faults: Faults
    numbered: set[int] = set()
    derives: bool = False

    def turn(self, message: Message, index: int) -> Turn:
        role = message.get("role")
        reader = _READERS.get(role) if isinstance(role, str) else None
        if reader is None:
            reader = _READERS[self._role(message, index)]
        return reader(self, message, index)

    def _role(self, message: Message, index: int) -> Role:
        """Returns the role of a message whose role is unknown.

        A field that only one role may hold decides; without one the role is `user`. A message whose role is no
        text is refused; the rest of it is still read, so that every other fault of the history is found.
        """
        role = message.get("role")
        if isinstance(message.get("tool_calls"), list):
            read: Role = "assistant"
        else:
            read = "tool" if isinstance(message.get("tool_call_id"), str) else "user"
        if isinstance(role, str):
            self.faults.add("ROLE_UNKNOWN", index, ".role", f"the role {role[:40]!r} is unknown; read as {read}")
        else:
            said = f"the role is {kind_of(role)}, not text" if "role" in message else "the message has no role"
            self.faults.add("ROLE_TYPE", index, ".role", said)
        return read

    def _system(self, message: Message, index: int) -> Turn:
        return self._speaker("system", message, index)

    def _developer(self, message: Message, index: int) -> Turn:
        return self._speaker("developer", message, index)

    def _user(self, message: Message, index: int) -> Turn:
        return self._speaker("user", message, index)

    def _speaker(self, role: Role, message: Message, index: int) -> Turn:
        name, extra = _name_and_extra(message, _SPEAKER_KEYS)
        content = message.get("content")
        source = Source(DIALECT, message, type(content) is list)
        return Turn(role, self._content(content, index), name=name, index=index, extra=extra, source=source)

    def _assistant(self, message: Message, index: int) -> Turn:
        blocks: list[Block] = []
        for field in _REASONING_FIELDS:
            if isinstance(text := message.get(field), str):
                blocks += (Reasoning(text, field),)
        listed = message.get("tool_calls")
        calls = self._calls(listed, message, index)
        refusal = message.get("refusal")
        required = not calls and not refusal and not message.get("audio")
        content = message.get("content")
        blocks += self._content(content, index, required=required)
        if isinstance(refusal, str) and refusal:
            blocks.append(Text(refusal, {"type": "refusal"}))
        name, extra = _name_and_extra(message, _ASSISTANT_KEYS)
        source = Source(DIALECT, message, type(content) is list, _unread(message, listed))
        return Turn("assistant", (*blocks, *calls), name=name, index=index, extra=extra, source=source)

    def _calls(self, listed: Json, message: Message, index: int) -> tuple[ToolCall, ...]:
        calls: tuple[ToolCall, ...] = ()
        if listed is not None:
            calls = read_calls(listed, index, self.faults)
        if (value := message.get("function_call")) is not None:
            deprecated = read_function_call(value, index, self.faults)
            if calls:
                deprecated = self._beside(calls, deprecated, index)
            self.derives |= bool(deprecated)
            calls = (*calls, *deprecated)
        return calls

    def _beside(self, calls: Sequence[ToolCall], deprecated: tuple[ToolCall, ...], index: int) -> tuple[ToolCall, ...]:
        """Returns the calls that `function_call` adds to `tool_calls`: some clients write one call in both forms."""
        said = {(call.name, call.arguments) for call in calls}
        added = tuple(call for call in deprecated if (call.name, call.arguments) not in said)
        if deprecated:
            ending = (
                "function_call is read as one more call"
                if added
                else "function_call repeats one of them and is dropped"
            )
            detail = f"the message has both tool_calls and function_call; {ending}"
            self.faults.add("CALL_FORMS_MIXED", index, ".function_call", detail)
        return added

    def _tool(self, message: Message, index: int) -> Turn:
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id.strip():
            said = (
                "" if call_id is None or isinstance(call_id, str) else f"tool_call_id is {kind_of(call_id)}, not text"
            )
            self.faults.add("TOOL_ID_MISSING", index, ".tool_call_id", said)
            call_id = derived_id(call_id) or ""
            if call_id:
                self.numbered.add(index)
        content = message.get("content")
        return self._result(ToolResult(call_id, self._content(content, index)), content, message, index)

    def _function(self, message: Message, index: int) -> Turn:
        name = message.get("name")
        named = isinstance(name, str) and bool(name.strip())
        if named:
            self.derives = True
        else:
            self.faults.add("TOOL_ID_MISSING", index, ".name", "a function message has no name")
        content = message.get("content")
        result = ToolResult("", self._content(content, index), id_derived=named)
        return self._result(result, content, message, index)

    def _result(self, result: ToolResult, content: Json, message: Message, index: int) -> Turn:
        name, extra = _name_and_extra(message, _TOOL_KEYS)
        source = Source(DIALECT, message, type(content) is list)
        return Turn("tool", (result,), name=name, index=index, extra=extra, source=source)

    def _content(self, content: Json, index: int, *, required: bool = True) -> tuple[Part, ...]:
        if content is not None:
            return read_content(content, index, self.faults)
        if required:
            self.faults.add("CONTENT_MISSING", index, ".content")
        return ()


_READERS: Final[dict[str, Callable[[_Reader, Message, int], Turn]]] = {
    "system": _Reader._system,
    "developer": _Reader._developer,
    "user": _Reader._user,
    "assistant": _Reader._assistant,
    "tool": _Reader._tool,
    "function": _Reader._function,
}


def _name_and_extra(message: Message, read: frozenset[str]) -> tuple[str | None, JsonObject]:
    """Returns the speaker's name and the fields that no block holds, without null fields (SDKs write many)."""
    keys = message.keys()
    if keys <= read and keys.isdisjoint(_TEXT_KEYS):
        return None, EMPTY
    extra = {} if keys <= read else {key: message[key] for key in message if key not in read}
    # A name, a refusal or reasoning is valid only as text.
    extra.update((key, message[key]) for key in keys & _TEXT_KEYS if not isinstance(message[key], str))
    name = message.get("name")
    return name if isinstance(name, str) else None, _without_nulls(extra)


def _unread(message: Message, calls: Json) -> frozenset[str]:
    """Returns the names of null fields, and `index` if a call has it (stream deltas do): no block holds them."""
    names: list[str] = []
    for name in message:
        if message[name] is None:
            names += (name,)
    if type(calls) is list:
        for call in calls:
            if type(call) is dict and "index" in call:
                names += ("index",)
                break
    return frozenset(names) if names else _NONE


def _without_nulls(fields: Message) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None} if fields else EMPTY
