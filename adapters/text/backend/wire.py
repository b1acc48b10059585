"""Describes a text backend's requests and responses as a value: a request template, a framing and field paths.

A custom wire needs only settings.json: it is written from nothing or from the `base` that it resembles.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from adapters.text.backend.paths import parse_path
from adapters.text.backend.request_template import names_in
from gateway.core.events import Reason

Framing = Literal["sse", "ndjson", "json", "sse_text", "text"]

# The names that a template may use. `$request.NAME` is the client's own field of that name.
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "$prompt": (),
    "$system": (),
    "$transcript": (),
    "$model": ("model",),
    "$request_id": (),
    "$stop": (),
    "$schema": ("response_format",),
    "$max_tokens": ("max_tokens", "max_completion_tokens"),
    "$temperature": ("temperature",),
    "$temperature_above_0": ("temperature",),
    "$samples": (),
    "$top_p": ("top_p",),
    "$top_p_below_1": ("top_p",),
    "$seed": ("seed",),
}
FIELD: Final = "$request."

MEDIA: Final[Mapping[str, tuple[str, ...]]] = {
    "sse": ("text/event-stream",),
    "sse_text": ("text/event-stream",),
    "ndjson": ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json"),
    "json": ("application/json",),
    "text": ("text/plain", "application/octet-stream"),
}


class UsagePaths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The paths of the token counts."""

    prompt: str | None = None
    completion: str | None = None
    total: str | None = None


class ModelPlaces(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the backend lists its models: a path joined to base_url, the key of the list, the key of a name in it."""

    path: str
    list: str = "data"
    name: str = "id"

    def __post_init__(self) -> None:
        """Raises ValueError for a path that cannot be joined."""
        if not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} must begin with /")


class Wire(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One wire. Places are paths like `choices[0].text`, looked up in each event. Where a place has several paths, the
    first one with a value counts; the empty path is the event itself.

    `framing`: `sse`, `ndjson` and `json` (one document) hold JSON; `sse_text` and `text` are the text itself.
    `hidden`: while this place is true, the event's text is not part of the response (a special token).
    `final`: this place is true in the last event. `finish` holds the finish reason; a flag there is a reason itself.
    `reasons` maps such reasons to the gateway's, in addition to the common ones. `stopped_by` holds the stop sequence
    that was met. `last` is the data of an event that closes the stream. `ends`: `event`, unless only the end of the
    body shows that the response is complete. `max_stops`: how many stop sequences the backend accepts. `max_tokens`:
    the limit that is sent when the client sends none, for backends whose own default is a few words. `models`: where
    the backend lists its models.
    """

    path: str
    request: Mapping[str, Any]
    framing: Framing = "sse"
    text: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    hidden: str | None = None
    finish: tuple[str, ...] = ()
    final: str | None = None
    reasons: Mapping[str, Reason] = {}
    stopped_by: str | None = None
    last: str | None = None
    ends: Literal["event", "close"] = "event"
    usage: UsagePaths = UsagePaths()
    error: tuple[str, ...] = ("error",)
    accepts: tuple[str, ...] = ()
    max_stops: int | None = None
    max_tokens: int | None = None
    models: ModelPlaces | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a wire that cannot work."""
        if self.path and not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} must begin with /")
        for name in self.names:
            if name not in VALUES and not (name.startswith(FIELD) and len(name) > len(FIELD)):
                raise ValueError(
                    f"the request uses the unknown value {name!r}; there are {', '.join(VALUES)} and {FIELD}NAME"
                )
        if not {"$prompt", "$transcript"} & self.names:
            raise ValueError("the request must contain $prompt or $transcript")
        if not {"$prompt", "$system"} & self.names:
            raise ValueError("the request has $transcript, but no $system for the text before it")
        self._check_answer()

    def _check_answer(self) -> None:
        places = [*self.text, *self.reasoning, *self.finish, *self.error, self.hidden, self.final, self.stopped_by]
        for place in [*places, self.usage.prompt, self.usage.completion, self.usage.total]:
            parse_path(place or "")
        if self.is_json and not self.text:
            raise ValueError(f"the framing {self.framing!r} needs a path to the text")
        if self.ends == "event" and not (self.finish or self.final or self.framing == "json"):
            has_end = self.framing == "sse_text" and self.last is not None
            if not has_end:
                raise ValueError("the end of the response is not defined; set `final` or `finish`, or set ends: close")

    @property
    def names(self) -> frozenset[str]:
        """The names that the request uses."""
        return frozenset(names_in(dict(self.request)))

    @property
    def is_json(self) -> bool:
        return self.framing in ("sse", "ndjson", "json")

    @property
    def constrains(self) -> bool:
        """Whether the backend's output can be constrained by a JSON Schema."""
        return "$schema" in self.names

    @property
    def has_cue(self) -> bool:
        """Whether the text itself ends with the cue for the model's turn."""
        return "$prompt" in self.names

    @property
    def supported_params(self) -> frozenset[str]:
        """The client's fields that reach the backend."""
        names = self.names
        known = {field for name in names & VALUES.keys() for field in VALUES[name]}
        return frozenset(known | {name.removeprefix(FIELD) for name in names if name.startswith(FIELD)})
