"""A tool's schema and the phrase that asks for it in, arguments that satisfy the one and say the other out."""

import re
from collections.abc import Callable
from typing import Final

from gateway.demo.findings import Findings, find_values, number
from gateway.demo.schemas import plain_schema, properties_of, required_of
from gateway.types import Json, JsonObject

_DEEP: Final = 6
_NAME_PARTS: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# What a text parameter is called -> where in the phrase its value stands, and what to say when it stands nowhere.
_SOURCES: Final[tuple[tuple[frozenset[str], Callable[[Findings], tuple[str, ...]], str], ...]] = (
    (frozenset({"url", "uri", "link", "href"}), lambda found: found.links, "https://example.com/"),
    (frozenset({"email", "mail", "recipient"}), lambda found: found.emails, "someone@example.com"),
    (frozenset({"date", "day", "datetime"}), lambda found: found.dates, "2026-01-31"),
    (frozenset({"path", "file", "filename", "filepath", "directory", "dir"}), lambda found: found.paths, "README.md"),
    (frozenset({"expression", "formula"}), lambda found: found.expressions, "1 + 1"),
    # Only what stands in quotes is ever run: a command made of a question's words could do anything.
    (frozenset({"command", "cmd", "script", "code"}), lambda found: found.quoted, "ls"),
    (frozenset({"query", "question", "prompt", "text", "message", "content", "input", "description", "task"}),
     lambda found: found.quoted or (found.phrase,), "hello"),
)  # fmt: skip
_FORMATS: Final = {"date": "2026-01-31", "date-time": "2026-01-31T12:00:00Z", "time": "12:00:00Z",
                   "uuid": "00000000-0000-4000-8000-000000000000", "uri": "https://example.com/",
                   "email": "someone@example.com", "ipv4": "127.0.0.1"}  # fmt: skip


class _Builder:
    """Fills one schema from one phrase; every number and name is spent once."""

    def __init__(self, root: JsonObject, phrase: str, step: int) -> None:
        self._root = root
        self._step = step
        self._found = find_values(phrase)
        self._numbers = list(self._found.numbers)
        self._texts = list(self._found.quoted or self._found.names)

    def value(self, name: str, raw: Json, depth: int = 0) -> Json:
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
        # The required ones come first, in their own order: a wire may have lost the order of the properties.
        names = dict.fromkeys([name for name in required if name in properties] + list(properties))
        return {
            name: self.value(name, properties[name], depth + 1)
            for name in names
            if name in required or (depth < _DEEP and self._wanted(name, properties[name]))
        }

    def _wanted(self, name: str, raw: Json) -> bool:
        """Whether the phrase speaks of an optional parameter; a repeated call counts on in one, so as to differ."""
        schema = plain_schema(raw, self._root)
        if self._step > 1 and schema.get("type") == "integer":
            return True
        choices = schema.get("enum")
        if isinstance(choices, list):
            return any(isinstance(choice, str) and _says(self._found.phrase, choice) for choice in choices)
        return any(_says(self._found.phrase, part) for part in _parts(name) if len(part) > 2)

    def _choice(self, choices: list[Json]) -> Json:
        said = (choice for choice in choices if isinstance(choice, str) and _says(self._found.phrase, choice))
        return next(said, choices[0])

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
        """The number beside the parameter's name: `3 days`, `days: 3`."""
        for part in _parts(name):
            stem = re.escape(part.removesuffix("s"))
            beside = re.search(
                rf"(-?\d+(?:\.\d+)?|\b[a-z]+)[\s-]+{stem}s?\b|\b{stem}s?\s*(?:=|:|is|of|to)?\s*(-?\d+(?:\.\d+)?)",
                self._found.phrase,
                re.I,
            )
            said = (beside.group(1) or beside.group(2)) if beside else None
            if said is not None and find_values(said).numbers and (value := number(said)) in self._numbers:
                self._numbers.remove(value)
                return value
        return None

    def _text(self, name: str, schema: JsonObject) -> str:
        shape = schema.get("format")
        kinds = {*_parts(name), shape} if isinstance(shape, str) else set(_parts(name))
        fallback = _FORMATS.get(str(shape)) or str(schema.get("default") or "")
        for names, source, other in _SOURCES:
            if kinds & names:
                return _fitting(next(iter(source(self._found)), fallback or other), schema)
        if self._texts and not fallback:
            return _fitting(self._texts.pop(0), schema)
        return _fitting(fallback or self._found.phrase or name, schema)

    def _array(self, name: str, schema: JsonObject, depth: int) -> list[Json]:
        items = schema.get("items", {"type": "string"})
        kind = plain_schema(items, self._root).get("type")
        least = schema.get("minItems")
        many = {"string": len(self._texts), "integer": len(self._numbers), "number": len(self._numbers)}
        count = max(many.get(str(kind), 1), 1, least if isinstance(least, int) else 0)
        if isinstance(most := schema.get("maxItems"), int):
            count = min(count, most)
        return [self.value(name, items, depth + 1) for _ in range(count if depth < _DEEP else 0)]


def build_arguments(parameters: JsonObject, phrase: str, step: int = 1) -> dict[str, Json]:
    """Deterministic arguments: everything required, and what else the phrase speaks of. The same phrase followed
    for the `step`th time counts on where it can."""
    builder = _Builder(parameters, phrase, step)
    return builder.object(plain_schema(dict(parameters), parameters))


def build_value(schema: JsonObject, phrase: str) -> Json:
    """A value of any schema, for answers that must have one."""
    return _Builder(schema, phrase, 1).value("answer", dict(schema))


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


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _NAME_PARTS.findall(_CAMEL.sub(" ", name))]


def _says(phrase: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", phrase, re.I) is not None
