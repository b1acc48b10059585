from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.backend_status import public_text, status_error
from gateway.core.errors import BackendError, BackendProtocolError, BackendTimeout

PROMISES = [
    (400, 400, "invalid_request", "invalid_value"),
    (401, 502, "upstream", "upstream_auth_error"),
    (402, 402, "rate_limit", "insufficient_quota"),
    (403, 502, "upstream", "upstream_auth_error"),
    (404, 404, "invalid_request", "model_not_found"),
    (405, 502, "upstream", "upstream_error"),
    (408, 504, "upstream", "upstream_timeout"),
    (409, 409, "invalid_request", "conflict"),
    (413, 413, "invalid_request", "request_too_large"),
    (422, 422, "invalid_request", "invalid_value"),
    (429, 429, "rate_limit", "rate_limit_exceeded"),
    (500, 502, "upstream", "upstream_error"),
    (501, 502, "upstream", "upstream_error"),
    (502, 502, "upstream", "upstream_error"),
    (503, 503, "upstream", "upstream_overloaded"),
    (504, 504, "upstream", "upstream_timeout"),
    (529, 503, "upstream", "upstream_overloaded"),
    (204, 502, "upstream", "upstream_invalid_response"),
    (302, 502, "upstream", "upstream_redirect"),
    (999, 502, "upstream", "upstream_error"),
]


@pytest.mark.parametrize(("status", "shown", "kind", "code"), PROMISES)
def test_each_status_has_its_error(status: int, shown: int, kind: str, code: str) -> None:
    error = status_error(status, {})
    assert (error.status, error.kind, error.code) == (shown, kind, code)
    assert error.message


def test_the_kind_of_error_follows_the_status() -> None:
    assert isinstance(status_error(504, {}), BackendTimeout)
    assert isinstance(status_error(204, {}), BackendProtocolError)


@pytest.mark.parametrize("status", [400, 402, 404, 409, 413, 422, 429])
def test_words_that_the_client_can_act_on_are_passed_on(status: int) -> None:
    assert status_error(status, {}, message="context is\ntoo long").message == "context is too long"


@pytest.mark.parametrize("status", [204, 302, 401, 403, 408, 500, 502, 503, 504, 529])
def test_words_of_a_failing_backend_are_not_passed_on(status: int) -> None:
    assert "secret plan" not in status_error(status, {}, message="secret plan").message


@pytest.mark.parametrize(
    ("status", "code", "kept"),
    [
        (400, "context_length_exceeded", "context_length_exceeded"),
        (429, "insufficient_quota", "insufficient_quota"),
        (429, "tokens", "tokens"),
        (404, "not_found_error", "model_not_found"),
        (500, "engine_crash", "upstream_error"),
        (401, "invalid_api_key", "upstream_auth_error"),
        (400, "not a code\n", "invalid_value"),
        (400, "", "invalid_value"),
    ],
)
def test_a_code_is_kept_where_the_status_is_the_callers(status: int, code: str, kept: str) -> None:
    assert status_error(status, {}, code=code).code == kept


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({"retry-after": "20"}, {"retry-after": "20"}),
        ({"retry-after": "0"}, {"retry-after": "1"}),
        ({"retry-after": "0.5", "retry-after-ms": "500"}, {"retry-after": "1", "retry-after-ms": "500"}),
        ({"retry-after-ms": "2001"}, {"retry-after": "3", "retry-after-ms": "2001"}),
        ({"retry-after-ms": "0.5"}, {"retry-after": "1", "retry-after-ms": "0.5"}),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}),
        ({"retry-after-ms": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}),
        ({"retry-after": "soon"}, {}),
        ({"retry-after": "-1"}, {}),
        ({"retry-after": "1e9"}, {}),
        ({"retry-after": "5\r\nx-evil: 1"}, {}),
        ({"retry-after": "Wed, 99 Oct 2026 07:28:00 GMT"}, {}),
        ({"retry-after": "Mon, 01 Jan 99999999999 00:00:00 GMT"}, {}),
        ({"retry-after": "9" * 400}, {}),
        ({"set-cookie": "a=b"}, {}),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_well_formed_patience_is_kept(status: int, headers: Mapping[str, str], kept: Mapping[str, str]) -> None:
    # Who is busy and says nothing sound means soon.
    assert status_error(status, headers).headers == (kept or {"retry-after": "1"})


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_hard_limit_reached"])
def test_a_quota_that_is_used_up_has_no_delay_of_its_own(code: str) -> None:
    assert status_error(429, {}, code=code).headers == {"x-should-retry": "false"}
    assert status_error(402, {}).headers == {"x-should-retry": "false"}


@pytest.mark.parametrize(
    ("status", "code", "final"),
    [
        (401, None, True),
        (403, None, True),
        (402, None, True),
        (429, "insufficient_quota", True),
        (429, None, False),
        (500, None, False),
        (503, None, False),
        (504, None, False),
        (302, None, True),
        (418, None, True),
    ],
)
def test_clients_are_told_not_to_repeat_what_cannot_succeed(status: int, code: str | None, final: bool) -> None:
    headers = status_error(status, {}, code=code).headers
    assert headers.get("x-should-retry") == ("false" if final else None)


@pytest.mark.parametrize("status", [401, 403])
def test_the_operator_is_told_of_a_refused_credential(status: int) -> None:
    (notice,) = status_error(status, {}).notices
    assert (notice.rule, notice.level) == ("BACKEND_CREDENTIAL", "error")


@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("sk-proj-abcdefghijklmnop", "[redacted]"),
        ("Bearer abc.def.ghi.0123", "Bearer [redacted]"),
        ("bearer  abcdefgh", "bearer ********"),
        ("wk-0123456789abcdef", "[redacted]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "[redacted]"),
        ("sk-abcd****wxyz", "[redacted]"),
        ("xoxb-123456789012-abcdefghijkl", "[redacted]"),
        ("postgres://me:correct-horse-battery@db", "postgres://[redacted]@db"),
        ("-----BEGIN PRIVATE " + "KEY-----\nMIIabcdefghijklmno", "[redacted]"),
    ],
)
def test_secrets_are_redacted(secret: str, shown: str) -> None:
    text = public_text(f"the key {secret} , is bad")
    assert text == f"the key {shown} , is bad" or ("PRIVATE" in secret and text == f"the key {shown}")
    padding = "x" * 290
    assert secret[:12] not in public_text(f"{padding} {secret}")


@pytest.mark.parametrize(
    "word", ["skyfall-36b-v2", "skateboarding", "pkgresources", "hfmodels.example", "rkhunter_logs"]
)
def test_words_that_begin_like_a_key_stay(word: str) -> None:
    assert public_text(f"there is no {word} here") == f"there is no {word} here"


@given(text=st.text(max_size=2000))
def test_public_text_is_one_short_printable_line(text: str) -> None:
    shown = public_text(text)
    assert len(shown) <= 300
    assert shown.isprintable()


@given(status=st.integers(100, 1200), header=st.text(max_size=60), code=st.text(max_size=80))
def test_any_status_has_an_error_that_no_header_can_break(status: int, header: str, code: str) -> None:
    error = status_error(status, {"retry-after": header}, message=header, code=code)
    assert isinstance(error, BackendError)
    assert 400 <= error.status < 600
    assert all(value.isascii() and value.isprintable() for value in error.headers.values())
