"""A change or an observation of the gateway as a value; the server turns it into log lines and headers."""

from typing import Literal, final

import msgspec

Stage = Literal[
    "decode",
    "validate",
    "repair",
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


@final
class Notice(msgspec.Struct, frozen=True):
    """One change or observation.

    `rule` is a stable code (docs/notices.md lists them all); `index` the message's position in the client's request;
    `detail` one sentence with names and counts, never with contents. For the rules that people grep for, the detail is
    the log line itself.
    """

    stage: Stage
    action: Action
    rule: str
    detail: str
    index: int | None = None
    tool_call_id: str | None = None
    level: Level = "info"
