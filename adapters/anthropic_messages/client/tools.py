"""Reads the tools that a request offers and its tool choice as ToolSpecs and a ToolChoice."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from adapters.anthropic_messages.client.client_tools import ClientTool, client_tool
from adapters.anthropic_messages.table import CHOICES, MessagesTool, MessagesToolChoice
from gateway.core.conversation import (
    EMPTY,
    DeferredTools,
    Json,
    JsonObject,
    NamedTool,
    OtherTool,
    ToolChoice,
    ToolSpec,
)
from gateway.dialects.faults import Faults
from gateway.dialects.field_types import missing_field

_FIELDS: Final = frozenset({"name", "type", "description", "input_schema", "strict"})
# The types of the tools with which Anthropic's servers search, each with a date behind it.
_SEARCHES: Final = ("tool_search_tool_regex", "tool_search_tool_bm25")
# Blocks whose content may hold references: the result of the client's own search, and that of Anthropic's.
_RESULTS: Final = ("tool_result", "tool_search_tool_result")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,128}")
# Claude Code sends it only so that Anthropic's servers keep to loading tools later; no model may call it. (Claude Code
# 2.1.330: its description says so, and `defer_loading` is true.)
PLACEHOLDER: Final = "DeferredToolPlaceholder"


def read_tools(
    tools: Sequence[MessagesTool], sources: Json, faults: Faults
) -> tuple[tuple[ToolSpec, ...], tuple[OtherTool, ...]]:
    """Returns the functions that the client runs, and the other tools: those that only Anthropic's servers know.

    `sources` are the tools as the client wrote them. Fault: TOOLS_NAME. Raises InvalidRequest for a function without a
    name.
    """
    assert isinstance(sources, list)  # msgspec has read it as one
    specs: list[ToolSpec] = []
    others: list[OtherTool] = []
    for position, (tool, source) in enumerate(zip(tools, sources, strict=True)):
        read = read_tool(tool, source, f"tools[{position}]", faults)
        if isinstance(read, OtherTool):
            others.append(read)
        else:
            specs.append(read)
    return tuple(specs), tuple(others)


def read_tool(tool: MessagesTool, source: Json, place: str, faults: Faults) -> ToolSpec | OtherTool:
    """Returns the entry at this place. Faults and errors are those of `read_tools`."""
    kind = tool.type or "custom"
    known = _CUSTOM if kind == "custom" else client_tool(kind)
    if known is None:
        return OtherTool(kind)
    if tool.name == PLACEHOLDER and _is_deferred(source):
        return OtherTool(PLACEHOLDER)
    if tool.name is None:
        raise missing_field(f"{place}.name")
    if not _NAME.fullmatch(tool.name):
        faults.add("TOOLS_NAME", -1, f"{place}.name")
    return _spec(tool.name, tool, known, source)


def read_tool_choice(choice: MessagesToolChoice | None) -> ToolChoice:
    """Returns the choice; `auto` for one of a type that only a backend of the same API may know. Raises InvalidRequest
    for a forced tool without a name."""
    if choice is None:
        return "auto"
    if choice.type != "tool":
        return CHOICES.values.get(choice.type, "auto")
    if not choice.name:
        raise missing_field("tool_choice.name")
    return NamedTool(choice.name)


def read_deferred(
    specs: Sequence[ToolSpec], others: Sequence[OtherTool], messages: Sequence[Json]
) -> DeferredTools | None:
    """Returns the functions with `defer_loading`, and those of them that a `tool_reference` in a result names; None
    without any.

    Source: Anthropic, "Tool search tool": a deferred tool is loaded when a `tool_reference` names it, which the search
    of its servers returns, or a `tool_result` of the client.
    """
    names = frozenset([spec.name for spec in specs if spec.extra.get("defer_loading") is True])
    if not names:
        return None
    searches = frozenset([tool.kind for tool in others if tool.kind.startswith(_SEARCHES)])
    loaded = [(index, name) for index, message in enumerate(messages) for name in _references(message) if name in names]
    return DeferredTools(names, tuple(loaded), searches)


def _references(message: Json) -> Iterator[str]:
    """Yields the names in the references of a message."""
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else ():
        if not isinstance(block, dict) or block.get("type") not in _RESULTS:
            continue
        held = block.get("content")
        found = held.get("tool_references") if isinstance(held, dict) else held
        for one in found if isinstance(found, list) else ():
            if isinstance(one, dict) and one.get("type") == "tool_reference" and isinstance(one.get("tool_name"), str):
                yield str(one["tool_name"])


_CUSTOM: Final = ClientTool("", EMPTY)


def _spec(name: str, tool: MessagesTool, known: ClientTool, source: Json) -> ToolSpec:
    return ToolSpec(
        name,
        tool.description or known.description,
        tool.input_schema or known.parameters,
        strict=tool.strict,
        extra=_rest(source) if isinstance(source, dict) else EMPTY,
    )


def _is_deferred(source: Json) -> bool:
    return isinstance(source, dict) and source.get("defer_loading") is True


def _rest(source: JsonObject) -> JsonObject:
    if source.keys() <= _FIELDS:
        return EMPTY
    return {name: value for name, value in source.items() if name not in _FIELDS and value is not None} or EMPTY
