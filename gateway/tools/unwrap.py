"""Turns an enveloped call (`call_mcp_tool(name, args)`) into the real one, and lets everything else through at once."""

from typing import Final, Literal

from gateway.errors import InvalidToolCall
from gateway.events import Event, Finish, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.notices import Level, Notice
from gateway.policy import Envelope, Policy
from gateway.tools.envelope import BrokenEnvelope, open_envelope

# How many characters of one response may be held back. The arguments of a real call are far shorter.
MAX_HELD: Final = 8 * 1024 * 1024


class Unwrapper:
    """Filters the events of one response.

    A call is enveloped when the wire says so, or when its name is that of an envelope and the client declared no tool
    of that name. It is held until its end, by its index, so that calls may interleave and the client never sees a
    part of the envelope; then it follows as a Notice and one whole call. Any other event passes untouched and
    undelayed. What cannot be opened is an error, or passes as it came when the policy says so.

    `held` are the calls that wait for their ends. While there is none, only the start of a call can change anything.
    """

    def __init__(self, policy: Policy, declared: frozenset[str], max_held: int = MAX_HELD) -> None:
        self._policy = policy
        self._declared = declared
        self._room = max_held
        self.held: dict[int, _Held] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """The events with every envelope opened. Raises InvalidToolCall."""
        if not self.held:
            if ToolCallStart not in map(type, events):
                return events
            if not any([self._is_enveloped(event) for event in events if type(event) is ToolCallStart]):
                return events
        shown: list[Event] = []
        try:
            for event in events:
                self._take(event, shown)
        except InvalidToolCall as error:
            error.keep(shown)
            raise
        return shown

    def _take(self, event: Event, shown: list[Event]) -> None:
        match event:
            case ToolCallStart() if self._is_enveloped(event):
                self.held[event.index] = _Held(event)
            case ToolCallDelta() if event.index in self.held:
                self._hold(event, shown)
            case ToolCallEnd() if event.index in self.held:
                self._release(self.held.pop(event.index), shown)
            case Finish():
                # A call without an end is a wire's fault; to drop it in silence would be ours.
                for index in sorted(self.held):
                    self._release(self.held.pop(index), shown)
                shown.append(event)
            case _:
                shown.append(event)

    def _is_enveloped(self, call: ToolCallStart) -> bool:
        return call.enveloped or (call.name in self._policy.envelopes and call.name not in self._declared)

    def _hold(self, delta: ToolCallDelta, shown: list[Event]) -> None:
        held = self.held[delta.index]
        held.parts.append(delta.arguments)
        self._room -= len(delta.arguments)
        if self._room < 0:
            del self.held[delta.index]
            self._room += sum(map(len, held.parts))
            self._fail(held, "it is too long", shown)
            shown.extend(held.as_it_came())

    def _release(self, held: "_Held", shown: list[Event]) -> None:
        start, text = held.start, "".join(held.parts)
        self._room += len(text)
        envelopes = self._policy.envelopes
        try:
            opened = open_envelope(text, envelopes.get(start.name, Envelope()), envelopes, self._declared)
        except BrokenEnvelope as error:
            self._fail(held, str(error), shown)
            shown.extend([*held.as_it_came(), ToolCallEnd(start.index)])
            return
        detail = f"[MCP Gateway] Transformed {start.name} -> {opened.name}"
        shown.append(_notice("changed", "ENVELOPE_OPENED", detail, start.id, "info"))
        shown.append(ToolCallStart(start.index, start.id, opened.name, extra=start.extra))
        shown.append(ToolCallDelta(start.index, opened.arguments))
        shown.append(ToolCallEnd(start.index))

    def _fail(self, held: "_Held", reason: str, shown: list[Event]) -> None:
        detail = f"[MCP Gateway] Failed to transform: {reason}"
        notice = _notice("failed", "ENVELOPE_BROKEN", detail, held.start.id, "error")
        if self._policy.envelope_failure == "error":
            raise InvalidToolCall(f"The backend sent a tool call that cannot be read: {reason}.", notices=[notice])
        shown.append(notice)


class _Held:
    """A call that waits for its end."""

    def __init__(self, start: ToolCallStart) -> None:
        self.start = start
        self.parts: list[str] = []

    def as_it_came(self) -> list[Event]:
        text = "".join(self.parts)
        return [self.start, ToolCallDelta(self.start.index, text)] if text else [self.start]


def _notice(action: Literal["changed", "failed"], rule: str, detail: str, call_id: str, level: Level) -> Notice:
    return Notice("unwrap", action, rule, detail, tool_call_id=call_id, level=level)
