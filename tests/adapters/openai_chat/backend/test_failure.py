import json

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.backend.decoder import ChatDecoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from tests.adapters.openai_chat.backend.wires import sse


def failed(status: int, body: bytes, **headers: str) -> BackendError:
    return OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20).decode_error(status, headers, body)


ERROR: Json = {"message": "Bad things.", "type": "t", "param": "messages[1]", "code": "too_bad"}


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_the_client_can_mend_is_passed_on(status: int) -> None:
    error = failed(status, json.dumps({"error": ERROR}).encode())
    assert (error.status, error.message, error.param, error.code) == (status, "Bad things.", "messages[1]", "too_bad")


@pytest.mark.parametrize(
    "document",
    [
        {"error": {"message": "Bad things."}},
        {"error": "Bad things."},
        {"message": "Bad things.", "code": 400},
        {"object": "error", "message": "Bad things."},
        {"detail": "Bad things."},
        [{"error": {"message": "Bad things.", "code": 400, "status": "INVALID_ARGUMENT"}}],
    ],
    ids=json.dumps,
)
def test_the_message_is_found_where_providers_put_it(document: Json) -> None:
    assert failed(400, json.dumps(document).encode()).message == "Bad things."


TOO_LONG: list[Json] = [
    {"code": "context_length_exceeded", "message": "Too long."},
    # llama.cpp
    {"code": 400, "type": "exceed_context_size_error", "message": "request (8059 tokens) exceeds the context"},
    # vLLM
    {"code": 400, "type": "BadRequestError", "message": "This model's maximum context length is 4096 tokens."},
]


@pytest.mark.parametrize("error", TOO_LONG, ids=json.dumps)
def test_a_prompt_that_is_too_long_has_its_code_whichever_server_says_it(error: Json) -> None:
    assert failed(400, json.dumps({"error": error}).encode()).code == "context_length_exceeded"


@pytest.mark.parametrize(
    "error", [*TOO_LONG, {"type": "exceed_context_size_error", "message": "Too long."}], ids=json.dumps
)
def test_a_prompt_that_is_too_long_has_its_code_also_in_a_stream(error: Json) -> None:
    with pytest.raises(BackendError) as caught:
        ChatDecoder(1 << 20, 1).feed(sse({"error": error}))
    assert (caught.value.status, caught.value.code) == (400, "context_length_exceeded")


@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (401, 502, "upstream_auth_error"),
        (403, 502, "upstream_auth_error"),
        (404, 404, "model_not_found"),
        (500, 502, "upstream_error"),
        (502, 502, "upstream_error"),
        (503, 503, "upstream_overloaded"),
        (504, 504, "upstream_timeout"),
    ],
)
def test_what_only_the_operator_can_mend_is_not(status: int, shown: int, code: str) -> None:
    error = failed(
        status, json.dumps({"error": {**ERROR, "message": "secret"} if isinstance(ERROR, dict) else {}}).encode()
    )
    assert (error.status, error.code) == (shown, code)
    assert status == 404 or ("secret" not in error.message and error.param is None)


def test_a_spent_quota_is_reported_with_its_code() -> None:
    error = failed(429, b'{"error": {"message": "No credit.", "code": "insufficient_quota"}}', **{"retry-after": "9"})
    assert (error.status, error.code, error.headers["retry-after"]) == (429, "insufficient_quota", "9")
    assert error.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("body", [b"", b"<html>", b"7", b"[]", b"null", b'{"error": []}', b"\xff"])
def test_any_body_will_do(body: bytes) -> None:
    assert failed(400, body).status == 400
