import json

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.adapter import BackendModel
from gateway.core.conversation import Json
from gateway.core.errors import BackendError


def failed(status: int, body: bytes, **headers: str) -> BackendError:
    return AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20).decode_error(status, headers, body)


def error(message: Json, kind: str = "invalid_request_error") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "r"}).encode()


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_client_can_correct_is_passed_on(status: int) -> None:
    found = failed(status, error("messages.1: bad things"))
    assert (found.status, found.message) == (status, "messages.1: bad things")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", "context_length_exceeded"),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", "invalid_value"),
    ],
)
def test_a_request_that_does_not_fit_has_the_known_code_and_words(message: str, code: str) -> None:
    found = failed(400, error(message))
    assert (found.status, found.code, found.message.startswith(message)) == (400, code, True)


@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (401, 502, "upstream_auth_error"),
        (403, 502, "upstream_auth_error"),
        (404, 404, "model_not_found"),
        (500, 502, "upstream_error"),
        (503, 503, "upstream_overloaded"),
        (504, 504, "upstream_timeout"),
        (529, 503, "upstream_overloaded"),
    ],
)
def test_what_only_the_operator_can_correct_is_not(status: int, shown: int, code: str) -> None:
    found = failed(status, error("secret"))
    assert (found.status, found.code, found.words) == (shown, code, "secret")
    assert status == 404 or "secret" not in found.message


def test_another_server_may_send_a_code() -> None:
    body = b'{"error": {"type": "rate_limit_error", "message": "Nothing left.", "code": "insufficient_quota"}}'
    found = failed(429, body)
    assert (found.status, found.code, found.headers["x-should-retry"]) == (429, "insufficient_quota", "false")


def test_a_rate_limit_says_when_to_come_back() -> None:
    found = failed(429, error("Slow down.", "rate_limit_error"), **{"retry-after": "9"})
    assert (found.status, found.code, found.headers["retry-after"]) == (429, "rate_limit_exceeded", "9")


@pytest.mark.parametrize("body", [b'{"error": "Bad."}', b'{"message": "Bad."}', b'{"error": {"message": "Bad."}}'])
def test_the_message_is_found_where_servers_put_it(body: bytes) -> None:
    assert failed(400, body).message == "Bad."


@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"[]", b"null", b'{"error": []}', b"\xff", error(7)])
def test_any_body_will_do(body: bytes) -> None:
    assert failed(400, body).status == 400


def test_the_models_are_those_of_the_list() -> None:
    adapter = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
    listed = {"data": [{"type": "model", "id": "a"}, {"type": "model", "id": "b"}], "has_more": False}
    assert adapter.decode_models(json.dumps(listed).encode()) == (BackendModel("a"), BackendModel("b"))
