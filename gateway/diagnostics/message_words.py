"""Says what a message of any dialect holds, in one line of words: texts, thinking, calls with their arguments, results,
pictures. Ids that differ from those of the message before it was changed are shown as `old -> new`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.provider_state import is_unsigned

# Where a message or a part has its content, in any dialect.
_CONTENT: Final = ("content", "parts", "output", "arguments", "input", "summary", "result")
# Ids of a call and of the call that a result answers.
_IDS: Final = ("id", "call_id", "tool_call_id", "tool_use_id")
_RESULT_IDS: Final = ("tool_call_id", "call_id")
_CALLS: Final = ("tool_use", "function_call", "custom_tool_call")
_RESULTS: Final = ("tool_result",)
# What has no words of its own, by what its type or its field begins with.
_MEDIA: Final[Mapping[str, str]] = {
    "image": "picture",
    "input_image": "picture",
    "input_audio": "audio",
    "input_file": "file",
    "file": "file",
    "document": "file",
    "inlineData": "file",
    "inline_data": "file",
}


def message_words(message: "Json | JsonObject", before: Json = None) -> str:
    """Returns the words of a message; `before` is the message that it was, None: none or the same."""
    if not isinstance(message, Mapping):
        return str(message)
    ids = _Renamed(message, before)
    answered = next((message[name] for name in _RESULT_IDS if isinstance(message.get(name), str)), None)
    kind = message.get("type")
    if kind in _CALLS:
        return f"{kind} {_call(message, ids)}"
    head = f"{message.get('role') or kind}{'' if answered is None else f' ({ids.shown(answered)})'}:"
    content = next((message[name] for name in _CONTENT if message.get(name) is not None), None)
    calls = message.get("tool_calls")
    words = [f"calls {_call(call, ids)}" for call in (calls if isinstance(calls, list) else ())]
    thoughts = next((message[name] for name in ("reasoning_content", "reasoning", "thinking") if name in message), None)
    if isinstance(thoughts, str) and thoughts:
        words.insert(0, f"thinking {thoughts!r}")
    return " ".join([head, *words, *_content(content, ids)])


class _Renamed:
    """The ids of a message beside those that it had: of the same count, each in the other's place."""

    def __init__(self, message: JsonObject, before: Json) -> None:
        now, old = (tuple(_ids(one)) for one in (message, before))
        pairs = zip(old, now, strict=True) if len(old) == len(now) else ()
        self._old = {new: was for was, new in pairs if was != new}

    def shown(self, name: Json) -> str:
        old = self._old.get(name) if isinstance(name, str) else None
        return str(name) if old is None else f"{old} -> {name}"


def _ids(value: "Json | JsonObject") -> Iterator[str]:
    match value:
        case Mapping():
            for name, inner in value.items():
                if name in _IDS and isinstance(inner, str):
                    yield inner
                elif name not in ("arguments", "input", "args"):
                    yield from _ids(inner)
        case list():
            for inner in value:
                yield from _ids(inner)
        case _:
            pass


def _content(content: Json, ids: _Renamed) -> Iterator[str]:
    match content:
        case None:
            pass
        case str():
            yield content
        case list():
            for part in content:
                yield _part(part, ids)
        case _:
            yield _json(content)


def _part(part: Json, ids: _Renamed) -> str:
    if not isinstance(part, dict):
        return _json(part)
    kind = part.get("type")
    if kind in ("thinking", "redacted_thinking") or part.get("thought") is True:
        return _thinking(part)
    if isinstance(text := part.get("text"), str):
        return text if text.strip() else "blank text"
    if kind in _CALLS:
        return f"calls {_call(part, ids)}"
    if kind in _RESULTS:
        return f"result ({ids.shown(part.get('tool_use_id'))}): {' '.join(_content(part.get('content'), ids))}"
    # A part may hold the call or the result in a field of its own.
    for name, inner in part.items():
        if isinstance(inner, dict) and isinstance(inner.get("name"), str):
            return f"{'result of' if name.endswith('Response') else 'calls'} {_call(inner, ids)}"
    named = next((word for name, word in _MEDIA.items() if name == kind or name in part), None)
    return named or str(kind or f"a part with {', '.join(part) or 'nothing'}")


def _thinking(part: JsonObject) -> str:
    if part.get("type") == "redacted_thinking":
        return "redacted thinking" + (" without its data" if is_unsigned(part) else "")
    text = part.get("thinking", part.get("text"))
    return f"thinking {text!r}" + (" without a signature" if is_unsigned(part) else "")


def _call(call: "Json | JsonObject", ids: _Renamed) -> str:
    """Returns the name, the id and the arguments of a call: text in quotes, an object as it is."""
    if not isinstance(call, Mapping):
        return _json(call)
    function = call.get("function")
    held = function if isinstance(function, dict) else call
    given = next((held[name] for name in ("arguments", "args", "input", "response") if name in held), None)
    name = next((call[field] for field in ("call_id", "id") if isinstance(call.get(field), str)), None)
    words = [str(held.get("name")), f"({ids.shown(name)})" if name else "", "" if given is None else _arguments(given)]
    return " ".join(word for word in words if word)


def _arguments(given: Json) -> str:
    return f"'{given}'" if isinstance(given, str) else _json(given)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()
