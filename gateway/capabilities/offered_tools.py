"""Fits the functions that a request offers to the rules of its provider, which would refuse the whole request."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.capabilities.tool_schemas import complete_schema, object_schema
from gateway.core.conversation import Conversation, Json, JsonObject, Source, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.providers.tool_rules import ToolRules

_EMPTY_OBJECT: Final[JsonObject] = {"type": "object", "properties": {}}
# The fields with functions; `functions` is deprecated.
_LISTS: Final = ("tools", "functions")
# Where the APIs of clients hold the schema of a function, and Gemini's its list of functions.
_SCHEMA_FIELDS: Final = ("input_schema", "parametersJsonSchema", "parameters")
_DECLARATIONS: Final = "functionDeclarations"
_SHOWN_NAMES: Final = 3
_Entry: TypeAlias = dict[str, Json]


def fit_tools(conversation: Conversation, rules: ToolRules) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with functions that the provider accepts, also in the client's own fields, and notices.

    Raises InvalidRequest for two different functions of one name, where the provider refuses that.
    """
    notices: list[Notice] = []
    tools = _unique(conversation, rules, notices)
    loose = frozenset(_beyond(tools, rules))
    fitted = tuple([_fitted(tool, rules, loose=tool.name in loose) for tool in tools])
    changed = [new.name for new, old in zip(fitted, tools, strict=True) if new.parameters is not old.parameters]
    if changed:
        detail = f"the schema of {_named(changed)} is sent in the form that the provider requires"
        notices.append(Notice("profile", "changed", "TOOL_SCHEMA_CHANGED", detail, level="debug"))
    if loose:
        detail = (
            f"the provider takes {rules.most_strict} strict tools; {_named(sorted(loose))} is sent without `strict`"
        )
        notices.append(Notice("profile", "changed", "TOOL_NOT_STRICT", detail, level="warning"))
    if not notices and not _lists_more(conversation):
        return conversation, []
    return _with(conversation, fitted, rules, loose), notices


def with_tools(conversation: Conversation, tools: tuple[ToolSpec, ...], added: ToolSpec | None) -> Conversation:
    """Returns the conversation with these functions alone, also in the fields of a client of chat completions: there
    each keeps its entry, `added` gets one, and what is no function stays."""

    def listed(fields: JsonObject) -> JsonObject:
        entries = fields.get(_LISTS[0])
        return {**fields, _LISTS[0]: _listed(entries, tools, added)} if isinstance(entries, list) else fields

    return _with_fields(conversation, tools, listed)


def _listed(entries: Sequence[Json], tools: Sequence[ToolSpec], added: ToolSpec | None) -> list[Json]:
    by_name = {name: entry for entry in entries if isinstance(name := _named_part(entry).get("name"), str)}
    others = [entry for entry in entries if not isinstance(_named_part(entry).get("name"), str)]
    if added is not None:
        function: _Entry = {"name": added.name, "description": added.description, "parameters": dict(added.parameters)}
        by_name[added.name] = {"type": "function", "function": function}
    return [*others, *[by_name[tool.name] for tool in tools if tool.name in by_name]]


def _named_part(entry: Json) -> JsonObject:
    """Returns the object of an entry that has its name: of chat completions that inside it, also of a custom tool."""
    custom = entry.get("custom") if isinstance(entry, dict) else None
    return custom if isinstance(custom, dict) else _holder(entry)


def _lists_more(conversation: Conversation) -> bool:
    """Returns whether the client's own lists have tools that are not offered: other types, and functions that
    `allowed_tools` leaves out."""
    lists = [entries for field in _LISTS if isinstance(entries := conversation.params.get(field), list)]
    return sum(map(len, lists)) > len(conversation.tools)


def _unique(conversation: Conversation, rules: ToolRules, notices: list[Notice]) -> tuple[ToolSpec, ...]:
    if rules.names == "any":
        return conversation.tools
    first: dict[str, ToolSpec] = {}
    repeated: list[str] = []
    for tool in conversation.tools:
        known = first.setdefault(tool.name, tool)
        if known is tool:
            continue
        if known != tool:
            raise InvalidRequest(
                f"Two different tools are named {tool.name!r}, and this model's provider refuses the same name twice. "
                "Rename one of them.",
                param=conversation.paths.param("tools"),
                code="invalid_value",
            )
        repeated.append(tool.name)
    if repeated:
        detail = f"{_named(repeated)} stands in the list more than once and is sent once"
        notices.append(Notice("profile", "dropped", "TOOL_REPEATED", detail, level="info"))
    return tuple(first.values())


def _beyond(tools: Sequence[ToolSpec], rules: ToolRules) -> Iterator[str]:
    """Yields the names of the strict functions that are too many."""
    if rules.most_strict is not None:
        yield from [tool.name for tool in tools if tool.strict][rules.most_strict :]


def _fitted(tool: ToolSpec, rules: ToolRules, *, loose: bool) -> ToolSpec:
    parameters = _fitted_schema(tool.parameters, rules)
    if parameters is tool.parameters and not loose:
        return tool
    return msgspec.structs.replace(tool, parameters=parameters, strict=None if loose else tool.strict)


def _fitted_schema(schema: JsonObject, rules: ToolRules) -> JsonObject:
    if not schema:
        return _EMPTY_OBJECT if rules.parameters == "required" else schema
    if rules.root == "object":
        schema = object_schema(schema)
    return complete_schema(schema) if rules.nested == "complete" else schema


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:64]) for name in names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"tool {shown} and {more} more" if more > 0 else f"tool {shown}"


def _with(
    conversation: Conversation, tools: tuple[ToolSpec, ...], rules: ToolRules, loose: frozenset[str]
) -> Conversation:
    """Returns the conversation with these functions, and with the client's fields changed in the same way."""

    def fitted(fields: JsonObject) -> JsonObject:
        lists = {field: entries for field in _LISTS if isinstance(entries := fields.get(field), list)}
        if not lists:
            return fields
        return {**fields, **{name: [*_entries(lists[name], rules, loose, set())] for name in lists}}

    return _with_fields(conversation, tools, fitted)


def _with_fields(
    conversation: Conversation, tools: tuple[ToolSpec, ...], change: Callable[[JsonObject], JsonObject]
) -> Conversation:
    """Returns the conversation with these functions, and the client's fields after a change."""
    source = conversation.source
    return msgspec.structs.replace(
        conversation,
        tools=tools,
        params=change(conversation.params),
        source=None if source is None else Source(source.dialect, change(source.value), source.listed, source.unread),
    )


def _entries(entries: list[Json], rules: ToolRules, loose: frozenset[str], known: set[str]) -> Iterator[Json]:
    """Yields the entries of a list of tools as they are sent. `known` are the names of those before them."""
    for entry in entries:
        if isinstance(entry, dict) and isinstance(inner := entry.get(_DECLARATIONS), list):
            yield {**entry, _DECLARATIONS: [*_entries(inner, rules, loose, known)]}
            continue
        name = _holder(entry).get("name")
        if not isinstance(name, str):
            yield entry
            continue
        if name not in known or rules.names == "any":
            yield _changed(entry, lambda holder: _fitted_holder(holder, rules, loose))
        known.add(name)


def _holder(entry: Json) -> JsonObject:
    """Returns the object of an entry that names a function: of chat completions that inside it."""
    if not isinstance(entry, dict):
        return {}
    function = entry.get("function")
    return function if isinstance(function, dict) else entry


def _changed(entry: Json, change: Callable[[JsonObject], _Entry]) -> Json:
    if not isinstance(entry, dict):
        return entry
    function = entry.get("function")
    return {**entry, "function": change(function)} if isinstance(function, dict) else change(entry)


def _fitted_holder(holder: JsonObject, rules: ToolRules, loose: frozenset[str]) -> _Entry:
    field = next((name for name in _SCHEMA_FIELDS if name in holder), "parameters")
    schema = holder.get(field)
    # The tools of providers have a type of their own and no schema.
    own = holder.get("type") not in (None, "function", "custom") and schema is None
    fitted = {} if own else _fitted_schema(schema if isinstance(schema, dict) else {}, rules)
    changed: _Entry = {**holder, field: dict(fitted)} if fitted else {**holder}
    if holder.get("name") in loose:
        changed.pop("strict", None)
    return changed
