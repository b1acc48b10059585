"""Finds the recorded response to a request, or says how the nearest recorded request differs."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Json
from gateway.recording.recording import Interaction
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words

Matching: TypeAlias = Literal["shape", "exact", "sequence"]
RecordedSide: TypeAlias = Literal["backend", "openai"]

# Values of these fields differ from run to run.
_PASSING: Final = frozenset(
    ["id", "call_id", "tool_call_id", "tool_use_id", "item_id", "previous_response_id", "user", "metadata", "created"]
)
_SHOWN: Final = 120
_SECRETS_ONLY: Final = Words("none", b"")


class RecordedRequest(msgspec.Struct, frozen=True):
    """The expected request: a method, a path below the base URL, and a body."""

    method: str
    path: str
    body: bytes


class Miss(msgspec.Struct, frozen=True):
    """No recorded response is left for a request. `nearest` is the number of the recorded request that differs least,
    `place` the path of the first difference, and `used`: all that is wrong is that its response was given already."""

    message: str
    nearest: int | None = None
    place: str = ""
    used: bool = False


class Matcher:
    """Gives each recorded response once, to a request that fits.

    `sequence` gives them in order; `exact` compares method, path and body (JSON by its value); `shape` does so without
    ids and times.
    """

    def __init__(self, interactions: Sequence[Interaction], side: RecordedSide, matching: Matching) -> None:
        self._recorded = [(one, expected) for one in interactions if (expected := expected_request(one, side))]
        self._matching = matching
        self._used: set[int] = set()

    @property
    def unused(self) -> tuple[Interaction, ...]:
        """The recorded requests that nobody has asked for."""
        return tuple(one for at, (one, _) in enumerate(self._recorded) if at not in self._used)

    def find(self, request: RecordedRequest) -> Interaction | Miss:
        """Returns the recorded request whose response fits, and marks it as used. A recording holds no secrets, and so
        they are taken out of the request before."""
        redactor = Redactor(_SECRETS_ONLY)
        path = redactor.secrets(request.path.partition("?")[0])
        request = msgspec.structs.replace(request, path=path, body=redactor.data(request.body))
        for at, (one, expected) in enumerate(self._recorded):
            if at not in self._used and (self._matching == "sequence" or self._fits(expected, request)):
                self._used.add(at)
                return one
        return self._miss(request)

    def _fits(self, expected: RecordedRequest, request: RecordedRequest) -> bool:
        return next(self._differences(expected, request), None) is None

    def _differences(self, expected: RecordedRequest, request: RecordedRequest) -> Iterator[str]:
        if expected.method != request.method:
            yield f"method: recorded {expected.method}, now {request.method}"
        if _bare(expected.path) != _bare(request.path):
            yield f"path: recorded {expected.path.partition('?')[0][:_SHOWN]}, now {request.path[:_SHOWN]}"
        yield from _differences(_document(expected.body), _document(request.body), "body", self._matching == "shape")

    def _miss(self, request: RecordedRequest) -> Miss:
        if not self._recorded:
            return Miss("The recording has no response of this side.")
        if self._matching == "sequence":
            return Miss(f"Every recorded response was given already ({len(self._recorded)}).", used=True)
        counted = [[*self._differences(expected, request)] for _, expected in self._recorded]
        at = min(range(len(counted)), key=lambda place: len(counted[place]))
        number = self._recorded[at][0].x
        if not counted[at]:
            return Miss(f"The recorded request {number} fits, but its response was given already.", number, used=True)
        first = counted[at][0]
        used = " It was given already, too." if at in self._used else ""
        return Miss(
            f"No recorded request fits. The nearest one is number {number}. The first difference of {len(counted[at])} "
            f"is in {first}.{used}",
            number,
            first.partition(":")[0],
        )


def expected_request(interaction: Interaction, side: RecordedSide) -> RecordedRequest | None:
    """Returns the expected request for the response of one side; None where the recording has no such one."""
    if side == "backend":
        sent = interaction.sent
        if sent is None or sent.body is None:
            return None
        return RecordedRequest(sent.method, sent.path, sent.body.content)
    if interaction.body is None or interaction.client_head is None:
        return None
    return RecordedRequest(interaction.request.method, interaction.request.path, interaction.body)


def _bare(path: str) -> str:
    """Returns a path without its query, which may hold a key, and without a version, which the base URL may hold."""
    return path.partition("?")[0].removeprefix("/v1beta").removeprefix("/v1")


def _document(body: bytes) -> Json:
    try:
        found: Json = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    return found


def _differences(was: Json, now: Json, path: str, shape: bool) -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [*was, *(name for name in now if name not in was)]:
            if shape and name in _PASSING:
                continue
            if name not in was or name not in now:
                values = [_shown(one[name]) if name in one else "nothing" for one in (was, now)]
                yield f"{path}.{name}: recorded {values[0]}, now {values[1]}"
            else:
                yield from _differences(was[name], now[name], f"{path}.{name}", shape)
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{path}, entries: recorded {len(was)}, now {len(now)}"
        for at, (old, new) in enumerate(zip(was, now, strict=False)):
            yield from _differences(old, new, f"{path}[{at}]", shape)
    elif was != now or type(was) is not type(now):
        yield f"{path}: recorded {_shown(was)}, now {_shown(now)}"


def _shown(value: Json) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
