"""Reads and writes how much the model is to think: as a level or as a budget of tokens, as the model takes it.

Sources: Gemini API, "Thinking" (levels and budgets by model; Gemini 3 and Gemini 2.5 Pro cannot be switched off);
OpenAI compatibility, "Thinking" (the budgets of efforts).
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import UNSET

from adapters.gemini.table import UNSPECIFIED, ThinkingConfig
from gateway.core.conversation import Conversation, Json
from gateway.core.notices import Notice

Thinking = Literal["level", "budget"]

_OFF: Final = "none"
# The models that take a budget; each other one takes a level.
_BUDGETED: Final = re.compile(r"gemini-[12](?:[.-]|$)")
# The models that cannot think: the page on thinking names the series 2.5 and 3.
_THOUGHTLESS: Final = re.compile(r"gemini-(?:1|2\.0)|gemma")
# The models that take MINIMAL; of each other one LOW is the least level.
_MINIMAL: Final = re.compile(r"gemini-3(?:\.[0-6])?-flash")
_LEAST: Final = frozenset({_OFF, "minimal"})
_LEVELS: Final[Mapping[str, str]] = {
    _OFF: "LOW",
    "minimal": "LOW",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
_BUDGETS: Final[Mapping[str, int]] = {
    _OFF: 0,
    "minimal": 1024,
    "low": 1024,
    "medium": 8192,
    "high": 24576,
    "xhigh": 24576,
    "max": 24576,
}
# The efforts that a budget can stand for, the least first; one above the last is that of more thinking.
_READ: Final = (_OFF, "low", "medium")
# The models that cannot be switched off but take a budget, from 128 to 32,768; that of others ends with `high`.
_ALWAYS: Final = re.compile(r"gemini-2\.5-pro")
_ALWAYS_BUDGETS: Final = {**_BUDGETS, _OFF: 128, "xhigh": 32768, "max": 32768}
# The budget of `minimal` is that of `low`, and `high` has the largest one that is listed for an effort.
_SHARED: Final = frozenset({"minimal", "xhigh", "max"})


def read_thinking(config: ThinkingConfig, params: dict[str, Json], place: str) -> Iterator[Notice]:
    """Adds the effort to the params. A budget in tokens has no canonical form: its effort is the nearest."""
    level, budget = config.thinking_level, config.thinking_budget
    effort = None if level is None or level.endswith(UNSPECIFIED) else level.lower()
    if effort is None and budget is not None and budget >= 0:
        effort = next((effort for effort in _READ if budget <= _BUDGETS[effort]), "high")
        detail = f"{place}.thinkingBudget is read as the reasoning effort {effort}"
        yield Notice("decode", "changed", "EFFORT_CHANGED", detail, level="debug")
    if effort is not None:
        params["reasoning_effort"] = effort


def thinking_config(conversation: Conversation, form: Thinking | None, notices: list[Notice]) -> dict[str, Json]:
    """Returns `thinkingConfig`, empty where the client asked for nothing. `form` None: that of the model, by its name.

    A field `thinking` of the type `disabled` counts as the effort `none`; of another type it asks for the thoughts.
    """
    mode = _mode(conversation, notices)
    effort = _OFF if mode == "disabled" else conversation.params.get("reasoning_effort")
    name = conversation.paths.param("thinking" if mode == "disabled" else "reasoning_effort")
    if form is None and _THOUGHTLESS.search(conversation.model):
        if mode != "disabled" and effort not in (None, _OFF):
            _note_unsent(name, "the model cannot think", notices)
        elif mode not in (None, "disabled"):
            _note_unsent(conversation.paths.param("thinking"), "the model cannot think", notices)
        return {}
    if effort is None:
        return {} if mode is None else {"includeThoughts": True}
    if not isinstance(effort, str) or effort not in _LEVELS:
        _note_unsent(name, "its value is unknown", notices)
        return {}
    model = conversation.model
    if form is None:
        form = "budget" if _BUDGETED.search(model) else "level"
    if form == "budget":
        budget = (_ALWAYS_BUDGETS if _ALWAYS.search(model) else _BUDGETS)[effort]
        config: dict[str, Json] = {"thinkingBudget": budget}
        kept = effort not in _SHARED and budget == _BUDGETS[effort]
    else:
        level = "MINIMAL" if effort in _LEAST and _MINIMAL.search(model) else _LEVELS[effort]
        config = {"thinkingLevel": level}
        kept = level == effort.upper()
    if not kept:
        ((field, sent),) = config.items()
        said = mode if mode == "disabled" else effort
        detail = f"{name} {said} is sent as {field} {sent}, the nearest that is published for the model"
        notices.append(Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug"))
    return {**config, "includeThoughts": effort != _OFF}


def _note_unsent(name: str, reason: str, notices: list[Notice]) -> None:
    detail = f"the backend gets no {name}: {reason}"
    notices.append(Notice("encode", "dropped", "EFFORT_NOT_SENT", detail, level="warning"))


def _mode(conversation: Conversation, notices: list[Notice]) -> str | None:
    """Returns the type of a client's `thinking`; None without one. The client's own dialect follows `display`."""
    thinking, name = conversation.params.get("thinking"), conversation.paths.param("thinking")
    mode: str | None = None
    match thinking:
        case None:
            return None
        case {"type": str(mode), **others}:
            unsent = [f"{name}.{other}" for other in others if other != "display"]
        case _:
            unsent = [name]
    for path in unsent:
        detail = f"the backend has no field for {path[:40]!r}"
        lost = ("thinking",) if path == name else UNSET
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=lost))
    return mode
