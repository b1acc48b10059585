"""The fields that an adapter declares of its events include those of the official client, where the project has one
(OpenAI's), and any other one is named."""

from collections.abc import Iterable, Iterator
from typing import Any, get_args

import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import Choice, ChoiceDelta
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from adapters.anthropic_messages.table import EVENT_FIELDS as MESSAGES
from adapters.openai_chat.table import EVENT_FIELDS as CHAT
from adapters.openai_responses.table import EVENT_FIELDS as RESPONSES
from adapters.text.backend.adapter import TextAdapter
from adapters.text.backend.event_fields import EVENT_FIELDS as TEXT
from adapters.text.backend.options import TextOptions
from gateway.adapter import EventFields
from gateway.core.conversation import Json
from gateway.diagnostics.doctor.wire_probes import unknown_fields


def names(models: Iterable[type[BaseModel]]) -> set[str]:
    return {name for model in models for name in model.model_fields}


def events() -> Iterator[Any]:
    """The types of the events of a stream of Responses. (Any: what a union in Annotated has inside.)"""
    return iter(get_args(get_args(ResponseStreamEvent)[0]))


def test_every_field_of_the_official_client_is_known() -> None:
    assert names([ChatCompletionChunk]) <= CHAT[""]
    assert names([Choice]) <= CHAT["choices[]"]
    assert names([ChoiceDelta]) <= CHAT["choices[].delta"]
    assert {"type", "delta", "response"} <= names(events()) <= RESPONSES[""]
    assert names([Response]) <= RESPONSES["response"]


@pytest.mark.parametrize(
    ("event", "known", "found"),
    [
        ({"choices": [{"index": 0, "delta": {"content": "a", "mood": 1}}]}, CHAT, ["choices[].delta.mood"]),
        ({"choices": [{"delta": {}, "x": {"y": 1}}, {"x": 2}]}, CHAT, ["choices[].x"]),
        ({"type": "message_start", "message": {"id": "a", "provider": "b"}}, MESSAGES, ["message.provider"]),
        ([{"type": "ping", "b": 1}, {"a": None}], MESSAGES, []),
        ("a", MESSAGES, []),
    ],
)
def test_a_field_is_named_by_its_path_and_other_objects_are_not_looked_into(
    event: Json, known: EventFields, found: list[str]
) -> None:
    assert unknown_fields([event, event], known) == found


def test_only_a_text_wire_with_a_reference_has_known_fields() -> None:
    def fields(wire: Any) -> EventFields:
        return TextAdapter(TextOptions(wire=wire), 2**20).capabilities.event_fields

    assert fields("llama_cpp") == TEXT["llama_cpp"]
    assert fields("tgi") == fields({"base": "llama_cpp", "text": ["answer"]}) == {}
