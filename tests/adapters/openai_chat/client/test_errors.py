import json
import re
from typing import Any, Final

import pytest
from openai.types.model import Model

from adapters.openai.client_errors import encode_error, encode_error_frame
from adapters.openai.models import encode_model, encode_models
from gateway.core.backend_status import status_error
from gateway.core.errors import (
    BackendTimeout,
    BackendTruncated,
    BackendUnavailable,
    GatewayError,
    InvalidRequest,
    ServerShutdown,
)
from gateway.dialect import ListedModels, ModelInfo


def test_an_error_answer() -> None:
    error = InvalidRequest("Wrong.", param="messages[1]", extra={"dragoman": {"violations": [{"rule": "X"}]}})
    status, headers, body, media_type = encode_error(error)
    assert (status, headers, media_type) == (400, {}, "application/json")
    assert json.loads(body) == {
        "error": {
            "message": "Wrong.",
            "type": "invalid_request_error",
            "param": "messages[1]",
            "code": "invalid_value",
            "dragoman": {"violations": [{"rule": "X"}]},
        }
    }


def test_headers_of_the_error_are_kept() -> None:
    answer = encode_error(BackendUnavailable("Away.", headers={"retry-after": "7"}))
    assert (answer.status, answer.headers["retry-after"]) == (502, "7")


def test_an_error_frame_has_the_same_shape() -> None:
    error = InvalidRequest("No.")
    assert encode_error_frame(error) == b"data: " + encode_error(error).body + b"\n\n"


# What makes each client ask again after an error in a stream: words in its message, or its type; without them the turn
# ends. (opencode looks at the whole object, pi and cline at the message, Continue at the type first.)
TRANSIENT: Final = {
    "opencode": re.compile(r"50[0234]|524|429|rate limit|server[ _]error|provider returned error", re.IGNORECASE),
    "pi": re.compile(r"provider.?returned.?error|rate.?limit|429|50[0234]|server.?error", re.IGNORECASE),
    "cline": re.compile("provider returned error", re.IGNORECASE),
}


def frame(error: GatewayError) -> Any:  # Any: read as JSON
    return json.loads(encode_error_frame(error).removeprefix(b"data: "))["error"]


@pytest.mark.parametrize(
    "error",
    [
        BackendTruncated("The backend's response ended before it was complete."),
        BackendUnavailable("Away."),
        BackendTimeout("Slow.", headers={"x-should-retry": "false"}),
        status_error(503, {}),
        status_error(500, {}),
        ServerShutdown("Stopping."),
    ],
)
def test_a_failure_that_may_pass_is_told_in_the_words_on_which_clients_ask_again(error: GatewayError) -> None:
    told = frame(error)
    assert (told["type"], told["code"]) == ("server_error", error.code)
    assert told["message"].endswith(error.message)
    for words in TRANSIENT.values():
        assert words.search(told["message"])


def test_a_rate_limit_in_a_stream_is_one_in_words() -> None:
    told = frame(status_error(429, {}))
    assert told["type"] == "rate_limit_error"
    assert told["message"].startswith("Provider returned error 429 (rate limit): ")


@pytest.mark.parametrize(
    "error",
    [
        status_error(401, {}),
        status_error(402, {}),
        status_error(429, {}, code="insufficient_quota"),
        status_error(400, {}, message="prompt is too long: 9 tokens > 8 maximum"),
        status_error(400, {}, message="No."),
    ],
)
def test_a_failure_that_stays_has_no_such_words(error: GatewayError) -> None:
    told = frame(error)
    assert told["type"] != "server_error"
    for words in TRANSIENT.values():
        assert not words.search(told["message"])


def test_the_list_of_models_is_what_the_official_client_reads() -> None:
    listing = json.loads(encode_models(ListedModels([ModelInfo("a", 7), ModelInfo("b/c", 7)])))
    assert listing["object"] == "list"
    models = [Model.model_validate(entry) for entry in listing["data"]]
    assert [(model.id, model.created, model.owned_by) for model in models] == [
        ("a", 7, "dragoman"),
        ("b/c", 7, "dragoman"),
    ]
    assert json.loads(encode_model(ModelInfo("a", 7))) == listing["data"][0]
