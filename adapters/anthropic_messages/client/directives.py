"""Reads what messages of the role system change for the answers after them: the tools, the effort, and how long their
own text is shown.

Sources: `BetaSystemMessageParam` of Anthropic's SDK 2.14 and the types that it names; Anthropic, "Mid-conversation
system messages" and "Per-message effort", from which the refusals are. Where a directive may stand is left to a backend
of the same API. No live service was asked: that a removal of what is not offered, and an addition of what is, change
nothing, is what the SDK's own runner of tools makes of them.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.content import TOOL_ADDITION, ContentReader, ToolChange
from adapters.anthropic_messages.client.paths import PATHS
from adapters.anthropic_messages.client.tools import read_tool
from adapters.anthropic_messages.table import EFFORTS, MessagesTool
from gateway.core.conversation import (
    Directive,
    EffortChange,
    Json,
    JsonObject,
    OtherTool,
    ToolAddition,
    ToolRemoval,
    ToolSpec,
    TurnScope,
)
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import kind_of
from gateway.dialects.field_types import missing_field, read_fields

_EFFORT: Final = "effort"
_SCOPES: Final = (None, "never", "next_user_message")
_REFERENCE: Final = "tool_reference"
_DEFINITION: Final = "tool_definition"


class Directives(msgspec.Struct, frozen=True):
    """The directives of a request in the order of its messages, the functions that it declares anywhere, and the paths
    of words that only a backend of the same API knows."""

    found: tuple[Directive, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    own_fields: tuple[str, ...] = ()


NO_DIRECTIVES: Final = Directives()


class _OutputConfig(msgspec.Struct, frozen=True):
    """`output_config` of a message."""

    effort: str | None = None


def read_directives(reader: ContentReader, tools: Sequence[ToolSpec], declared: Sequence[MessagesTool]) -> Directives:
    """Returns the directives that the reader of the messages met. `tools` are the functions of the request, `declared`
    all its tools. Fault: TOOLS_NAME. Raises InvalidRequest for one of a wrong form, and for a tool that nothing before
    it declares."""
    found: list[Directive] = []
    own_fields: list[str] = []
    offered = _Tools(reader, tools, declared)
    for change in reader.tool_changes:
        found += offered.read(change)
    changed = {change.index for change in reader.tool_changes}
    for index, message in reader.directing:
        found += _read_fields(message, index, own_fields, reader.changes)
        _check_scope(message, index, has_changes=index in changed)
    found.sort(key=lambda directive: directive.index)
    return Directives(tuple(found), offered.declared(tools), tuple(own_fields))


def _read_fields(message: JsonObject, index: int, own_fields: list[str], changes: Changes) -> list[Directive]:
    turn = PATHS.turn.format(turn=index)
    found: list[Directive] = []
    if (config := message.get("output_config")) is not None:
        param = f"{turn}.output_config"
        effort = read_fields(_object(config, param), _OutputConfig, param).effort
        for name in config if isinstance(config, dict) else ():
            if name != _EFFORT:
                changes.drop_field(f"{param}.{name}")
        if effort is not None and effort not in EFFORTS.known:
            own_fields.append(f"{param}.{_EFFORT}")
        elif effort is not None:
            found.append(EffortChange(index, EFFORTS.values[effort], waits=True))
    scope = message.get("clear_at")
    if scope not in _SCOPES:
        param = f"{turn}.clear_at"
        raise InvalidRequest(f"{param} must be 'next_user_message' or 'never'.", param=param)
    return [*found, TurnScope(index)] if scope == "next_user_message" else found


def _check_scope(message: JsonObject, index: int, *, has_changes: bool) -> None:
    """Raises InvalidRequest for a message of one turn that is more than text."""
    if message.get("clear_at") != "next_user_message":
        return
    turn = PATHS.turn.format(turn=index)
    if has_changes:
        raise InvalidRequest(f"{turn} is shown for one turn (clear_at) and may only have blocks of text.", param=turn)
    if message.get("output_config") is not None:
        raise InvalidRequest(f"{turn} is shown for one turn (clear_at) and may not have output_config.", param=turn)
    content = message.get("content")
    for position, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and block.get("cache_control") is not None:
            param = f"{turn}.content[{position}].cache_control"
            raise InvalidRequest(
                f"{param} is not permitted: the message is shown for one turn (clear_at).", param=param
            )


class _Tools:
    """The functions that are declared so far, and the names of all tools."""

    def __init__(self, reader: ContentReader, tools: Sequence[ToolSpec], declared: Sequence[MessagesTool]) -> None:
        self._specs: dict[str, ToolSpec] = {tool.name: tool for tool in tools}
        self._defined_here: dict[str, ToolSpec] = {}
        self._names = {tool.name for tool in declared}
        self._reader = reader

    def declared(self, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """Returns the functions of the request and those that its messages define, each in its newest form."""
        known = {tool.name for tool in tools}
        newest = [self._defined_here.get(tool.name, tool) for tool in tools]
        return (*newest, *[tool for name, tool in self._defined_here.items() if name not in known])

    def read(self, change: ToolChange) -> list[Directive]:
        """Returns the directive of a block; none for a tool that no other API has. A block that the provider wrote is
        never refused."""
        try:
            directive = self._directive(change)
        except InvalidRequest:
            if not change.of_provider:
                raise
            directive = None
        if directive is None:
            self._reader.changes.drop_block(str(change.block["type"]), change.index)
            return []
        return [directive]

    def _directive(self, change: ToolChange) -> Directive | None:
        param = f"{change.param}.tool"
        tool = change.block.get("tool")
        if tool is None:
            raise missing_field(param)
        tool = _object(tool, param)
        adds = change.block.get("type") == TOOL_ADDITION
        kind = tool.get("type")
        if kind is None:
            raise missing_field(f"{param}.type")
        if kind == _DEFINITION:
            if not adds:
                raise InvalidRequest(f"{param} must name a tool: a removal defines none.", param=param)
            return self._defined(tool.get("definition"), change.index, f"{param}.definition")
        if kind == _REFERENCE and (name := self._named(tool, f"{param}.name")) in self._specs:
            return ToolAddition(change.index, name) if adds else ToolRemoval(change.index, name)
        return None

    def _named(self, reference: JsonObject, param: str) -> str:
        name = reference.get("name")
        if name is None:
            raise missing_field(param)
        if not isinstance(name, str) or name not in self._names:
            raise InvalidRequest(
                f"{param} must be the name of a tool that tools or an earlier message declares.", param=param
            )
        return name

    def _defined(self, definition: Json, index: int, param: str) -> ToolAddition | None:
        if definition is None:
            raise missing_field(param)
        written = _object(definition, param)
        entry = read_fields(written, MessagesTool, param)
        spec = read_tool(entry, written, param, self._reader.faults)
        self._names.add(entry.name)
        if isinstance(spec, OtherTool):
            return None
        if self._specs.get(spec.name, spec) != spec:
            detail = f"{spec.name[:64]!r} is declared before {param}: only the last one, which is another one, is sent"
            self._reader.changes.add("dropped", "TOOL_REPEATED", detail, "warning", index)
        self._specs[spec.name] = self._defined_here[spec.name] = spec
        return ToolAddition(index, spec.name, written)


def _object(value: Json, param: str) -> dict[str, Json]:
    if not isinstance(value, dict):
        message = f"{param} must be an object; it is {kind_of(value)}."
        raise InvalidRequest(message, code="invalid_type", param=param)
    return value
