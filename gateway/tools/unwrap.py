"""Turns an enveloped call (`call_mcp_tool(name, args)`) into the real one."""

from gateway.events import Event
from gateway.policy import Policy


class Unwrapper:
    """Filters events."""

    def __init__(self, policy: Policy, declared: frozenset[str]) -> None:
        self._policy = policy
        self._declared = declared

    def feed(self, events: list[Event]) -> list[Event]:
        """The events with every envelope opened."""
        return events
