"""Places the marks of a provider's prompt cache in a request whose client has set none.

A mark ends a prefix that the provider keeps, and a later request finds it while it begins with the same bytes. So the
marks stand where the next request has the same beginning: behind the tools, behind the system prompt, at the end of
this request, and where the request before ended, which is before the newest messages of the model. The last one finds
what the request before has written, however many blocks a round adds: from a mark, Anthropic looks back over 20 blocks
alone. (Anthropic, "Prompt caching", "How automatic prefix checking works"; OpenAI, "Prompt caching".)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.notices import Notice
from gateway.providers.cache_rules import MARKS, REQUEST_FIELDS, CacheRules

# Who wrote a message: the application, the user or a tool, or the model.
Writer: TypeAlias = Literal["system", "input", "model"]


class MessageForm(msgspec.Struct, frozen=True):
    """How a wire writes messages: who wrote one, the name of the field with its parts (empty: it has none that may have
    a mark), the type of a part of text, and the types of all parts that may have a mark."""

    writer: Callable[[JsonObject], Writer]
    field: Callable[[JsonObject], str]
    text: str
    marked: frozenset[str]


class Placement:
    """Places the marks of one request. `places` are the names of those that have one so far."""

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self.places: list[str] = []

    def behind_tools(self, tools: Sequence[Json]) -> list[Json]:
        """Returns the tools, of which the last one has a mark."""
        if not tools or not isinstance(last := tools[-1], Mapping):
            return [*tools]
        self.places.append("the tools")
        return [*tools[:-1], {**last, **self._rules.new_mark()}]

    def behind_system(self, parts: Json, form: MessageForm) -> Json:
        """Returns a system prompt that stands apart from the messages, as parts with a mark on the last one."""
        listed = _listed(parts, form)
        if (position := _last_marked(listed, form)) is None:
            return parts
        self.places.append("the system prompt")
        return self._with_mark(listed, position)

    def in_messages(self, messages: Sequence[Any], form: MessageForm) -> list[Any]:
        """Returns the messages with their marks. The content of each message that may have a mark is written as a list
        of parts, with and without one, so that it is the same in every request."""
        listed = in_parts(messages, form)
        writers = [form.writer(message) for message in messages]
        begin = next((n for n, writer in enumerate(writers) if writer != "system"), len(writers))
        may = [n for n, one in enumerate(listed) if writers[n] != "model" and _markable(one, form) is not None]
        ends: dict[str, int] = {}
        if system := [n for n in may if n < begin]:
            ends["the system prompt"] = system[-1]
        if rest := [n for n in may if n >= begin]:
            end = rest[-1]
            answered = next((n for n in range(end, begin, -1) if writers[n] == "model"), begin)
            if before := [n for n in rest if n < answered]:
                ends["the request before"] = before[-1]
            ends["this request"] = end
        for place, n in ends.items():
            self.places.append(place)
            message, field = listed[n], form.field(listed[n])
            position = _markable(message, form)
            assert position is not None, "only such messages are chosen"
            listed[n] = {**message, field: self._with_mark(message[field], position)}
        return listed

    def notices(self) -> list[Notice]:
        """Returns the notice of what was placed."""
        if not self.places:
            return []
        detail = f"{self._rules.mark} is placed at the end of {', '.join(self.places)}"
        return [Notice("encode", "added", "CACHE_MARKS_PLACED", detail, level="debug")]

    def _with_mark(self, parts: Sequence[Json], position: int) -> list[Json]:
        part = parts[position]
        assert isinstance(part, Mapping), "only parts that are objects are chosen"
        return [*parts[:position], {**part, **self._rules.new_mark()}, *parts[position + 1 :]]


def in_parts(messages: Sequence[Any], form: MessageForm) -> list[Any]:
    """Returns the messages, in which each text that may have a mark is a part."""
    return [_with_list(message, form) for message in messages]


def has_marks(*values: object) -> bool:
    """Returns whether a client has set a mark in any of these tools, messages and parts."""
    return any(_is_marked(one) for value in values if isinstance(value, list) for one in value)


def has_fields(body: Mapping[str, object]) -> bool:
    """Returns whether a request says something of the cache beside its messages."""
    return any(body.get(name) is not None for name in REQUEST_FIELDS)


_INNER: Final = ("content", "output", "function")


def _is_marked(one: object) -> bool:
    if not isinstance(one, Mapping):
        return False
    if any(one.get(mark) is not None for mark in MARKS):
        return True
    return any(
        has_marks(inner) or _is_marked(inner) for name in _INNER if isinstance(inner := one.get(name), list | Mapping)
    )


def _with_list(message: Any, form: MessageForm) -> Any:
    field = form.field(message) if form.writer(message) != "model" else ""
    content = message.get(field) if field else None
    if not isinstance(content, str) or not content.strip():
        return message
    return {**message, field: _listed(content, form)}


def _listed(content: Json, form: MessageForm) -> list[Json]:
    if isinstance(content, str):
        return [{"type": form.text, "text": content}] if content else []
    return content if isinstance(content, list) else []


def _markable(message: Any, form: MessageForm) -> int | None:
    field = form.field(message)
    return _last_marked(message.get(field), form) if field else None


def _last_marked(parts: Json, form: MessageForm) -> int | None:
    """Returns the position of the last part that may have a mark: of a known type, and no blank text."""
    if not isinstance(parts, list):
        return None
    for position in range(len(parts) - 1, -1, -1):
        part = parts[position]
        if isinstance(part, Mapping) and part.get("type") in form.marked:
            text = part.get("text", "x")
            if isinstance(text, str) and text.strip():
                return position
    return None
