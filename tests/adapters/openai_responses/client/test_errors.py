"""An error is told to Codex by a status, code and place on which it does what helps, and repeats nothing in vain."""

import json
import re
from typing import Any

import pytest

from adapters.openai_responses.client.errors import encode_error, failure
from adapters.openai_responses.client.paths import PATHS
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Image, Text, Turn
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.history.rejections import explained


def told(error: GatewayError) -> tuple[int, Any]:  # Any: read as JSON
    status, _, body, _ = encode_error(error)
    return status, json.loads(body)["error"]


# Codex sends a request six times after each of the statuses that are changed.
@pytest.mark.parametrize(
    ("status", "shown", "code"),
    [
        (400, 400, "invalid_value"),
        (402, 429, "insufficient_quota"),
        (404, 404, "model_not_found"),
        (409, 409, "conflict"),
        (413, 400, "request_too_large"),
        (422, 400, "invalid_value"),
        (429, 429, "rate_limit_exceeded"),
        (503, 503, "upstream_overloaded"),
    ],
)
def test_the_statuses_that_codex_repeats_in_vain_are_final_ones(status: int, shown: int, code: str) -> None:
    got, error = told(status_error(status, {}))
    assert (got, error["code"]) == (shown, code)


def test_a_refusal_of_the_gateway_itself_is_final_too_but_a_wrong_key_stays_one() -> None:
    assert told(InvalidRequest("No.", status=403, code="model_not_allowed"))[0] == 400
    assert told(InvalidRequest("Large.", status=413, code="request_too_large"))[0] == 400
    assert told(InvalidRequest("Who?", status=401, code="invalid_api_key"))[0] == 401


def test_a_rate_limit_in_a_stream_says_how_long_to_wait() -> None:
    error = status_error(429, {"retry-after-ms": "2500"})
    said = failure(error)
    assert said["code"] == "rate_limit_exceeded"
    wait = re.search(r"(?i)try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)", str(said["message"]))
    assert wait is not None and wait.groups() == ("3", "s")
    assert "try again" not in str(failure(status_error(429, {}, code="insufficient_quota"))["message"])


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refused_image_is_one_that_codex_does_not_send_again(status: int) -> None:
    sent = Conversation((Turn("user", (Text("a"), Image("data:,")), index=0),), paths=PATHS)
    error: BackendError = explained(status_error(status, {}, message="This model does not support image input."), sent)
    got, fields = told(error)
    assert (got, fields["code"]) == (400, "invalid_value")
    assert fields["param"].endswith(".image_url")
    assert [notice.rule for notice in error.notices] == ["REQUEST_REFUSED"]
