"""Holds functions back until a search names them, and offers the search where nobody else does.

A client defers functions by the fields of its API (`Conversation.deferred`), or `Policy.tool_loading` asks for it. What
is offered stands in an order that only grows: the functions that are never held back, the search, then each loaded
function in the order in which the history names or calls it. So the beginning of a prompt stays as it was.

Of functions that are held back, the description of the search has one line each. A function that is loaded keeps its
line, because the description stands before it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from gateway.adapter import Capabilities
from gateway.capabilities.offered_tools import with_tools
from gateway.core.conversation import Conversation, DeferredTools, JsonObject, NamedTool, ToolSpec, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_tools

# The name of the search; a function of the client keeps it, and the search gets a number.
SEARCH: Final = "tool_search"
# The parameter of the search.
QUERY: Final = "query"
_LONGEST_LINE: Final = 100
_SHOWN_NAMES: Final = 8
# The functions of a request are held back where that saves this share of their tokens at least.
_LEAST_SAVING: Final = 0.5
_DESCRIPTION: Final = (
    "Loads tools. Only the names and purposes of the tools below are known yet. Before you call one of them, call this "
    "function with what the tool has to do, or with the names of the tools that you need. What it finds can be called "
    "from then on. Tools:"
)
_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    # A model that is held to the schema would fill its answer with words otherwise.
    "properties": {QUERY: {"type": "string", "description": "What the tool has to do, or names", "maxLength": 120}},
    "required": [QUERY],
}


class HeldTools(msgspec.Struct, frozen=True):
    """The functions that are not offered, in the client's order, and the search that finds them; None: only the client
    searches."""

    tools: tuple[ToolSpec, ...]
    search: ToolSpec | None


def hold_tools(
    conversation: Conversation,
    turns: Sequence[Turn],
    policy: Policy,
    capabilities: Capabilities,
    found: Sequence[str] = (),
    last: bool = False,
) -> tuple[Conversation, HeldTools | None, Sequence[Notice]]:
    """Returns the conversation with the functions that are offered now, what is held back, and the notices.

    `turns` are those of the client, before any limit; `found` are the names that searches of this request have found.
    `last`: no further search is answered, so that it is offered only where nothing else is. None: nothing waits for a
    search, and the conversation is unchanged.
    """
    passes = conversation.dialect == capabilities.passthrough
    deferred = conversation.deferred
    if passes and (capabilities.passes_tools or deferred is not None or "tools" not in conversation.params):
        return conversation, None, []
    names = _holdable(conversation, policy)
    holdable = [tool for tool in conversation.tools if tool.name in names]
    if _asks_for_json(conversation):
        # What a round says before its search would be no part of the JSON.
        at_once = tuple([_at_once(tool) for tool in conversation.tools])
        return msgspec.structs.replace(conversation, tools=at_once), None, []
    on_demand = policy.tool_loading == "on_demand"
    search = _search(conversation.tools, holdable) if on_demand or (deferred and deferred.searches) else None
    if not holdable or (on_demand and search is not None and not _saves(holdable, search, deferred)):
        return conversation, None, []
    loaded = _loaded(conversation, turns, found)
    by_name = {tool.name: tool for tool in holdable}
    kept = [tool for tool in conversation.tools if tool.name not in names]
    again = [_at_once(by_name[name]) for name in loaded if name in by_name]
    # Where a call of the client's own functions is required, a model that is held to it would search again.
    enough = last or (bool(found) and conversation.tool_choice == "required")
    searches = [] if search is None or (enough and (kept or again)) else [search]
    offered = [*kept, *searches, *again]
    held = tuple([tool for tool in holdable if tool.name not in loaded])
    sent = with_tools(conversation, tuple(offered), search)
    notices = _notices(conversation, sent, held, [name for name in loaded if name in by_name and name not in found])
    return sent, HeldTools(held, search), [] if found else notices


def with_offered(conversation: Conversation, policy: Policy, capabilities: Capabilities) -> Conversation:
    """Returns the client's conversation with the functions that its first round offers, to estimate its size."""
    sent, _, _ = hold_tools(conversation, conversation.turns, policy, capabilities)
    return msgspec.structs.replace(conversation, tools=sent.tools)


def loaded_notice(tools: Iterable[ToolSpec]) -> Notice:
    """Returns the notice of the functions that the searches of a round have loaded, if any."""
    names = [tool.name for tool in tools]
    detail = f"a search of the model loaded {_named(names) if names else 'no tool'}"
    return Notice("profile", "added", "TOOLS_LOADED", detail)


def _asks_for_json(conversation: Conversation) -> bool:
    shape = conversation.params.get("response_format")
    return isinstance(shape, dict) and shape.get("type") not in (None, "text")


def _holdable(conversation: Conversation, policy: Policy) -> frozenset[str]:
    if policy.tool_loading == "on_demand":
        return frozenset([tool.name for tool in conversation.tools])
    return frozenset() if conversation.deferred is None else conversation.deferred.names


def _saves(holdable: Sequence[ToolSpec], search: ToolSpec, deferred: DeferredTools | None) -> bool:
    """Returns whether it is worth a search. What a client defers waits for it in any case."""
    if deferred is not None and deferred.searches:
        return True
    return estimate_tools([search]) <= math.floor(estimate_tools(holdable) * _LEAST_SAVING)


def _loaded(conversation: Conversation, turns: Sequence[Turn], found: Sequence[str]) -> tuple[str, ...]:
    """Returns the names that the history loads, each once, in the order in which it does, then those found now.

    A function that was called had been loaded before, though the search may be in no history that the client keeps."""
    named: list[tuple[int, str]] = [] if conversation.deferred is None else [*conversation.deferred.loaded]
    at = 0
    for turn in turns:
        at = at if turn.index is None else turn.index
        named += [(at, call.name) for call in turn.calls]
    names = [name for _, name in sorted(named, key=lambda one: one[0])]
    choice = conversation.tool_choice
    forced = [choice.name] if isinstance(choice, NamedTool) else []
    return tuple(dict.fromkeys([*names, *found, *forced]))


def _at_once(tool: ToolSpec) -> ToolSpec:
    """Returns a function without the field that deferred it."""
    if "defer_loading" not in tool.extra:
        return tool
    return msgspec.structs.replace(
        tool, extra={name: value for name, value in tool.extra.items() if name != "defer_loading"}
    )


def _search(tools: Sequence[ToolSpec], holdable: Sequence[ToolSpec]) -> ToolSpec:
    lines = "\n".join(["", *map(line_of, holdable)])
    return ToolSpec(_free_name({tool.name for tool in tools}), f"{_DESCRIPTION}{lines}", _PARAMETERS)


def _free_name(taken: set[str]) -> str:
    return next(name for name in _names() if name not in taken)


def _names() -> Iterator[str]:
    yield SEARCH
    number = 2
    while True:
        yield f"{SEARCH}_{number}"
        number += 1


def line_of(tool: ToolSpec) -> str:
    """Returns one line about a function: its name, and the first sentence of its description."""
    text = " ".join(tool.description.split())
    sentence = text.partition(". ")[0].removesuffix(".")
    said = f"- {tool.name}: {sentence}" if sentence else f"- {tool.name}"
    return said if len(said) <= _LONGEST_LINE else f"{said[: _LONGEST_LINE - 3]}..."


def _notices(
    conversation: Conversation, sent: Conversation, held: Sequence[ToolSpec], again: Sequence[str]
) -> list[Notice]:
    notices: list[Notice] = []
    if held:
        saved = max(estimate_tools(conversation.tools) - estimate_tools(sent.tools), 0)
        count, all_of = len(held), len(conversation.tools)
        detail = f"{count} of {all_of} tools are held back until a search names them: about {saved} tokens less"
        notices.append(Notice("profile", "changed", "TOOLS_HELD_BACK", detail))
    if again:
        detail = f"the history names or calls {_named(again)}, loaded again"
        notices.append(Notice("profile", "seen", "TOOLS_LOADED", detail, level="debug"))
    return notices


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:64]) for name in names[:_SHOWN_NAMES])
    more = len(names) - _SHOWN_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
