"""MiniMax reports its errors in `base_resp` with status 200; source: its API reference, "Error codes"."""

import json
from typing import Final

import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from tests.tiers import sample

_WIRES: Final[dict[str, Adapter]] = {
    "chat": OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20),
    "messages": AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20),
}
# What stands beside `base_resp` where there is no answer.
_BESIDE: Final[dict[str, dict[str, Json]]] = {
    "nothing": {},
    "no choices": {"choices": None, "content": None},
    "empty choices": {"choices": [], "id": "x", "model": ""},
    "empty content": {"content": [], "type": "message", "id": "x"},
}
_CODES: Final = {
    1002: (429, "rate_limit_exceeded"),
    1004: (502, "upstream_auth_error"),
    1008: (402, "insufficient_quota"),
    1013: (502, "upstream_error"),
    1026: (400, "invalid_value"),
    2013: (400, "invalid_value"),
    2049: (502, "upstream_auth_error"),
}


@sample()
@pytest.mark.parametrize("code", _CODES)
@pytest.mark.parametrize("beside", _BESIDE)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("wire", _WIRES)
def test_an_error_of_minimax_is_one_with_status_200(wire: str, stream: bool, beside: str, code: int) -> None:
    document = json.dumps({**_BESIDE[beside], "base_resp": {"status_code": code, "status_msg": "said by it"}}).encode()
    exchange = Exchange(_WIRES[wire], Conversation((Turn("user", (Text("hi"),)),), model="m"), Policy())
    with pytest.raises(BackendError) as caught:
        exchange.feed(b"data: " + document + b"\n\n" if stream else document)
        exchange.close()
    assert (caught.value.status, caught.value.code) == _CODES[code]
    assert caught.value.words == "said by it"


def test_an_answer_with_a_base_resp_of_success_is_an_answer() -> None:
    success: Json = {"status_code": 0, "status_msg": ""}
    message: Json = {"role": "assistant", "content": "Hello"}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "base_resp": success}
    exchange = Exchange(_WIRES["chat"], Conversation((Turn("user", (Text("hi"),)),), model="m"), Policy())
    exchange.feed(json.dumps(answer).encode())
    exchange.close()
    assert exchange.finished
