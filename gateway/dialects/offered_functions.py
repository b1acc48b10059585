"""Checks the functions that a request offers, and leaves out those that it declares and does not allow, with a notice:
it has the same effect for every backend."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from gateway.core.conversation import NamedTool, ToolChoice, ToolSpec
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.dialects.faults import Faults

MAX_TOOLS: Final = 128
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHOWN_NAMES: Final = 3


class AllowedFunctions(NamedTuple):
    """The functions that a model may call, and the choice among them."""

    functions: tuple[ToolSpec, ...]
    choice: ToolChoice
    notices: tuple[Notice, ...] = ()


def check_tools(specs: Sequence[ToolSpec], places: Sequence[str], faults: Faults) -> None:
    """Checks the functions, whose names the client knows by these places. Faults: TOOLS_COUNT, TOOLS_NAME."""
    if len(specs) > MAX_TOOLS:
        detail = f"{len(specs)} functions are in the request, more than {MAX_TOOLS}"
        faults.add("TOOLS_COUNT", -1, places[0].partition("[")[0], detail)
    for spec, place in zip(specs, places, strict=True):
        if not _NAME.fullmatch(spec.name):
            faults.add("TOOLS_NAME", -1, place)


def allowed_functions(
    functions: Sequence[ToolSpec], names: Sequence[str], choice: ToolChoice, place: str
) -> AllowedFunctions:
    """Returns the functions that the field at this place names, and all of them where it names none. Of a single one
    whose call is required, the choice is its name. Raises InvalidRequest for a name that is not declared."""
    known = {function.name for function in functions}
    for position, name in enumerate(names):
        if name not in known:
            param = f"{place}[{position}]"
            raise InvalidRequest(f"{param} is no declared function: {name[:64]!r}.", param=param)
    if not names:
        return AllowedFunctions(tuple(functions), choice)
    named = frozenset(names)
    allowed = tuple([function for function in functions if function.name in named])
    if len(names) == 1 and choice == "required":
        choice = NamedTool(names[0])
    declared = [function.name for function in functions]
    return AllowedFunctions(allowed, choice, not_allowed(declared, allowed, place))


def not_allowed(declared: Iterable[str], offered: Iterable[ToolSpec], place: str) -> tuple[Notice, ...]:
    """Returns the notice of the functions that are `declared` and not `offered`, because the field at this place does
    not name them; nothing where there are none."""
    kept = {tool.name for tool in offered}
    names = [repr(name[:64]) for name in declared if name not in kept]
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN_NAMES])
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    detail = f"the model is not offered {shown}{more}, which {place} does not name"
    return (Notice("decode", "dropped", "TOOL_NOT_ALLOWED", detail, level="debug"),)
