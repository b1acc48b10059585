"""Fits what a request says of thinking to what the provider accepts, also beside a call that the request forces.

A client says it by `reasoning_effort`, or by a `thinking` of some type, as clients of Messages do. A switch that the
client wrote in the provider's own words comes first.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import UNSET

from adapters.openai_chat.backend.tool_choice import CHOICE, Body, changed, choice_of, fit_choice, narrow_tools
from gateway.core.conversation import Conversation, Json
from gateway.core.notices import Notice
from gateway.providers.request_rules import EFFORTS, OFF, FieldRules, RequestRules, ThinkingRules, nearest_effort

EFFORT: Final = "reasoning_effort"
THINKING: Final = "thinking"
_UNKNOWN: Final = ThinkingRules(default=False)


def fit_thinking(body: Body, rules: RequestRules, of_model: FieldRules, conversation: Conversation) -> Iterator[Notice]:
    """Changes the fields that switch thinking and those that force a call, and yields a notice for each change."""
    thinking = of_model.thinking or rules.thinking
    wish = _Wish(body, thinking or _UNKNOWN, conversation)
    always = of_model.choices or rules.choices
    beside = (of_model.choices_while_thinking or rules.choices_while_thinking) if wish.thinks else None
    reason = None
    if (accepted := beside or always) is not None:
        yield from narrow_tools(body, conversation.paths)
        choice = choice_of(body)
        if choice is not None and choice not in accepted:
            if beside is not None and wish.rules.off is not None and (always is None or choice in always):
                reason = f"the provider accepts no {conversation.paths.param(CHOICE)} that forces a call beside it"
            else:
                yield from fit_choice(body, choice, accepted, conversation.paths)
    if thinking is None:
        yield from unsent_thinking(body, conversation)
        return
    if thinking.streamed and wish.thinks and body.get("stream") is not True:
        reason = "the model thinks only in a streamed request"
    if reason is None:
        yield from wish.grant()
    else:
        wish.switch_off()
        asked = wish.asked
        yield changed(f"thinking is switched off: {reason}", "warning" if asked else "info", EFFORT if asked else None)


class _Wish:
    """What a request asks of thinking. `thinks`: whether the model would, so far."""

    def __init__(self, body: Body, rules: ThinkingRules, conversation: Conversation) -> None:
        self.rules = rules
        self._body, self._path = body, conversation.paths.param
        self._mode = _mode(conversation.params.get(THINKING))
        self._effort = body.get(EFFORT)
        self._off = self._mode == "disabled" or self._effort == OFF
        self.asked = self._mode is not None or self._effort is not None
        written = _written_off(body, rules.off or {})
        self.thinks = not self._off and (self.asked or rules.default) if written is None else not written

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
                yield changed(f"{self._path(EFFORT)} is sent with {added[0]!r}", "debug")
        elif THINKING in switch:
            if (kind := _mode(switch[THINKING])) != self._mode:
                yield changed(f"{self._path(THINKING)} {self._mode} is sent as {kind}", "debug")
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
        return Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level="info", fields=(name,))


def unsent_thinking(body: Body, conversation: Conversation) -> Iterator[Notice]:
    """Yields the notice for the `thinking` of another dialect, for which the backend has no switch."""
    if conversation.params.get(THINKING) is not None and THINKING not in body:
        detail = f"the backend has no field for {conversation.paths.param(THINKING)!r}"
        # The effort beside it says as much.
        lost = UNSET if EFFORT in body else (THINKING,)
        yield Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=lost)


def _written_off(body: Body, off: Mapping[str, Any]) -> bool | None:
    """Returns whether thinking is off by the provider's own switch, as the client wrote it; None: it wrote none."""
    found: list[bool] = []
    for name, value in off.items():
        written = body.get(name)
        if name in (EFFORT, THINKING) or written is None:
            continue
        if isinstance(written, dict) and isinstance(value, dict):
            found += [written[key] == value[key] for key in value if key in written]
        else:
            found.append(written == value)
    return all(found) if found else None


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
