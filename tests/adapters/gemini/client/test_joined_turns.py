"""A streamed answer that an SDK kept chunk by chunk is one turn again."""

from typing import Any, Final

import pytest

from adapters.gemini.backend import GeminiAdapter, GeminiOptions
from adapters.gemini.client.dialect import GeminiDialect
from gateway.core.conversation import Conversation, Json, Reasoning, Text, ToolCall
from gateway.core.policy import Policy
from gateway.core.provider_state import with_provider_state
from gateway.dialect import RequestHead
from gateway.dialects.document import Document
from gateway.exchange import Exchange
from gateway.framing.json_text import decode_json
from gateway.history.own_state import with_own_state

CALL: Final[Json] = {"functionCall": {"id": "a", "name": "f", "args": {}}}
OTHER: Final[Json] = {"functionCall": {"id": "b", "name": "f", "args": {}}}
CALLS: Final = (ToolCall("a", "f", "{}", item=0), ToolCall("b", "f", "{}", item=0))
HELLO: Final[Json] = {"role": "user", "parts": [{"text": "Hello"}]}
SIGNED: Final = {"thoughtSignature": "c2ln"}
STATE: Final = with_provider_state("google", {"thought_signature": "c2ln"})


def conversation(*chunks: list[Json]) -> Conversation:
    answer: list[Json] = [{"role": "model", "parts": parts} for parts in chunks]
    fields: dict[str, Json] = {"contents": [HELLO, *answer, HELLO]}
    return GeminiDialect().decode(Document(fields), RequestHead("/v1beta/models/m:generateContent")).conversation


@pytest.mark.parametrize(
    ("chunks", "blocks"),
    [
        ([[{"text": "a"}], [{"text": "b"}], [{"text": ""}]], (Text("ab"),)),
        ([[{"text": ""}], [{"text": ""}]], (Text(""),)),
        ([[CALL], [{"text": ""}]], CALLS[:1]),
        ([[{"text": "a"}], [CALL], [OTHER]], (Text("a"), *CALLS)),
        ([[{"text": "a"}], [CALL], [{"text": "b"}]], (Text("a"), CALLS[0], Text("b"))),
        (
            [[{"text": "a", "thought": True}], [{"text": "b", "thought": True, **SIGNED}], [{"text": "c"}]],
            (Reasoning("ab", extra=STATE), Text("c")),
        ),
        (
            [[{"text": "a", "thought": True, **SIGNED}], [{"text": "b", "thought": True}]],
            (Reasoning("a", extra=STATE), Reasoning("b")),
        ),
        ([[{"text": "a", "x": 1}], [{"text": "b"}]], (Text("a", {"x": 1}), Text("b"))),
    ],
)
def test_the_chunks_of_an_answer_are_one_turn(chunks: list[list[Json]], blocks: tuple[Any, ...]) -> None:
    user, answer, next_user = conversation(*chunks).turns
    assert (user.role, answer.role, next_user.role) == ("user", "assistant", "user")
    assert (answer.index, next_user.index) == (1, len(chunks) + 1)
    assert answer.blocks == blocks


def test_a_backend_of_the_same_api_gets_every_content() -> None:
    chunks: list[list[Json]] = [[{"text": "a", **SIGNED}], [{"text": "b"}], [{"text": ""}]]
    exchange = Exchange(GeminiAdapter(GeminiOptions(), 1 << 20), conversation(*chunks), Policy())
    sent = decode_json(exchange.request.body)
    assert isinstance(sent, dict)
    assert sent["contents"] == [HELLO, *({"role": "model", "parts": parts} for parts in chunks), HELLO]


def test_state_of_another_backend_is_left_out_of_each_content() -> None:
    foreign = {"thoughtSignature": "Dragoman0123456789abcdefc2ln"}
    chunks: list[list[Json]] = [[{"text": "a", **foreign}], [{"text": "", **foreign}], [{"text": "b", **SIGNED}]]
    kept, (notice,) = with_own_state(conversation(*chunks), "Dragoman00000000000000ff", passes=True)
    sent = decode_json(Exchange(GeminiAdapter(GeminiOptions(), 1 << 20), kept, Policy()).request.body)
    assert isinstance(sent, dict) and notice.rule == "STATE_FOREIGN"
    answers = [{"role": "model", "parts": [part]} for part in ({"text": "a"}, {"text": "b", **SIGNED})]
    assert sent["contents"] == [HELLO, *answers, HELLO]


def test_words_of_the_user_stay_apart() -> None:
    assert [turn.text for turn in conversation().turns] == ["Hello", "Hello"]
