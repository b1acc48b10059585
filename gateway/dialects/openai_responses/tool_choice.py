"""Reads `tool_choice`: a word, a tool that the client runs, or the tools that the model may call."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from gateway.core.conversation import Json, JsonObject, NamedTool, ToolChoice
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.dialects.document import kind_of
from gateway.dialects.field_types import missing_field
from gateway.dialects.openai_responses.call_items import FORMS
from gateway.dialects.openai_responses.function_names import ClientTool, ToolKind
from gateway.dialects.openai_responses.request_models import TOOL_CHOICES
from gateway.dialects.openai_responses.tools import Tools

_PLACE: Final = "tool_choice"
_KINDS: Final[Mapping[str, ToolKind]] = {kind: kind for kind in FORMS}


class Choice(NamedTuple):
    """The choice among the functions, and the tools that it allows; None: all of them."""

    choice: ToolChoice
    allowed: frozenset[ClientTool] | None = None


def read_tool_choice(value: str | JsonObject | None, tools: Tools) -> Choice:
    """Returns the choice. Raises InvalidRequest for an unknown word, and Unsupported for a choice that forces a tool
    which OpenAI itself runs."""
    if value is None:
        return Choice("auto")
    if isinstance(value, str):
        return Choice(_word(value, _PLACE))
    kind = value.get("type")
    if not isinstance(kind, str):
        param = f"{_PLACE}.type"
        raise missing_field(param) if kind is None else _wrong(param, "text", kind)
    if kind == "allowed_tools":
        return _allowed(value, tools)
    tool = _named(value, tools)
    if tool is None:
        raise _hosted(kind)
    return Choice(NamedTool(tools.names.name(tool)))


def _word(value: str, place: str) -> ToolChoice:
    known = TOOL_CHOICES.get(value)
    if known is None:
        words = ", ".join(TOOL_CHOICES)
        raise InvalidRequest(f"{place} must be one of {words} or name a tool; it is {value[:40]!r}.", param=place)
    return known


def _allowed(value: JsonObject, tools: Tools) -> Choice:
    listed, mode = value.get("tools"), value.get("mode", "auto")
    if not isinstance(listed, list):
        raise _wrong(f"{_PLACE}.tools", "an array", listed)
    if not isinstance(mode, str):
        raise _wrong(f"{_PLACE}.mode", "text", mode)
    choice = _word(mode, f"{_PLACE}.mode")
    allowed = frozenset(_listed(listed, tools))
    if choice == "required" and listed and not allowed:
        raise _hosted("allowed_tools")
    return Choice(choice, allowed)


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


def _hosted(kind: str) -> Unsupported:
    message = f"{_PLACE} is not supported: it forces a tool of type {kind[:40]!r}, which only OpenAI itself runs."
    return Unsupported(message, param=_PLACE)


def _wrong(param: str, wanted: str, found: Json) -> InvalidRequest:
    return InvalidRequest(f"{param} must be {wanted}; it is {kind_of(found)}.", code="invalid_type", param=param)
