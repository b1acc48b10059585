"""Fits the choice among the functions of a request to the forms that the provider accepts."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import UNSET

from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Level, Notice
from gateway.providers.request_rules import Choice

Body: TypeAlias = dict[str, object]

CHOICE: Final = "tool_choice"
_TOOLS: Final = "tools"


def choice_of(body: Body) -> Choice | None:
    """Returns the form of the choice; None for none, and for one that only some providers know."""
    match body.get(CHOICE):
        case "auto":
            return "auto"
        case "none":
            return "none"
        case "required":
            return "required"
        case {"type": "function"}:
            return "named"
        case _:
            return None


def narrow_tools(body: Body, paths: FieldPaths) -> Iterator[Notice]:
    """Writes a choice among some of the functions as one among all, beside no others: OpenAI alone has the former."""
    match body.get(CHOICE):
        case {"type": "allowed_tools", "allowed_tools": {"mode": "auto" | "required" as mode, "tools": [*allowed]}}:
            _keep(body, [_name(tool) for tool in allowed])
            body[CHOICE] = mode
            if not body.get(_TOOLS):
                del body[CHOICE]
                body.pop(_TOOLS, None)
            yield changed(
                f"{paths.param(CHOICE)} is sent as {mode!r}, beside no functions but those that it allows", "info"
            )
        case _:
            pass


def fit_choice(body: Body, choice: Choice, accepted: tuple[Choice, ...], paths: FieldPaths) -> Iterator[Notice]:
    """Replaces a choice that the provider does not accept."""
    path = paths.param(CHOICE)
    if choice == "none":
        for name in (CHOICE, _TOOLS, "parallel_tool_calls"):
            if body.pop(name, None) is not None:
                detail = f"{paths.param(name)} is not sent: the provider accepts no tool_choice of 'none'"
                yield Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level="debug")
    elif choice == "named" and "required" in accepted:
        _keep(body, [_name(body[CHOICE])])
        body[CHOICE] = "required"
        yield changed(f"{path} is sent as 'required', beside no function but the one that it names", "info")
    else:
        body[CHOICE] = "auto"
        yield changed(f"{path} is sent as 'auto': the provider accepts none that forces a call", "warning", CHOICE)


def changed(detail: str, level: Level, lost: str | None = None) -> Notice:
    """Returns the notice that a field is sent with another value; `lost` is the field whose meaning is."""
    fields = UNSET if lost is None else (lost,)
    return Notice("profile", "changed", "REQUEST_FIELD_CHANGED", detail, level=level, fields=fields)


def _keep(body: Body, names: list[object]) -> None:
    tools = body.get(_TOOLS)
    if isinstance(tools, list):
        body[_TOOLS] = [tool for tool in tools if (name := _name(tool)) is not None and name in names]


def _name(entry: object) -> object:
    """Returns the name of the tool, or of the one that a choice names; None for one without."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    named = entry.get(kind) if isinstance(entry, dict) and isinstance(kind, str) else None
    return named.get("name") if isinstance(named, dict) else None
