import inspect

import pytest

from gateway.core import errors
from gateway.core.errors import (
    BackendError,
    BackendProtocolError,
    BackendRejected,
    BackendTimeout,
    BackendTruncated,
    BackendUnavailable,
    GatewayError,
    InvalidRequest,
    InvalidToolCall,
    ServerShutdown,
    SettingsError,
    Unsupported,
)
from gateway.core.notices import Notice

# What a client sees of each error when nobody says more.
TABLE: list[tuple[type[GatewayError], type[GatewayError], int, str, str]] = [
    (GatewayError, GatewayError, 500, "server_error", "internal_error"),
    (InvalidRequest, GatewayError, 400, "invalid_request_error", "invalid_value"),
    (Unsupported, InvalidRequest, 400, "invalid_request_error", "unsupported_parameter"),
    (BackendError, GatewayError, 502, "upstream_error", "upstream_error"),
    (BackendRejected, BackendError, 502, "upstream_error", "upstream_error"),
    (BackendUnavailable, BackendError, 502, "upstream_error", "upstream_connection_error"),
    (BackendTimeout, BackendError, 504, "upstream_error", "upstream_timeout"),
    (BackendProtocolError, BackendError, 502, "upstream_error", "upstream_invalid_event"),
    (BackendTruncated, BackendError, 502, "upstream_error", "upstream_stream_truncated"),
    (InvalidToolCall, BackendError, 502, "upstream_error", "upstream_invalid_tool_call"),
    (ServerShutdown, GatewayError, 503, "server_error", "server_shutdown"),
    (SettingsError, GatewayError, 500, "server_error", "invalid_settings"),
]


def test_the_table_is_complete() -> None:
    defined = {value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, GatewayError)}
    assert {row[0] for row in TABLE} == defined


@pytest.mark.parametrize(("kind", "parent", "status", "type_", "code"), TABLE)
def test_an_error_knows_its_status_and_object(
    kind: type[GatewayError], parent: type[GatewayError], status: int, type_: str, code: str
) -> None:
    error = kind("what happened")
    assert issubclass(kind, parent)
    assert error.status == status
    assert error.body() == {"error": {"message": "what happened", "type": type_, "param": None, "code": code}}
    assert str(error) == "what happened"
    assert (error.headers, error.notices) == ({}, ())


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    text = inspect.getdoc(errors) or ""
    for kind, *_ in TABLE:
        assert kind.__name__ in text


def test_everything_about_an_error_may_be_said_by_its_raiser() -> None:
    notice = Notice("backend", "failed", "RULE", "it failed")
    error = BackendRejected(
        "slow down",
        status=429,
        type="rate_limit_error",
        code="rate_limit_exceeded",
        param="model",
        headers={"retry-after": "3"},
        extra={"violations": [{"rule": "X"}]},
        notices=[notice],
    )
    assert error.status == 429
    assert error.body() == {
        "error": {
            "message": "slow down",
            "type": "rate_limit_error",
            "param": "model",
            "code": "rate_limit_exceeded",
            "violations": [{"rule": "X"}],
        }
    }
    assert error.headers == {"retry-after": "3"}
    assert error.notices == (notice,)


def test_one_error_leaves_its_class_as_it_was() -> None:
    BackendRejected("no", status=429, code="rate_limit_exceeded")
    assert (BackendRejected("no").status, BackendRejected("no").code) == (502, "upstream_error")
