"""Reads `tool_choice`: a word, a tool that the client runs, or the tools that the model may call."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from adapters.openai_responses.call_items import FORMS
from adapters.openai_responses.function_names import ClientTool, ToolKind
from adapters.openai_responses.table import CHOICES
from adapters.openai_responses.tools import Tools
from gateway.core.conversation import Json, JsonObject, NamedTool, ToolChoice
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import kind_of
from gateway.dialects.field_types import missing_field

_PLACE: Final = "tool_choice"
_KINDS: Final[Mapping[str, ToolKind]] = {kind: kind for kind in FORMS}


class Choice(NamedTuple):
    """The choice among the functions, and the tools that it allows; None: all of them. `own`: only a backend of the
    same API knows what it says."""

    choice: ToolChoice
    allowed: frozenset[ClientTool] | None = None
    own: bool = False


_OWN: Final = Choice("auto", own=True)


def read_tool_choice(value: str | JsonObject | None, tools: Tools) -> Choice:
    """Returns the choice: one of `_OWN` for a new word, and where it forces a tool which OpenAI itself runs. Raises
    InvalidRequest for a value of another shape."""
    if value is None:
        return Choice("auto")
    if isinstance(value, str):
        return _word(value)
    kind = value.get("type")
    if not isinstance(kind, str):
        param = f"{_PLACE}.type"
        raise missing_field(param) if kind is None else _wrong(param, "text", kind)
    if kind == "allowed_tools":
        return _allowed(value, tools)
    tool = _named(value, tools)
    return _OWN if tool is None else Choice(NamedTool(tools.names.name(tool)))


def _word(value: str) -> Choice:
    known = CHOICES.values.get(value)
    return _OWN if known is None else Choice(known)


def _allowed(value: JsonObject, tools: Tools) -> Choice:
    listed, mode = value.get("tools"), value.get("mode", "auto")
    if not isinstance(listed, list):
        raise _wrong(f"{_PLACE}.tools", "an array", listed)
    if not isinstance(mode, str):
        raise _wrong(f"{_PLACE}.mode", "text", mode)
    word = _word(mode)
    allowed = frozenset(_listed(listed, tools))
    if word.own or (word.choice == "required" and listed and not allowed):
        return _OWN
    return Choice(word.choice, allowed)


def _listed(listed: Iterable[Json], tools: Tools) -> Iterable[ClientTool]:
    spaces: dict[str | None, list[ClientTool]] = defaultdict(list)
    for tool in tools.offered:
        spaces[tool.namespace].append(tool)
    for position, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise _wrong(f"{_PLACE}.tools[{position}]", "an object", entry)
        if entry.get("type") == "namespace":
            name = entry.get("name")
            yield from spaces[name] if isinstance(name, str) else ()
        elif (named := _named(entry, tools)) is not None:
            yield named


def _named(entry: JsonObject, tools: Tools) -> ClientTool | None:
    """Returns the tool of the client that an entry names, None for a tool of another type."""
    said = entry.get("type")
    kind = _KINDS.get(said) if isinstance(said, str) else None
    if kind is None:
        return None
    if kind not in ("function", "custom"):
        tool = ClientTool(kind, kind)
        return tool if tool in tools.offered else None
    name, namespace = entry.get("name"), entry.get("namespace")
    if not isinstance(name, str):
        param = f"{_PLACE}.name"
        raise missing_field(param) if name is None else _wrong(param, "text", name)
    return ClientTool(kind, name, namespace if isinstance(namespace, str) else None)


def _wrong(param: str, wanted: str, found: Json) -> InvalidRequest:
    return InvalidRequest(f"{param} must be {wanted}; it is {kind_of(found)}.", code="invalid_type", param=param)
