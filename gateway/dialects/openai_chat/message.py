"""One message in, one Turn out: it keeps its source, and what had to be mended in it says which rule it broke."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from gateway.dialects.openai_chat.calls import derived_id, read_arguments, read_calls
from gateway.dialects.openai_chat.content import Part, json_text, kind_of, read_content
from gateway.dialects.openai_chat.faults import Faults
from gateway.types import EMPTY, Block, Json, JsonObject, Reasoning, Role, Text, ToolCall, ToolResult, Turn

Message = dict[str, Json]

_REASONING_FIELDS: Final = ("reasoning_content", "reasoning")
_SPEAKER_KEYS: Final = frozenset({"role", "content", "name"})
_ASSISTANT_KEYS: Final = frozenset({*_SPEAKER_KEYS, *_REASONING_FIELDS, "tool_calls", "function_call", "refusal"})
_TEXT_KEYS: Final = frozenset({*_REASONING_FIELDS, "name", "refusal"})
_TOOL_KEYS: Final = frozenset({*_SPEAKER_KEYS, "tool_call_id"})
_SPEAKERS: Final[dict[str, Role]] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
}


def read_turns(messages: Sequence[Json], faults: Faults) -> tuple[Turn, ...]:
    """A turn for every message but null, which says nothing and cannot be a turn. `faults` collects what was broken."""
    turns: list[Turn] = []
    reader = _Reader(faults)
    for index, message in enumerate(messages):
        # Most messages are nothing but a role and a text.
        if isinstance(message, dict) and len(message) == 2:
            role, text = message.get("role"), message.get("content")
            if isinstance(text, str) and isinstance(role, str) and (speaker := _SPEAKERS.get(role)) is not None:
                turns.append(Turn(speaker, (Text(text, EMPTY),), None, index, EMPTY, message))
                continue
        turn = reader.turn(message, index)
        if turn is not None:
            turns.append(turn)
    return tuple(turns)


class _Reader(msgspec.Struct):
    """Reads messages in order. That matters only to the deprecated `function` role, whose messages answer the last
    call of their name."""

    faults: Faults
    legacy_ids: dict[str, str] = {}

    def turn(self, message: Json, index: int) -> Turn | None:
        if not isinstance(message, dict):
            self.faults.add("NOT_OBJECT", index, "", f"the message is {kind_of(message)}, not an object")
            if message is None:
                return None
            text = message if isinstance(message, str) else json_text(message)
            return Turn("user", (Text(text),), index=index)
        role = message.get("role")
        reader = _READERS.get(role) if isinstance(role, str) else None
        if reader is None:
            reader = _READERS[self._role(message, index)]
        return reader(self, message, index)

    def _role(self, message: Message, index: int) -> Role:
        """What a message without a known role is read as: what only one role may hold tells it, else the user's."""
        role = message.get("role")
        if isinstance(message.get("tool_calls"), list):
            read: Role = "assistant"
        else:
            read = "tool" if isinstance(message.get("tool_call_id"), str) else "user"
        said = f"the role {role[:40]!r} is unknown" if isinstance(role, str) else "the message has no role"
        self.faults.add("ROLE_UNKNOWN", index, ".role", f"{said}; read as {read}")
        return read

    def _system(self, message: Message, index: int) -> Turn:
        return self._speaker("system", message, index)

    def _developer(self, message: Message, index: int) -> Turn:
        return self._speaker("developer", message, index)

    def _user(self, message: Message, index: int) -> Turn:
        return self._speaker("user", message, index)

    def _speaker(self, role: Role, message: Message, index: int) -> Turn:
        name, extra = _name_and_extra(message, _SPEAKER_KEYS)
        return Turn(role, self._content(message, index), name, index, extra, message)

    def _assistant(self, message: Message, index: int) -> Turn:
        blocks: list[Block] = [
            Reasoning(text, field) for field in _REASONING_FIELDS if isinstance(text := message.get(field), str)
        ]
        calls = self._calls(message, index)
        refusal = message.get("refusal")
        required = not calls and not refusal and not message.get("audio")
        blocks += self._content(message, index, required=required)
        if isinstance(refusal, str) and refusal:
            blocks.append(Text(refusal, {"type": "refusal"}))
        name, extra = _name_and_extra(message, _ASSISTANT_KEYS)
        return Turn("assistant", (*blocks, *calls), name, index, extra, message)

    def _calls(self, message: Message, index: int) -> tuple[ToolCall, ...]:
        calls: tuple[ToolCall, ...] = ()
        if (value := message.get("tool_calls")) is not None:
            calls = read_calls(value, index, self.faults)
        legacy = message.get("function_call")
        if not calls and isinstance(legacy, dict) and isinstance(name := legacy.get("name"), str) and name:
            identity = f"call_function_{index}"
            place = ".function_call.arguments"
            arguments = read_arguments(legacy.get("arguments"), index, place, identity, self.faults)
            self.legacy_ids[name] = identity
            return (ToolCall(identity, name, arguments),)
        return calls

    def _tool(self, message: Message, index: int) -> Turn:
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str) or not call_id.strip():
            self.faults.add("TOOL_ID_MISSING", index, ".tool_call_id")
            call_id = derived_id(call_id) or ""
        return self._result(call_id, message, index)

    def _function(self, message: Message, index: int) -> Turn:
        name = message.get("name")
        call_id = self.legacy_ids.pop(name, None) if isinstance(name, str) else None
        return self._result(call_id or f"call_function_{index}", message, index)

    def _result(self, call_id: str, message: Message, index: int) -> Turn:
        name, extra = _name_and_extra(message, _TOOL_KEYS)
        return Turn("tool", (ToolResult(call_id, self._content(message, index)),), name, index, extra, message)

    def _content(self, message: Message, index: int, *, required: bool = True) -> tuple[Part, ...]:
        content = message.get("content")
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
    """The speaker's name and the fields that no block holds. Null fields say nothing (SDKs write many)."""
    keys = message.keys()
    if keys <= read and keys.isdisjoint(_TEXT_KEYS):
        return None, EMPTY
    extra = {} if keys <= read else {key: message[key] for key in message if key not in read}
    # Only as text is one of these a name, a refusal or reasoning.
    extra.update((key, message[key]) for key in keys & _TEXT_KEYS if not isinstance(message[key], str))
    name = message.get("name")
    return name if isinstance(name, str) else None, _without_nulls(extra)


def _without_nulls(fields: Message) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None} if fields else EMPTY
