"""The details of a status tell the delay and the cause; what is not read leaves in no form."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.proto.backend.rpc_status import connect_end, connect_failure, grpc_error
from gateway.core.errors import BackendError
from tests.adapters.proto.backend.services import varint

# The name of a detail's type, and its bytes.
Detail: TypeAlias = tuple[str, bytes]


def field(number: int, payload: bytes | int) -> bytes:
    """A field of a message, by its number: bytes, or a varint. Independent of the schema that reads it."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def pair(number: int, first: str, second: str) -> bytes:
    """A message in a field: a text in its field 1, and one in its field 2."""
    return field(number, field(1, first.encode()) + field(2, second.encode()))


DELAY: Final[Detail] = ("RetryInfo", field(1, field(1, 2) + field(2, 500_000_000)))
QUOTA: Final[Detail] = ("QuotaFailure", pair(1, "project:x", "daily limit"))
RATE: Final[Detail] = ("ErrorInfo", field(1, b"RATE_LIMIT_EXCEEDED") + field(2, b"limits.example"))
WRONG_KEY: Final[Detail] = ("ErrorInfo", field(1, b"API_KEY_INVALID") + field(2, b"keys.example"))
FIELDS: Final[Detail] = ("BadRequest", pair(1, "turns[3].text", "is empty") + pair(1, "heat", "is above 2"))
DEBUG: Final[Detail] = ("DebugInfo", field(1, b"/srv/secret.py line 3") + field(2, b"a private trace"))


def header(details: Sequence[Detail], padded: bool = True) -> str:
    any_details = [
        field(3, field(1, f"type.googleapis.com/google.rpc.{kind}".encode()) + field(2, value))
        for kind, value in details
    ]
    text = base64.b64encode(field(1, 8) + field(2, b"said") + b"".join(any_details)).decode()
    return text if padded else text.rstrip("=")


def by_grpc(code: int, name: str, details: Sequence[Detail], padded: bool = True) -> BackendError | None:
    return grpc_error({"grpc-status": str(code), "grpc-status-details-bin": header(details, padded)})


def fields(name: str, details: Sequence[Detail]) -> Mapping[str, object]:
    listed = [
        {"type": f"google.rpc.{kind}", "value": base64.b64encode(value).decode().rstrip("=")} for kind, value in details
    ]
    return {"code": name, "details": listed}


def by_connect_end(code: int, name: str, details: Sequence[Detail]) -> BackendError | None:
    return connect_end(json.dumps({"error": fields(name, details)}).encode())


def by_connect_body(code: int, name: str, details: Sequence[Detail]) -> BackendError | None:
    return connect_failure(json.dumps(fields(name, details)).encode(), {})


Way: TypeAlias = Callable[[int, str, Sequence[Detail]], BackendError | None]
WAYS: Final[tuple[Way, ...]] = (by_grpc, by_connect_end, by_connect_body)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("code", "name", "details", "status", "said", "delay"),
    [
        (14, "unavailable", [DELAY], 503, "upstream_overloaded", "3"),
        (8, "resource_exhausted", [DELAY, QUOTA], 429, "rate_limit_exceeded", "3"),
        (8, "resource_exhausted", [QUOTA], 429, "insufficient_quota", None),
        (8, "resource_exhausted", [RATE, QUOTA], 429, "rate_limit_exceeded", "1"),
        (8, "resource_exhausted", [DEBUG], 429, "rate_limit_exceeded", "1"),
        (3, "invalid_argument", [WRONG_KEY], 502, "upstream_auth_error", None),
        (3, "invalid_argument", [FIELDS], 400, "invalid_value", None),
    ],
)
def test_details_refine_a_status(
    way: Way, code: int, name: str, details: list[Detail], status: int, said: str, delay: str | None
) -> None:
    error = way(code, name, details)
    assert error is not None
    assert (error.status, error.code, error.headers.get("retry-after")) == (status, said, delay)


@pytest.mark.parametrize("way", WAYS)
def test_the_faulty_fields_are_the_message_of_an_error_without_one(way: Way) -> None:
    error = way(3, "invalid_argument", [FIELDS])
    assert error is not None
    assert error.message == "turns[3].text: is empty; heat: is above 2"


@pytest.mark.parametrize("way", WAYS)
def test_the_log_has_the_causes_and_nothing_has_what_is_for_debugging(way: Way) -> None:
    error = way(13, "internal", [DEBUG, QUOTA, DEBUG])
    assert error is not None
    assert error.words.endswith("project:x: daily limit") and "daily limit" not in error.message
    told = f"{error.message} {error.words} {error.headers} {error.extra} {error.notices}"
    assert "private" not in told and "secret" not in told


@pytest.mark.parametrize("padded", [True, False])
def test_padding_may_be_left_out(padded: bool) -> None:
    error = by_grpc(14, "unavailable", [("RetryInfo", field(1, field(1, 7)))], padded)
    assert error is not None and error.headers["retry-after"] == "7"


def test_the_delay_of_the_transport_wins() -> None:
    error = grpc_error(
        {"grpc-status": "14", "grpc-retry-pushback-ms": "900", "grpc-status-details-bin": header([DELAY])}
    )
    assert error is not None
    assert (error.headers.get("retry-after-ms"), error.headers.get("retry-after")) == ("900", "1")


@pytest.mark.parametrize(
    "text", ["!", "AAA*", base64.b64encode(b"\xff\xff").decode(), header([("RetryInfo", b"\x0a\xff")])]
)
def test_details_that_cannot_be_read_change_nothing_but_the_log(text: str) -> None:
    error = grpc_error({"grpc-status": "14", "grpc-message": "busy", "grpc-status-details-bin": text})
    assert error is not None
    assert (error.status, error.headers.get("retry-after")) == (503, "1")
    assert error.words == "busy; details that cannot be read"


@pytest.mark.parametrize("details", ["text", [7], [{"type": 7}], [{"type": "google.rpc.RetryInfo", "value": "*"}]])
def test_details_of_connect_that_cannot_be_read_fail_nothing(details: object) -> None:
    error = connect_end(json.dumps({"error": {"code": "unavailable", "details": details}}).encode())
    assert error is not None and (error.status, error.headers.get("retry-after")) == (503, "1")


def test_many_details_are_cut() -> None:
    error = by_grpc(13, "internal", [QUOTA] * 400)
    assert error is not None and error.words.count("daily limit") == 16


@given(st.binary(max_size=120), st.sampled_from(["", "RetryInfo", "QuotaFailure", "BadRequest", "ErrorInfo"]))
def test_law_any_details_are_read_without_an_error(data: bytes, kind: str) -> None:
    text = header([(kind, data)]) if kind else base64.b64encode(data).decode()
    error = grpc_error({"grpc-status": "14", "grpc-status-details-bin": text})
    assert error is not None and error.status == 503
    assert len(error.words) < 16 * 320
