"""Converts a wrapped call (`call_mcp_tool(name, args)`) to the real one, and passes every other event at once."""

from typing import Final, Literal

from gateway.core.errors import InvalidToolCall
from gateway.core.events import Event, Finish, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.core.notices import Level, Notice, NoticeRule
from gateway.core.policy import Policy, WrapperTool
from gateway.framing.json_text import first_value
from gateway.tool_calls.wrapper_tool import BrokenWrapper, unwrap_arguments

# The limit on the held characters of one response. The arguments of a real call are far shorter.
MAX_HELD: Final = 8 * 1024 * 1024
# A notice names at most this many unexpected fields of a wrapper tool, and this much of each name.
_MOST_LISTED: Final = 8
_LONGEST_LISTED: Final = 40


class Unwrapper:
    """Filters the events of one response.

    A call is wrapped when the wire says so, or when its name is that of a wrapper tool and the client declared no tool
    of that name. It is held until its end, by its index, so that calls may interleave and the client never receives a
    part of the wrapped call; then a Notice and one whole call follow. Any other event passes unchanged and without
    delay. A wrapped call that cannot be unwrapped is an error, or passes unchanged when the policy says so.

    `held` are the calls that wait for their ends. While there is none, only the start of a call can change anything.
    """

    def __init__(self, policy: Policy, declared: frozenset[str], max_held: int = MAX_HELD) -> None:
        self._policy = policy
        self._declared = declared
        self._room = max_held
        self.held: dict[int, _Held] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events with every wrapped call unwrapped. Raises InvalidToolCall."""
        if not self.held:
            if ToolCallStart not in map(type, events):
                return events
            if not any([self._is_wrapped(event) for event in events if type(event) is ToolCallStart]):
                return events
        shown: list[Event] = []
        try:
            for event in events:
                self._filter(event, shown)
        except InvalidToolCall as error:
            error.keep(shown)
            raise
        return shown

    def _filter(self, event: Event, shown: list[Event]) -> None:
        match event:
            case ToolCallStart() if self._is_wrapped(event):
                self.held[event.index] = _Held(event)
            case ToolCallDelta() if event.index in self.held:
                self._hold(event, shown)
            case ToolCallEnd() if event.index in self.held:
                self._release(self.held.pop(event.index), event, shown)
            case Finish():
                # A call without an end is an error of the wire; the gateway must not drop it silently.
                for index in sorted(self.held):
                    self._release(self.held.pop(index), ToolCallEnd(index), shown)
                shown.append(event)
            case _:
                shown.append(event)

    def _is_wrapped(self, call: ToolCallStart) -> bool:
        return call.wrapped or (call.name in self._policy.wrapper_tools and call.name not in self._declared)

    def _hold(self, delta: ToolCallDelta, shown: list[Event]) -> None:
        held = self.held[delta.index]
        held.parts.append(delta.arguments)
        self._room -= len(delta.arguments)
        if self._room < 0:
            del self.held[delta.index]
            self._room += sum(map(len, held.parts))
            self._fail(held, "it is too long", shown)
            shown.extend(held.as_it_came())

    def _release(self, held: "_Held", end: ToolCallEnd, shown: list[Event]) -> None:
        start, written = held.start, "".join(held.parts)
        self._room += len(written)
        text = first_value(written)
        wrapper_tools = self._policy.wrapper_tools
        try:
            opened = unwrap_arguments(text, wrapper_tools.get(start.name, WrapperTool()), wrapper_tools, self._declared)
        except BrokenWrapper as error:
            self._fail(held, str(error), shown)
            shown.extend([*held.as_it_came(), end])
            return
        if text != written:
            detail = f"something follows the JSON value in the arguments of {start.name}"
            shown.append(_notice("dropped", "ARGUMENTS_EXTENDED", detail, start.id, "warning"))
        detail = f"[MCP Gateway] Transformed {start.name} -> {opened.name}"
        shown.append(_notice("changed", "ENVELOPE_OPENED", detail, start.id, "info"))
        if opened.unused:
            names = ", ".join(repr(field[:_LONGEST_LISTED]) for field in opened.unused[:_MOST_LISTED])
            more = ", ..." if len(opened.unused) > _MOST_LISTED else ""
            count = len(opened.unused)
            fields = "1 unused field" if count == 1 else f"{count} unused fields"
            detail = f"{start.name} had {fields}, which were dropped: {names}{more}"
            shown.append(_notice("dropped", "ENVELOPE_FIELD_DROPPED", detail, start.id, "warning"))
        shown.append(ToolCallStart(start.index, start.id, opened.name, extra=start.extra))
        shown.append(ToolCallDelta(start.index, opened.arguments))
        shown.append(end)

    def _fail(self, held: "_Held", reason: str, shown: list[Event]) -> None:
        detail = f"[MCP Gateway] Failed to transform: {reason}"
        notice = _notice("failed", "ENVELOPE_BROKEN", detail, held.start.id, "error")
        if self._policy.wrapper_failure == "error":
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


def _notice(
    action: Literal["changed", "dropped", "failed"], rule: NoticeRule, detail: str, call_id: str, level: Level
) -> Notice:
    return Notice("unwrap", action, rule, detail, tool_call_id=call_id, level=level)
