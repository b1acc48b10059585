"""The limit of an answer is lowered to what the window leaves, for each dialect and told; and the numbers of an
overflow are completed where they then say that it is one."""

import json
from typing import Any, Final

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.adapter import OpenAIChatOptions
from gateway.core.backend_status import reported_error, status_error
from gateway.core.context_length import Overflow
from gateway.core.conversation import Conversation, Json, Sampling, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import ResponseStart
from gateway.core.policy import Policy
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_adapter, load_dialect
from gateway.settings import BackendSettings
from tests.scripted import ScriptedAdapter

WINDOW: Final = 1000
# 400 tokens as they are estimated, 4 of them for the message around the text.
PROMPT: Final = "word" * 396
PATHS: Final = {"gemini": "/v1beta/models/m:generateContent"}
FIELDS: Final[dict[str, dict[str, Json]]] = {
    "openai_chat": {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 800},
    "openai_responses": {"input": PROMPT, "max_output_tokens": 800},
    "anthropic_messages": {"messages": [{"role": "user", "content": PROMPT}], "max_tokens": 800},
    "gemini": {
        "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
        "generationConfig": {"maxOutputTokens": 800},
    },
    "ollama": {"messages": [{"role": "user", "content": PROMPT}], "options": {"num_predict": 800}},
}
NAMES: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict")


def limits_in(body: Any) -> list[int]:
    """The limits of tokens at any place in a body."""
    if not isinstance(body, dict):
        return []
    own = [value for name, value in body.items() if name in NAMES]
    return own + [limit for value in body.values() for limit in limits_in(value)]


@pytest.mark.parametrize("adapter", ["openai_chat", "openai_responses", "anthropic_messages", "gemini"])
@pytest.mark.parametrize("dialect", FIELDS)
def test_what_the_window_leaves_is_sent_and_told(dialect: str, adapter: str) -> None:
    spoken = load_dialect(dialect)
    body = {**spoken.example("m"), **FIELDS[dialect]}
    path = PATHS.get(dialect, spoken.routes[0].path)
    conversation = spoken.decode(read_document(json.dumps(body).encode()), RequestHead(path)).conversation
    made = load_adapter("b", BackendSettings(adapter, "http://b"), 2**20)
    exchange = Exchange(made, conversation, Policy(), window=WINDOW)
    assert limits_in(json.loads(exchange.request.body)) == [600]
    (notice,) = [notice for notice in exchange.notices if notice.rule == "MAX_TOKENS_LOWERED"]
    assert conversation.paths.param("max_tokens") in notice.detail
    assert limits_in(json.loads(Exchange(made, conversation, Policy()).request.body)) == [800]


def test_both_limits_of_a_chat_request_are_lowered() -> None:
    dialect = load_dialect("openai_chat")
    body = {**dialect.example("m"), **FIELDS["openai_chat"], "max_completion_tokens": 900}
    conversation = dialect.decode(read_document(json.dumps(body).encode()), RequestHead("")).conversation
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 2**20), conversation, Policy(), window=WINDOW)
    assert limits_in(json.loads(exchange.request.body)) == [600, 600]


@pytest.mark.parametrize("limit", [None, 1, 600])
@pytest.mark.parametrize("window", [WINDOW, None])
def test_a_limit_that_fits_stays(limit: int | None, window: int | None) -> None:
    asked = Conversation((Turn("user", (Text(PROMPT),)),), sampling=Sampling(max_tokens=limit))
    exchange = Exchange(ScriptedAdapter(), asked, Policy(), window=window)
    assert exchange.conversation.sampling.max_tokens == limit
    assert "MAX_TOKENS_LOWERED" not in [notice.rule for notice in exchange.notices]


@pytest.mark.parametrize("window", [400, 10])
def test_a_prompt_that_seems_to_fill_the_window_is_left_to_the_backend(window: int) -> None:
    asked = Conversation((Turn("user", (Text(PROMPT),)),), sampling=Sampling(max_tokens=800))
    assert Exchange(ScriptedAdapter(), asked, Policy(), window=window).conversation.sampling.max_tokens == 800


class Refusing(ScriptedAdapter):
    """An adapter whose backend refuses every request in these words."""

    def __init__(self, message: str) -> None:
        super().__init__([ResponseStart()], reported_error(None, message=message))
        self._message = message

    def decode_error(self, status: int, headers: object, body: bytes) -> BackendError:
        return status_error(status, {}, message=self._message)


@pytest.mark.parametrize("in_stream", [False, True])
@pytest.mark.parametrize(
    ("message", "window", "counts", "estimated"),
    [
        ("prompt is too long: 900 tokens > 800 maximum", 50, (900, 800), False),
        ("Input is too long for requested model.", 300, (400, 300), True),
        ("This model's maximum prompt length is 200", None, (400, 200), True),
        ("prompt too long; exceeded max context length by 4 tokens", None, None, False),
        # An estimate that fits says nothing of a prompt that does not.
        ("Input is too long for requested model.", 5000, None, False),
        ("This model's maximum prompt length is 20000", 5000, None, False),
    ],
)
def test_missing_numbers_of_an_overflow_are_estimated_and_told(
    message: str, window: int | None, counts: tuple[int, int] | None, estimated: bool, in_stream: bool
) -> None:
    asked = Conversation((Turn("user", (Text(PROMPT),)),), stream=True)
    exchange = Exchange(Refusing(message), asked, Policy(), window=window)
    with pytest.raises(BackendError) as caught:
        if in_stream:
            exchange.feed(b"..")
        else:
            exchange.on_response_head(400, {}, b"")
    error = caught.value
    assert isinstance(error.too_long, Overflow) and error.too_long.counts == counts
    assert error.text(in_stream=in_stream).message == error.too_long.sentence
    assert ("OVERFLOW_ESTIMATED" in [notice.rule for notice in error.notices]) is estimated
