"""An error is told in Anthropic's own words where its clients know those alone."""

import json
import re
from typing import Any

import pytest

from adapters.anthropic_messages.client.errors import encode_error, encode_error_event
from adapters.anthropic_messages.client.paths import PATHS
from gateway.core.backend_status import status_error
from gateway.core.conversation import Conversation, Image, Sampling, Text, Turn
from gateway.core.errors import GatewayError
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.scripted import ScriptedAdapter

# What Claude Code looks for.
NUMBERS = re.compile(r"prompt is too long[^0-9]*(\d+)\s*tokens?\s*>\s*(\d+)", re.IGNORECASE)
LIMIT = re.compile(r"^max_tokens: \d+ > (\d+), which is the maximum allowed number of output tokens for .+$")
ROOM = re.compile(r"input length and `max_tokens` exceed context limit: (\d+) \+ (\d+) > (\d+)")


def told(error: GatewayError) -> Any:  # Any: read as JSON
    body = json.loads(encode_error(error, "r").body)
    event = encode_error_event(error, "r").decode()
    assert body["type"] == "error" and '"type":"error"' in event
    return body["error"]


def test_an_overflow_has_the_numbers_and_nothing_else() -> None:
    error = status_error(
        400, {}, message="The input (5000 tokens) is longer than the model's context length (4096 tokens)."
    )
    assert told(error)["message"] == "prompt is too long: 5000 tokens > 4096 maximum"
    assert told(error)["type"] == "invalid_request_error"


def test_an_overflow_without_numbers_has_none() -> None:
    message = told(status_error(400, {}, message="Input is too long for requested model."))["message"]
    assert message.startswith("prompt is too long")
    assert not NUMBERS.search(message) and not re.search(r"\d", message)


def test_too_large_an_answer_leaves_the_code_of_an_overflow_out() -> None:
    message = (
        "This model's maximum context length is 40960 tokens. However, you requested 41000 tokens (9000 "
        "in the messages, "
        "32000 in the completion)."
    )
    fields = told(status_error(400, {}, message=message))
    found = ROOM.search(fields["message"])
    assert found is not None and [*map(int, found.groups())] == [9000, 32_000, 40_960]
    # The code alone would have Claude Code compact.
    assert "context_length_exceeded" not in json.dumps(fields)


@pytest.mark.parametrize(
    ("message", "limit"),
    [
        ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", "4096"),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "8192"),
    ],
)
def test_a_limit_of_the_model_is_one_that_claude_code_remembers(message: str, limit: str) -> None:
    asked = Conversation((Turn("user", (Text("hi"),)),), sampling=Sampling(max_tokens=9000), paths=PATHS)
    exchange = Exchange(Refusing(message), asked, Policy())
    with pytest.raises(GatewayError) as caught:
        exchange.on_response_head(400, {}, b"")
    found = LIMIT.search(told(caught.value)["message"])
    assert found is not None and found[1] == limit


@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_refused_image_is_one_that_claude_code_leaves_out(status: int) -> None:
    asked = Conversation((Turn("user", (Image("data:,"),), index=0),), paths=PATHS, dialect="d")
    exchange = Exchange(Refusing("No endpoints found that support image input"), asked, Policy(images="placeholder"))
    with pytest.raises(GatewayError) as caught:
        exchange.on_response_head(status, {}, b"")
    assert caught.value.status == 400
    assert told(caught.value)["message"].startswith("Could not process image: ")


def test_an_image_that_the_gateway_refuses_is_told_in_the_same_words() -> None:
    asked = Conversation((Turn("user", (Image("data:,"),), index=0),), paths=PATHS, dialect="d")
    with pytest.raises(GatewayError) as caught:
        Exchange(ScriptedAdapter(), asked, Policy())
    assert told(caught.value)["message"].startswith("Could not process image: ")


class Refusing(ScriptedAdapter):
    """An adapter whose backend refuses every request in these words."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self._message = message

    def decode_error(self, status: int, headers: object, body: bytes) -> Any:
        return status_error(status, {}, message=self._message)
