import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.backend.decode.error_body import decode_error

CREDITS = {"x-warp-error-code": "OUT_OF_CREDITS"}


@pytest.mark.parametrize(
    ("headers", "body", "message"),
    [
        (CREDITS, {"userDisplayMessage": "Buy more."}, "Buy more."),
        (CREDITS, {}, "The backend's account has used up its quota."),
        ({}, {"error": "No remaining quota: weekly"}, "No remaining quota: weekly"),
        ({}, {"error": {"message": "No AI requests remaining"}}, "No AI requests remaining"),
    ],
)
def test_a_spent_quota_is_told_from_a_full_minute(headers: dict[str, str], body: object, message: str) -> None:
    error = decode_error(429, headers, json.dumps(body).encode())
    assert (error.status, error.code, error.message) == (429, "insufficient_quota", message)
    assert error.headers == {"x-should-retry": "false"}


def test_a_spent_quota_may_be_said_in_plain_text() -> None:
    assert decode_error(429, {}, b"No remaining quota").code == "insufficient_quota"


def test_too_many_requests_keep_the_patience_that_is_asked_for() -> None:
    error = decode_error(429, {"retry-after": "2"}, b'{"error": "slow down"}')
    assert (error.status, error.code, error.message) == (429, "rate_limit_exceeded", "slow down")
    assert error.headers == {"retry-after": "2"}


@pytest.mark.parametrize("body", [b"<html><body>Forbidden</body></html>", b"", b"[1]", b"[" * 90000, b"\xff\x00"])
@pytest.mark.parametrize("status", [400, 403, 429, 500, 503])
def test_a_body_that_is_no_object_gives_a_short_safe_message(status: int, body: bytes) -> None:
    error = decode_error(status, {}, body)
    assert "html" not in error.message
    assert len(error.message) < 100


def test_a_refused_credential_is_the_operators() -> None:
    for status in (401, 403):
        error = decode_error(status, {}, b'{"error": {"message": "token abc", "code": "expired"}}')
        assert (error.status, error.code) == (502, "upstream_auth_error")
        assert "abc" not in error.message


def test_problem_details_are_read() -> None:
    body = {"type": "https://x/y", "title": "Bad", "status": 400, "detail": "the model is unknown", "code": "bad_model"}
    error = decode_error(400, {}, json.dumps(body).encode())
    assert (error.status, error.code, error.message) == (400, "bad_model", "the model is unknown")


def test_a_code_is_read_beside_the_message_or_with_it_in_an_error_object() -> None:
    for body in ({"error": "no", "code": "odd"}, {"error": {"message": "no", "code": "odd"}}):
        assert decode_error(422, {}, json.dumps(body).encode()).code == "odd"
    spent = {"error": {"message": "no more", "code": "insufficient_quota"}}
    assert decode_error(429, {}, json.dumps(spent).encode()).headers == {"x-should-retry": "false"}


@given(
    status=st.integers(201, 599), body=st.binary(max_size=60) | st.text('{}[]":,aemrsg1', max_size=40).map(str.encode)
)
def test_any_body_gives_an_error(status: int, body: bytes) -> None:
    assert 400 <= decode_error(status, {}, body).status < 600
