"""Reads the tools that a request offers as functions: those of `tools`, and those that stand inside its items.

A tool that the client runs is always sent, as a function if it is none. A tool that OpenAI itself runs (`web_search`,
`mcp`, ...) is an OtherTool.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from adapters.openai_responses import DIALECT
from adapters.openai_responses.built_in_tools import BUILT_IN
from adapters.openai_responses.function_names import ClientTool, ToolKind, ToolNames
from adapters.openai_responses.turn_items import ITEMS
from gateway.core.conversation import EMPTY, Conversation, DeferredTools, Json, JsonObject, OtherTool, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Level, Notice
from gateway.dialects.custom_input import Grammar, custom_spec
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import read_fields
from gateway.dialects.offered_functions import check_tools

# Items that bring further tools.
_TOOL_ITEMS: Final = frozenset({"additional_tools", "tool_search_output"})

# The path of a tool that a search has found. (The index is below 0 for an item that was stored.)
_OUTPUT_PLACE: Final = re.compile(rf"{ITEMS}\[(-?\d+)\]\.tools\[")

# Any: msgspec cannot read the recursive Json type.
_Free = dict[str, Any]


class FunctionTool(msgspec.Struct, frozen=True):
    """A function; `parameters` is its JSON Schema."""

    name: str
    description: str | None = None
    parameters: _Free | None = None
    strict: bool | None = None


class CustomFormat(msgspec.Struct, frozen=True):
    """The form of a custom tool's input: free text, or a grammar in the syntax `lark` or `regex`."""

    type: str = "text"
    syntax: str | None = None
    definition: str | None = None


class CustomTool(msgspec.Struct, frozen=True):
    """A tool whose input is free text."""

    name: str
    description: str | None = None
    format: CustomFormat | None = None


class NamespaceTool(msgspec.Struct, frozen=True):
    """Functions and custom tools under a common name."""

    name: str
    description: str | None = None
    tools: list[_Free] = []


class ToolSearch(msgspec.Struct, frozen=True):
    """The tool that finds further tools, run by the `client` or by OpenAI's `server`."""

    execution: str | None = None
    description: str | None = None
    parameters: _Free | None = None


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool of the client, and the function that it is sent as, which has no name of its own yet."""

    tool: ClientTool
    spec: ToolSpec
    place: str


class Tools(msgspec.Struct):
    """The tools of one request. `others` are run by OpenAI; `names` holds the names of the functions. `extended`:
    items brought some, or one has a field of its own, such as `defer_loading`."""

    offered: dict[ClientTool, OfferedTool] = {}
    others: list[OtherTool] = []
    names: ToolNames = msgspec.field(default_factory=ToolNames)
    notices: list[Notice] = []
    extended: bool = False

    def specs(self, allowed: frozenset[ClientTool] | None, faults: Faults) -> tuple[ToolSpec, ...]:
        """Returns the functions to send, of which `allowed` may leave some out. Faults: TOOLS_COUNT, TOOLS_NAME."""
        named = [
            msgspec.structs.replace(offered, spec=msgspec.structs.replace(offered.spec, name=self.names.name(tool)))
            for tool, offered in self.offered.items()
        ]
        check_tools([offered.spec for offered in named], [f"{offered.place}.name" for offered in named], faults)
        return tuple([offered.spec for offered in named if allowed is None or offered.tool in allowed])


def read_tools(places: Iterable[tuple[str, Json]]) -> Tools:
    """Returns the tools of the arrays at these places of the request, null for none.

    A tool that is offered again replaces the first one: what a search found may be found again. Raises InvalidRequest
    for a value that is no array, and for a tool of a known type with a wrong field.
    """
    tools = Tools()
    for place, listed in places:
        if listed is None:
            continue
        tools.extended = tools.extended or place != "tools"
        if not isinstance(listed, list):
            raise InvalidRequest(
                f"{place} must be an array; it is {kind_of(listed)}.", code="invalid_type", param=place
            )
        for position, entry in enumerate(listed):
            _read_tool(tools, entry, f"{place}[{position}]")
    tools.names.add(tools.offered)
    return tools


def _read_tool(tools: Tools, entry: Json, place: str) -> None:
    if not isinstance(entry, dict):
        raise InvalidRequest(f"{place} must be an object; it is {kind_of(entry)}.", code="invalid_type", param=place)
    kind = entry.get("type", "function")
    if not isinstance(kind, str):
        param = f"{place}.type"
        raise InvalidRequest(f"{param} must be text; it is {kind_of(kind)}.", code="invalid_type", param=param)
    reader = _READERS.get(kind)
    if reader is None:
        tools.others.append(OtherTool(kind))
    else:
        reader(tools, entry, place)


def _offer(tools: Tools, tool: ClientTool, spec: ToolSpec, place: str) -> None:
    known = tools.offered.get(tool)
    if known is not None and (known.spec != spec or place.startswith("tools[")):
        tools.notices.append(_repeated(tool, known.place, place, same=known.spec == spec))
    tools.offered[tool] = OfferedTool(tool, spec, place)
    tools.extended = tools.extended or spec.extra is not EMPTY


def _function(tools: Tools, entry: _Free, place: str, namespace: str | None = None) -> None:
    read = read_fields(entry, FunctionTool, place)
    spec = ToolSpec(
        "", read.description or "", read.parameters or EMPTY, strict=read.strict, extra=_rest(entry, FunctionTool)
    )
    _offer(tools, ClientTool("function", read.name, namespace), spec, place)


def _custom(tools: Tools, entry: _Free, place: str, namespace: str | None = None) -> None:
    read = read_fields(entry, CustomTool, place)
    spec = custom_spec("", read.description, _grammar(read.format), _rest(entry, CustomTool))
    _offer(tools, ClientTool("custom", read.name, namespace), spec, place)
    if namespace is None:
        tools.notices.append(_as_function(place, "custom", "a function"))


def _grammar(form: CustomFormat | None) -> Grammar | None:
    return None if form is None or form.definition is None else Grammar(form.syntax or form.type, form.definition)


def _namespace(tools: Tools, entry: _Free, place: str) -> None:
    read = read_fields(entry, NamespaceTool, place)
    for position, inner in enumerate(read.tools):
        reader = _custom if inner.get("type") == "custom" else _function
        reader(tools, inner, f"{place}.tools[{position}]", read.name)
    tools.notices.append(_as_function(place, "namespace", "functions"))
    if read.description:
        tools.notices.append(field_not_sent(f"{place}.description", "description"))


def _tool_search(tools: Tools, entry: _Free, place: str) -> None:
    read = read_fields(entry, ToolSearch, place)
    if read.execution != "client":
        tools.others.append(OtherTool("tool_search"))
        return
    spec = ToolSpec("", read.description or "", read.parameters or EMPTY, extra=_rest(entry, ToolSearch))
    _offer(tools, ClientTool("tool_search", "tool_search"), spec, place)
    tools.notices.append(_as_function(place, "tool_search", "a function"))


def _built_in(kind: ToolKind) -> Callable[[Tools, _Free, str], None]:
    def read(tools: Tools, entry: _Free, place: str) -> None:
        environment = entry.get("environment")
        if isinstance(environment, dict) and environment.get("type") != "local":
            # A shell in a container runs at OpenAI.
            tools.others.append(OtherTool(kind))
            tools.names.hosted.add(kind)
            return
        _offer(tools, ClientTool(kind, kind), BUILT_IN[kind], place)
        tools.notices.append(_as_function(place, kind, "a function"))

    return read


_READERS: Final[Mapping[str, Callable[[Tools, _Free, str], None]]] = {
    "function": _function,
    "custom": _custom,
    "namespace": _namespace,
    "tool_search": _tool_search,
    **{kind: _built_in(kind) for kind in BUILT_IN},
}


def _rest(entry: Mapping[str, Json], kind: type[msgspec.Struct]) -> JsonObject:
    """Returns the fields of a tool that its function has no place for."""
    read = {"type", *kind.__struct_fields__}
    return {name: value for name, value in entry.items() if name not in read and value is not None} or EMPTY


def _repeated(tool: ClientTool, earlier: str, place: str, *, same: bool) -> Notice:
    level: Level = "info" if same else "warning"
    differs = "" if same else ", which is another one,"
    detail = f"{tool.name[:64]!r} stands at {earlier[:80]} and at {place[:80]}: only the last one{differs} is sent"
    return Notice("decode", "dropped", "TOOL_REPEATED", detail, level=level)


def _as_function(place: str, kind: str, what: str) -> Notice:
    return Notice(
        "decode", "changed", "TOOL_AS_FUNCTION", f"{place} of type {kind} is offered as {what}", level="debug"
    )


def field_not_sent(place: str, lost: str | None = None) -> Notice:
    """Returns the notice about a field that only OpenAI's own backend has; `lost` is the field whose meaning is."""
    fields = UNSET if lost is None else (lost,)
    detail = f"no other API has a field for {place[:80]!r}"
    return Notice("decode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=fields)


def read_deferred(tools: Tools) -> DeferredTools | None:
    """Returns the functions that wait for a search, and those that the items have brought, which no longer do; None
    without any, and without a tool that searches: nothing could ever load them.

    Source: OpenAI, "Tool search": `defer_loading` is for requests with the tool `tool_search`; a `tool_search_output`
    loads the tools that it holds.
    """
    hosted = frozenset([tool.kind for tool in tools.others if tool.kind == "tool_search"])
    if not hosted and ClientTool("tool_search", "tool_search") not in tools.offered:
        return None
    names: list[str] = []
    loaded: list[tuple[int, str]] = []
    for tool, offered in tools.offered.items():
        name = tools.names.name(tool)
        position = _OUTPUT_PLACE.match(offered.place)
        if position is not None:
            names.append(name)
            loaded.append((int(position[1]), name))
        elif offered.spec.extra.get("defer_loading") is True:
            names.append(name)
    loaded.sort(key=lambda one: one[0])
    return DeferredTools(frozenset(names), tuple(loaded), hosted) if names else None


def tool_names(conversation: Conversation) -> ToolNames:
    """Returns the names of the tools that a request of this dialect offers, by what its sources hold."""
    source = None if conversation.source is None else conversation.source.in_dialect(DIALECT)
    if source is None:
        return ToolNames()
    sources = [turn.source.in_dialect(DIALECT) for turn in conversation.turns if turn.source is not None]
    items = [item for value in sources if value is not None for item in _items(value)]
    return read_tools(tool_places(source.get("tools"), items, 0)).names


def _items(source: JsonObject) -> list[Json]:
    items = source.get(ITEMS)
    return items if isinstance(items, list) else []


def tool_places(tools: Json, items: Sequence[Json], earlier: int) -> Iterator[tuple[str, Json]]:
    """Yields the arrays of tools in a request, by their paths."""
    yield "tools", tools
    for position, item in enumerate(items):
        if isinstance(item, dict) and (kind := item.get("type")) and isinstance(kind, str) and kind in _TOOL_ITEMS:
            yield f"{ITEMS}[{position - earlier}].tools", item.get("tools")
