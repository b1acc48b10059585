import inspect

import pytest

from adapters.openai.client_errors import error_object
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
    Kind,
    OptionError,
    OwnWords,
    RequirementNotMet,
    ServerShutdown,
    SettingsError,
    Unsupported,
)
from gateway.core.notices import Notice

# What a client sees of each error when nobody says more.
TABLE: list[tuple[type[GatewayError], type[GatewayError], int, Kind, str]] = [
    (GatewayError, GatewayError, 500, "server", "internal_error"),
    (InvalidRequest, GatewayError, 400, "invalid_request", "invalid_value"),
    (Unsupported, InvalidRequest, 400, "invalid_request", "unsupported_parameter"),
    (RequirementNotMet, InvalidRequest, 400, "invalid_request", "requirement_not_met"),
    (BackendError, GatewayError, 502, "upstream", "upstream_error"),
    (BackendRejected, BackendError, 502, "upstream", "upstream_error"),
    (BackendUnavailable, BackendError, 502, "upstream", "upstream_connection_error"),
    (BackendTimeout, BackendError, 504, "upstream", "upstream_timeout"),
    (BackendProtocolError, BackendError, 502, "upstream", "upstream_invalid_event"),
    (BackendTruncated, BackendError, 502, "upstream", "upstream_stream_truncated"),
    (InvalidToolCall, BackendError, 502, "upstream", "upstream_invalid_tool_call"),
    (ServerShutdown, GatewayError, 503, "server", "server_shutdown"),
    (SettingsError, GatewayError, 500, "server", "invalid_settings"),
    (OptionError, SettingsError, 500, "server", "invalid_settings"),
]


def test_the_table_is_complete() -> None:
    defined = {value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, GatewayError)}
    assert {row[0] for row in TABLE} == defined


@pytest.mark.parametrize(("error_class", "parent", "status", "kind", "code"), TABLE)
def test_an_error_knows_its_status_its_kind_and_its_text(
    error_class: type[GatewayError], parent: type[GatewayError], status: int, kind: Kind, code: str
) -> None:
    error = error_class("what happened")
    assert issubclass(error_class, parent)
    assert (error.status, error.kind) == (status, kind)
    assert error.text() == error.text(in_stream=True) == ("what happened", code, None)
    assert error_object(error) == {
        "error": {"message": "what happened", "type": f"{kind}_error", "param": None, "code": code}
    }
    assert str(error) == "what happened"
    assert (error.headers, error.notices) == ({}, ())


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    text = inspect.getdoc(errors) or ""
    for kind, *_ in TABLE:
        assert kind.__name__ in text


def test_everything_about_an_error_may_be_said_by_its_raiser() -> None:
    notice = Notice("backend", "failed", "LATE_EVENT", "it failed")
    error = BackendRejected(
        "slow down",
        status=429,
        kind="rate_limit",
        code="rate_limit_exceeded",
        param="model",
        headers={"retry-after": "3"},
        extra={"violations": [{"rule": "X"}]},
        notices=[notice],
    )
    assert error.status == 429
    assert error_object(error) == {
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


def test_the_backends_own_words_are_left_out_inside_a_stream() -> None:
    error = BackendRejected("their words", status=429, code="their_code", param="messages[2]")
    error.own_words = OwnWords("our words", "our_code")
    assert error.text() == ("their words", "their_code", "messages[2]")
    assert error.text(in_stream=True) == ("our words", "our_code", None)
