"""Reads the details of a gRPC status: how long to wait, and what the backend says about the cause.

Sources: google/rpc/status.proto and google/rpc/error_details.proto; Connect protocol reference, "Error details". Types
that are not read, such as DebugInfo, reach neither the client nor the log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias

import msgspec
from google.protobuf.message import DecodeError

from adapters.proto.status_details_pb2 import BadRequest, ErrorInfo, QuotaFailure, RetryInfo, Status
from gateway.core.backend_status import public_text
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.framing.base64 import decode_base64

_LARGEST: Final = 64 * 1024
# Bounds the work and the log line of one failure.
_MOST: Final = 16
_UNREADABLE: Final = "details that cannot be read"


class StatusDetails(msgspec.Struct, frozen=True):
    """What the details contain. `delay_s`: the wait before a retry, in seconds. `reason`: the backend's own name of the
    cause. `quota`: a quota is exhausted. `words`: causes as sentences, for the log."""

    delay_s: float | None = None
    reason: str = ""
    quota: bool = False
    words: tuple[str, ...] = ()


NO_DETAILS: Final = StatusDetails()
# The type of a detail, and its bytes; None: they cannot be read.
_Detail: TypeAlias = tuple[str, bytes | None]


def status_details(text: str) -> StatusDetails:
    """Returns the details in the value of `grpc-status-details-bin`: base64, padded or not. An empty text has none."""
    if not text:
        return NO_DETAILS
    try:
        status = Status.FromString(decode_base64(text.encode(), _LARGEST))
    except (BackendProtocolError, DecodeError):
        return StatusDetails(words=(_UNREADABLE,))
    return _combined((detail.type_url, detail.value) for detail in status.details)


def connect_details(listed: Json) -> StatusDetails:
    """Returns the details in the `details` of Connect's JSON: a list of objects with `type` and `value` in base64."""
    return _combined(_connect(listed)) if isinstance(listed, list) else NO_DETAILS


def _connect(listed: list[Json]) -> Iterator[_Detail]:
    for item in listed:
        kind, value = (item.get("type"), item.get("value")) if isinstance(item, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(value, str):
            continue
        try:
            yield kind, decode_base64(value.encode("utf-8", "replace"), _LARGEST)
        except BackendProtocolError:
            yield kind, None


def _combined(details: Iterable[_Detail]) -> StatusDetails:
    found = NO_DETAILS
    for (kind, value), _ in zip(details, range(_MOST), strict=False):
        more = _read(kind.rpartition("/")[2], value)
        delay = found.delay_s if more.delay_s is None else more.delay_s
        words = (*found.words, *more.words)[:_MOST]
        found = StatusDetails(delay, found.reason or more.reason, found.quota or more.quota, words)
    return found


def _read(name: str, value: bytes | None) -> StatusDetails:
    if name not in _READERS:
        return NO_DETAILS
    try:
        return StatusDetails(words=(_UNREADABLE,)) if value is None else _READERS[name](value)
    except DecodeError:
        return StatusDetails(words=(_UNREADABLE,))


def _retry_info(value: bytes) -> StatusDetails:
    info = RetryInfo.FromString(value)
    seconds = info.retry_delay.seconds + info.retry_delay.nanos / 1e9
    return StatusDetails(seconds) if info.HasField("retry_delay") and seconds >= 0 else NO_DETAILS


def _error_info(value: bytes) -> StatusDetails:
    info = ErrorInfo.FromString(value)
    return StatusDetails(reason=info.reason, words=(_sentence(info.domain, info.reason),))


def _quota_failure(value: bytes) -> StatusDetails:
    violations = QuotaFailure.FromString(value).violations[:_MOST]
    return StatusDetails(quota=True, words=tuple(_sentence(one.subject, one.description) for one in violations))


def _bad_request(value: bytes) -> StatusDetails:
    violations = BadRequest.FromString(value).field_violations[:_MOST]
    return StatusDetails(words=tuple(_sentence(one.field, one.description) for one in violations))


def _sentence(subject: str, description: str) -> str:
    return public_text(": ".join(part for part in (subject, description) if part))


_READERS: Final[Mapping[str, Callable[[bytes], StatusDetails]]] = {
    "google.rpc.RetryInfo": _retry_info,
    "google.rpc.ErrorInfo": _error_info,
    "google.rpc.QuotaFailure": _quota_failure,
    "google.rpc.BadRequest": _bad_request,
}
