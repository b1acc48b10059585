"""Fits what a request says of thinking, and the choice that it forces, to what the provider accepts of each.

A client says it by `reasoning_effort`, or by a `thinking` of some type, as clients of Messages do. A switch that the
client wrote in the provider's own words comes first.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from gateway.core.conversation import Conversation, Json
from gateway.core.notices import Level, Notice
from gateway.core.request_rules import EFFORTS, OFF, Choice, FieldRules, RequestRules, ThinkingRules, nearest_effort

Body = dict[str, object]

EFFORT: Final = "reasoning_effort"
THINKING: Final = "thinking"
_CHOICE: Final = "tool_choice"
_UNKNOWN: Final = ThinkingRules(default=False)


def fit_thinking(body: Body, rules: RequestRules, of_model: FieldRules, conversation: Conversation) -> Iterator[Notice]:
    """Changes the fields that switch thinking and those that force a call, and yields a notice for each change."""
    thinking = of_model.thinking or rules.thinking
    wish = _Wish(body, thinking or _UNKNOWN, conversation)
    reason = None
    if isinstance(body.get(_CHOICE), str | dict):
        choices = of_model.choices or rules.choices
        while_thinking = of_model.choices_while_thinking or rules.choices_while_thinking
        forced = _kind(body[_CHOICE])
        accepted = while_thinking if wish.thinks and while_thinking is not None else choices
        if forced is not None and accepted is not None and forced not in accepted:
            if accepted is while_thinking and wish.rules.off is not None and (choices is None or forced in choices):
                reason = f"the provider accepts no {conversation.paths.param(_CHOICE)} that forces a call beside it"
            else:
                yield from _fit_choice(body, forced, accepted, conversation)
    if thinking is None:
        return
    if thinking.streamed and wish.thinks and body.get("stream") is not True:
        reason = "the model thinks only in a streamed request"
    if reason is None:
        yield from wish.grant()
    else:
        wish.switch_off()
        level: Level = "warning" if wish.asked else "info"
        yield _changed(f"thinking is switched off: {reason}", level)


class _Wish:
    """What a request asks of thinking. `thinks`: whether the model would, so far."""

    def __init__(self, body: Body, rules: ThinkingRules, conversation: Conversation) -> None:
        self.rules = rules
        self._body, self._path = body, conversation.paths.param
        self._mode = _mode(conversation.params.get(THINKING))
        self._effort = body.get(EFFORT)
        self._off = self._mode == "disabled" or self._effort == OFF
        self.asked = self._mode is not None or self._effort is not None
        written = bool(rules.off) and all(body.get(name) == value for name, value in (rules.off or {}).items())
        self.thinks = not (self._off or written) and (self.asked or rules.default)

    def switch_off(self) -> None:
        """Switches thinking off, whatever the client wrote."""
        for name in (EFFORT, THINKING):
            self._body.pop(name, None)
        self._body.update(self.rules.off or {})

    def grant(self) -> Iterator[Notice]:
        """Writes what the client asks for in the words of the provider."""
        if not self.asked:
            return
        body, rules = self._body, self.rules
        own = body.pop(THINKING, None)
        body.pop(EFFORT, None)
        switch = dict((rules.off or {}) if self._off else rules.on)
        if self._off and rules.off is not None:
            effort = switch.pop(EFFORT, None)
        else:
            effort = _accepted(OFF if self._off else self._effort, rules.efforts)
        if effort is not None:
            body[EFFORT] = effort
        added = [name for name, value in switch.items() if _merge(body, name, value, own)]
        yield from self._told(effort, switch, added)

    def _told(self, effort: object, switch: Mapping[str, Any], added: list[str]) -> Iterator[Notice]:
        if self._effort is not None and effort != self._effort:
            yield self._replaced(EFFORT, self._effort, effort, added)
        if self._mode is None:
            if self._effort is not None and effort is not None and added:
                yield _changed(f"{self._path(EFFORT)} is sent with {added[0]!r}", "debug")
        elif THINKING in switch:
            if (kind := switch[THINKING]["type"]) != self._mode:
                yield _changed(f"{self._path(THINKING)} {self._mode} is sent as {kind}", "debug")
        else:
            yield self._replaced(THINKING, self._mode, None if self._effort is not None else effort, added)

    def _replaced(self, name: str, said: object, effort: object, added: list[str]) -> Notice:
        """Returns the notice about a field that is not sent as it came."""
        path = self._path(name)
        if effort is not None and (name == EFFORT or self.rules.off is None):
            detail = f"{path} {said} is sent as {EFFORT} {effort}, the nearest that the model takes"
            return Notice("profile", "changed", "EFFORT_CHANGED", detail, level="debug")
        if (sent := added[0] if added else EFFORT if effort is not None else None) is not None:
            detail = f"{path} is sent as {sent!r}"
            return Notice("profile", "changed", "REQUEST_FIELD_RENAMED", detail, level="debug")
        detail = f"{path} is not sent: the model has no switch for it"
        return Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level="info")


def _mode(thinking: Json) -> str | None:
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    return kind if isinstance(kind, str) else None


def _accepted(effort: object, efforts: tuple[str, ...] | None) -> object:
    if efforts is None or effort is None:
        return effort
    if not efforts:
        return None
    return nearest_effort(effort, efforts) if isinstance(effort, str) and effort in EFFORTS else effort


def _merge(body: Body, name: str, value: object, own: object) -> bool:
    """Puts a field of a switch into the body, and returns whether it says anything new."""
    written = own if name == THINKING else body.get(name)
    if isinstance(written, dict) and isinstance(value, dict):
        # The type of the client's `thinking` is what is translated here.
        body[name] = {**written, **value} if name == THINKING else {**value, **written}
        return bool(body[name] != written)
    if written is not None and name != THINKING:
        return False
    body[name] = value
    return True


def _kind(choice: object) -> Choice | None:
    match choice:
        case "auto" | "none" | "required":
            return choice
        case {"type": "function"}:
            return "named"
        case _:
            return None


def _fit_choice(
    body: Body, forced: Choice, accepted: tuple[Choice, ...], conversation: Conversation
) -> Iterator[Notice]:
    path = conversation.paths.param
    match forced:
        case "none":
            for name in (_CHOICE, "tools", "parallel_tool_calls"):
                if body.pop(name, None) is not None:
                    detail = f"{path(name)} is not sent: the provider accepts no tool_choice of 'none'"
                    yield Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level="debug")
            return
        case "named" if "required" in accepted:
            named = body[_CHOICE]
            body[_CHOICE] = "required"
            body["tools"] = [tool for tool in _objects(body.get("tools")) if _name(tool) == _name(named)]
            detail = f"{path(_CHOICE)} is sent as 'required', beside no function but the one that it names"
            yield _changed(detail, "info")
        case _:
            body[_CHOICE] = "auto"
            detail = f"{path(_CHOICE)} is sent as 'auto': the provider accepts none that forces a call"
            yield _changed(detail, "warning")


def _objects(tools: object) -> list[object]:
    return tools if isinstance(tools, list) else []


def _name(entry: object) -> object:
    """Return the name of the function in a tool, or in a choice of one."""
    function = entry.get("function") if isinstance(entry, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _changed(detail: str, level: Level) -> Notice:
    return Notice("profile", "changed", "REQUEST_FIELD_CHANGED", detail, level=level)
