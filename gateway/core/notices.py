"""Defines a change or an observation of the gateway as a value; the server turns it into log lines and headers."""

from typing import Final, Literal, final

import msgspec
from msgspec import UNSET, UnsetType

Stage = Literal[
    "decode",
    "validate",
    "repair",
    "state",
    "classify",
    "guard",
    "trim",
    "flatten",
    "profile",
    "encode",
    "backend",
    "unwrap",
]
Action = Literal["added", "changed", "dropped", "moved", "shortened", "ignored", "seen", "failed"]
Level = Literal["debug", "info", "warning", "error"]

# Notices that report an observed or kept value, not a change to the request or response.
NO_CHANGE: Final[frozenset[Action]] = frozenset({"seen", "ignored", "failed"})


class Reported(set[object]):
    """The keys of what was reported of one response: a backend that breaks a rule breaks it in every event."""

    def is_new(self, key: object) -> bool:
        """Returns whether nothing was reported under this key, and remembers it."""
        if key in self:
            return False
        self.add(key)
        return True


class UnknownValue(msgspec.Struct, frozen=True):
    """A part of a backend's message that its schema does not know: a field of the message at `path` (a value of the
    enum field at `path`), by its number."""

    path: str
    number: int


@final
class Notice(msgspec.Struct, frozen=True):
    """One change or observation.

    `rule` is a stable code (docs/notices.md lists them all); `index` the message's position in the client's request;
    `detail` one sentence with names and counts, never with contents. For the rules that people grep for, the detail is
    the log line itself. `unknown` is set where the detail is about such a part of a message.
    """

    stage: Stage
    action: Action
    rule: str
    detail: str
    index: int | None = None
    tool_call_id: str | None = None
    level: Level = "info"
    unknown: UnknownValue | UnsetType = UNSET
