"""Each of the seventeen status codes of gRPC, as a status or by its name in Connect, becomes one error."""

import json

import pytest

from adapters.proto.backend.rpc_status import STATUSES, connect_end, connect_failure, grpc_error
from gateway.core.errors import BackendTruncated

# The code, and the status and the code that the client receives.
EXPECTED: dict[int, tuple[int, str]] = {
    1: (502, "upstream_error"),
    2: (502, "upstream_error"),
    3: (400, "invalid_value"),
    4: (504, "upstream_timeout"),
    5: (404, "model_not_found"),
    6: (409, "conflict"),
    7: (502, "upstream_auth_error"),
    8: (429, "rate_limit_exceeded"),
    9: (400, "invalid_value"),
    10: (409, "conflict"),
    11: (400, "invalid_value"),
    12: (502, "upstream_error"),
    13: (502, "upstream_error"),
    14: (503, "upstream_overloaded"),
    15: (502, "upstream_invalid_response"),
    16: (502, "upstream_auth_error"),
    17: (502, "upstream_error"),
    999: (502, "upstream_error"),
}
FINAL = {7, 12, 15, 16}


@pytest.mark.parametrize("code", EXPECTED)
def test_a_status_is_the_error_of_its_row(code: int) -> None:
    error = grpc_error({"grpc-status": str(code), "grpc-message": "it%20said%20so"})
    assert error is not None
    assert (error.status, error.code) == EXPECTED[code]
    assert (error.headers.get("x-should-retry") == "false") is (code in FINAL)
    assert error.words == "it said so" or error.message == "it said so"


@pytest.mark.parametrize("code", STATUSES)
def test_connect_names_the_same_codes(code: int) -> None:
    fields = {"code": STATUSES[code][0], "message": "it said so"}
    for error in (
        connect_end(json.dumps({"error": fields}).encode()),
        connect_failure(json.dumps(fields).encode(), {}),
    ):
        assert error is not None and (error.status, error.code) == EXPECTED[code]


def test_ok_is_no_error_and_no_status_is_never_ok() -> None:
    assert grpc_error({"grpc-status": "0"}) is None
    assert connect_end(b"{}") is None
    with pytest.raises(BackendTruncated):
        grpc_error({})


@pytest.mark.parametrize("body", [b"", b"[]", b'{"code": "no_such"}', b'{"code": 7}', b"<html>"])
def test_a_body_that_is_not_connects_is_left_to_its_status(body: bytes) -> None:
    assert connect_failure(body, {}) is None


@pytest.mark.parametrize(
    ("code", "message", "status", "said"),
    [
        (3, "maximum context length is 8", 400, "context_length_exceeded"),
        (8, "Received message larger than max (5 vs. 4)", 413, "request_too_large"),
    ],
)
def test_the_words_of_a_status_are_looked_at(code: int, message: str, status: int, said: str) -> None:
    error = grpc_error({"grpc-status": str(code), "grpc-message": message})
    assert error is not None and (error.status, error.code) == (status, said)


def test_a_delay_is_passed_on_and_a_wrong_method_is_the_operators() -> None:
    error = grpc_error({"grpc-status": "14", "grpc-retry-pushback-ms": "1500"})
    assert error is not None and error.headers["retry-after-ms"] == "1500"
    unimplemented = grpc_error({"grpc-status": "12"})
    assert unimplemented is not None
    assert [(notice.rule, notice.level) for notice in unimplemented.notices] == [("METHOD_UNIMPLEMENTED", "error")]
