"""Builds arguments that satisfy a tool's schema and contain the values of the phrase that asks for the call."""

import posixpath
import re
from collections.abc import Callable
from typing import Final

from gateway.core.conversation import Json, JsonObject
from gateway.demo.scripted_model.phrase_values import Findings, find_values, number
from gateway.demo.scripted_model.schemas import plain_schema, properties_of, required_of
from gateway.demo.scripted_model.tool_choice import name_parts, object_of

_DEEP: Final = 6
# Required parameters may refer to each other without end, and a list may ask for any number of elements.
_DEEPEST: Final = 32
_MOST_VALUES: Final = 256

# Maps the names of a text parameter to the place of its value in the phrase, and to a default value.
_SOURCES: Final[tuple[tuple[frozenset[str], Callable[[Findings], tuple[str, ...]], str], ...]] = (
    (frozenset({"url", "uri", "link", "href"}), lambda found: found.links, "https://example.com/"),
    (frozenset({"email", "mail", "recipient"}), lambda found: found.emails, "someone@example.com"),
    (frozenset({"date", "day", "datetime"}), lambda found: found.dates, "2026-01-31"),
    (frozenset({"directory", "dir", "dirpath", "folder", "cwd", "workdir"}), lambda found: found.paths, "."),
    (frozenset({"path", "file", "filename", "filepath"}), lambda found: found.paths, "README.md"),
    (frozenset({"expression", "formula"}), lambda found: found.expressions, "1 + 1"),
    # Only quoted text that the phrase asks to run becomes a command, because a command made of a question's words could
    # do anything.
    (frozenset({"command", "cmd", "script", "code"}), lambda found: found.commands, "ls"),
    (frozenset({"query", "question", "prompt", "text", "message", "content", "input", "description", "task"}),
     lambda found: found.quoted or (found.phrase,), "hello"),
)  # fmt: skip
# Text parameters that take a name from the phrase, or else the remaining words, with a default value.
_NAMED: Final = {name: "Rome" for name in ("city", "location", "place", "town", "country", "region", "destination")} | {
    name: "*" for name in ("pattern", "regex", "glob")
}
_FORMATS: Final = {"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z",
                   "uuid": "00000000-0000-4000-8000-000000000000", "uri": "https://example.com/",
                   "email": "someone@example.com", "ipv4": "127.0.0.1"}  # fmt: skip


class _Builder:
    """Fills one schema from one phrase; every number and name is used once."""

    def __init__(self, root: JsonObject, phrase: str, step: int, named: frozenset[str]) -> None:
        self._root = root
        self._step = step
        self._named = named
        self._left = _MOST_VALUES
        self._found = find_values(phrase, named)
        self._numbers = list(self._found.numbers)
        self._texts = list(self._found.quoted or self._found.names)

    def value(self, name: str, raw: Json, depth: int = 0) -> Json:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            return None
        schema = plain_schema(raw, self._root)
        if "const" in schema:
            return schema["const"]
        if isinstance(choices := schema.get("enum"), list) and choices:
            return self._choice(choices)
        match schema.get("type"):
            case "object":
                return self.object(schema, depth)
            case "array":
                return self._array(name, schema, depth)
            case "integer" | "number" as kind:
                return self._number(name, schema, whole=kind == "integer")
            case "boolean":
                return not re.search(
                    rf"\b(?:no|not|without|disable|off)\b[^.]*{re.escape(name)}", self._found.phrase, re.I
                )
            case "null":
                return None
            case "string":
                return self._text(name, schema)
            case _:
                return self.object(schema, depth) if "properties" in schema else self._text(name, schema)

    def object(self, schema: JsonObject, depth: int = 0) -> dict[str, Json]:
        required, properties = required_of(schema), properties_of(schema)
        if not depth and not required and len(properties) == 1:
            # n8n marks no parameter of its tools as required; a tool does nothing without its only text.
            required = [
                name for name, raw in properties.items() if plain_schema(raw, self._root).get("type") == "string"
            ]
        # The required ones come first, in their own order, because a wire may have lost the order of the properties.
        names = dict.fromkeys([name for name in required if name in properties] + list(properties))
        return {
            name: self.value(name, properties[name], depth + 1)
            for name in names
            if name in required or (depth < _DEEP and self._wanted(name, properties[name]))
        }

    def _wanted(self, name: str, raw: Json) -> bool:
        """Returns whether the phrase mentions an optional parameter. A repeated call increments one, so that the calls
        differ."""
        schema = plain_schema(raw, self._root)
        if self._step > 1 and schema.get("type") == "integer":
            return True
        choices = schema.get("enum")
        if isinstance(choices, list):
            return any(isinstance(choice, str) and _has_word(self._found.phrase, choice) for choice in choices)
        # `run the command` does not say `run_in_background`: a switch is set only where all of its name is said.
        meant = all if schema.get("type") == "boolean" else any
        return meant(_has_word(self._found.phrase, part) for part in name_parts(name) if len(part) > 2)

    def _choice(self, choices: list[Json]) -> Json:
        named = (choice for choice in choices if isinstance(choice, str) and _has_word(self._found.phrase, choice))
        return next(named, choices[0])

    def _number(self, name: str, schema: JsonObject, *, whole: bool) -> Json:
        value = self._named_number(name)
        if value is None and self._numbers:
            value = self._numbers.pop(0)
        if value is None:
            default = schema.get("default")
            value = float(default) if isinstance(default, int | float) and self._step == 1 else float(self._step)
        value = _within(value, schema, whole=whole)
        return int(value) if value.is_integer() else value

    def _named_number(self, name: str) -> float | None:
        """Returns the number beside the parameter's name: `3 days`, `days: 3`."""
        for part in name_parts(name):
            stem = re.escape(part.removesuffix("s"))
            beside = re.search(
                rf"(-?\d+(?:\.\d+)?|\b[a-z]+)[\s-]+{stem}s?\b|\b{stem}s?\s*(?:=|:|is|of|to)?\s*(-?\d+(?:\.\d+)?)",
                self._found.phrase,
                re.I,
            )
            found = (beside.group(1) or beside.group(2)) if beside else None
            if found is not None and find_values(found).numbers and (value := number(found)) in self._numbers:
                self._numbers.remove(value)
                return value
        return None

    def _text(self, name: str, schema: JsonObject) -> str:
        if values := self._sourced(name, schema):
            return _fitting(values[0], schema)
        fallback = _fallback(schema)
        kinds = _kinds(name, schema)
        named = next((other for kind, other in _NAMED.items() if kind in kinds), None)
        if self._texts and not fallback:
            places = (at for at, text in enumerate(self._texts) if named is not None and text in self._found.places)
            return _fitting(self._texts.pop(next(places, 0)), schema)
        if named is not None:
            return _fitting(fallback or object_of(self._found.phrase, self._named) or named, schema)
        return _fitting(fallback or self._found.phrase or name, schema)

    def _sourced(self, name: str, schema: JsonObject) -> tuple[str, ...]:
        """Returns the values in the phrase for a parameter of a known kind, or its default; empty for other
        parameters."""
        kinds = _kinds(name, schema)
        for names, source, other in _SOURCES:
            if kinds & names:
                return source(self._found) or (_fallback(schema) or other,)
        return ()

    def _array(self, name: str, schema: JsonObject, depth: int) -> list[Json]:
        items = schema.get("items", {"type": "string"})
        plain = plain_schema(items, self._root)
        kind = plain.get("type")
        least = schema.get("minItems")
        values = self._sourced(name, plain) if kind == "string" and not plain.keys() & {"enum", "const"} else ()
        texts = len(values or self._texts)
        many = {"string": texts, "integer": len(self._numbers), "number": len(self._numbers)}
        count = max(many.get(str(kind), 1), 1, least if isinstance(least, int) else 0)
        if isinstance(most := schema.get("maxItems"), int):
            count = min(count, most)
        count = min(count, _MOST_VALUES)
        if values:
            return [_fitting(values[min(at, len(values) - 1)], plain) for at in range(count)]
        return [self.value(name, items, depth + 1) for _ in range(count if depth < _DEEP else 0)]


def build_arguments(
    parameters: JsonObject, phrase: str, step: int = 1, named: frozenset[str] = frozenset()
) -> dict[str, Json]:
    """Builds deterministic arguments: every required parameter, and the optional ones that the phrase mentions. For the
    `step`th call of the same phrase, values are incremented where possible. The words in `named` refer to the tool and
    become no values."""
    builder = _Builder(parameters, phrase, step, named)
    return builder.object(plain_schema(dict(parameters), parameters))


def absolute_paths(arguments: JsonObject, parameters: JsonObject, folder: str) -> JsonObject:
    """Returns the arguments with each path that must be absolute, according to its parameter's description, below the
    folder."""
    return {name: _below(folder, value, properties_of(parameters).get(name)) for name, value in arguments.items()}


def _below(folder: str, value: Json, raw: Json) -> Json:
    about = raw.get("description") if isinstance(raw, dict) else None
    must = folder and isinstance(about, str) and re.search(r"\babsolute\b", about, re.I)
    return posixpath.normpath(posixpath.join(folder, value)) if must and isinstance(value, str) else value


def build_value(schema: JsonObject, phrase: str) -> Json:
    """Builds a value of any schema, for a response that must have one."""
    return _Builder(schema, phrase, 1, frozenset()).value("answer", dict(schema))


def _within(value: float, schema: JsonObject, *, whole: bool) -> float:
    step = 1.0 if whole else 0.001
    bounds = (
        ("minimum", max, 0.0),
        ("exclusiveMinimum", max, step),
        ("maximum", min, 0.0),
        ("exclusiveMaximum", min, -step),
    )
    value = float(int(value)) if whole else value
    for key, pick, offset in bounds:
        if isinstance(limit := schema.get(key), int | float) and not isinstance(limit, bool):
            value = pick(value, limit + offset)
    return value


def _fitting(text: str, schema: JsonObject) -> str:
    longest, least = schema.get("maxLength"), schema.get("minLength")
    text = text[:longest] if isinstance(longest, int) else text
    return text.ljust(least, ".") if isinstance(least, int) else text


def _kinds(name: str, schema: JsonObject) -> frozenset[str]:
    """Returns the kinds that a parameter may have by its name, in the singular, and by its format."""
    parts = name_parts(name)
    return frozenset((*parts, *(part.removesuffix("s") for part in parts), str(schema.get("format"))))


def _fallback(schema: JsonObject) -> str:
    return _FORMATS.get(str(schema.get("format"))) or str(schema.get("default") or "")


def _has_word(phrase: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", phrase, re.I) is not None
