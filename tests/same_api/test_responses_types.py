"""The published types of OpenAI's SDK judge the answers of the Responses API, strictly: those of a backend of the same
API, in the shapes that servers were seen to send, and those of any other backend.
"""

import json
from collections.abc import Iterable
from typing import Any, Final, get_args

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from gateway.core.events import Event, Finish, PassthroughFields, ResponseStart, UsageReport
from gateway.testing.dialect_case import HEAD
from tests.adapters.openai_responses.client.requests import decoded
from tests.adapters.openai_responses.client.test_stream import DIALECT as STREAM_DIALECT
from tests.adapters.openai_responses.client.test_stream import ITEMS as EVENTS
from tests.adapters.openai_responses.client.test_stream import events_of, sent
from tests.same_api.test_responses_answer import (
    ITEMS,
    TEXT_ITEM,
    USAGES,
    answered,
    item_of,
    new,
    numbered,
    one_of_each,
    response_with,
    stream_of,
    texts,
)
from tests.same_api.unknown import NEW_FIELDS

STREAMED: Final[dict[str, type[BaseModel]]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(get_args(ResponseStreamEvent)[0])
}
# An event that no published type has is for clients that know it.
UNPUBLISHED: Final = ("response.x_", "response.apply_patch_call_operation_diff.")


def judge(events: Iterable[dict[str, Any]]) -> None:
    for event in events:
        if not event["type"].startswith(UNPUBLISHED):
            STREAMED[event["type"]].model_validate_json(json.dumps(event), strict=True)


def known(value: Any) -> Any:
    """A value without new fields, for which a map of numbers has no type."""
    if isinstance(value, list):
        return [known(item) for item in value]
    if isinstance(value, dict):
        return {name: known(inner) for name, inner in value.items() if name not in NEW_FIELDS}
    return value


def frames(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    written = b"".join(b"data: %b\n\n" % json.dumps(known(event)).encode() for event in events)
    return events_of(answered(written, stream=True))


def judge_whole(response: dict[str, Any]) -> Response:
    body = answered(json.dumps(known(response)).encode(), stream=False)
    return Response.model_validate_json(body, strict=True)


LISTS: Final = [texts(item_of("mcp_list_tools")) | {"id": f"mcpl_{number}"} for number in range(2)]
SHAPES: Final[dict[str, list[dict[str, Any]]]] = {
    "every item": stream_of(*[item for item in one_of_each() if item["type"] != "x_item"]),
    "a search of the server": stream_of(
        texts(item_of("tool_search_call")) | {"execution": "server", "call_id": None},
        texts(item_of("tool_search_output")) | {"execution": "server", "call_id": None},
        texts(item_of("function_call")) | {"name": "g", "namespace": "g"},
    ),
    "a shell in a container": stream_of(
        texts(item_of("shell_call")) | {"environment": {"type": "container_reference", "container_id": "c"}},
        texts(item_of("shell_call_output")),
    ),
    "plain reasoning": stream_of(
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": None}
        | {"content": [{"type": "reasoning_text", "text": "ab"}]},
        TEXT_ITEM,
    ),
    "two lists of tools": [
        event for event in stream_of(*LISTS) if event.get("output_index") != 0 or "added" in event["type"]
    ],
    "a patch": [
        *stream_of(texts(item_of("apply_patch_call")))[:-1],
        new("apply_patch_call_operation_diff.delta", output_index=0, item_id="apc_1", delta="a"),
        stream_of(texts(item_of("apply_patch_call")))[-1],
    ],
    "text alone": [
        event
        for event in stream_of(TEXT_ITEM)
        if event["type"] in ("response.created", "response.output_text.delta", "response.completed")
    ],
    "few fields": [
        {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "a"},
        {"type": "response.completed", "response": {"status": "completed", "output": [], "usage": {"input_tokens": 1}}},
    ],
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_answer_of_a_backend_of_the_same_api_has_the_published_types(name: str) -> None:
    got = frames(numbered(SHAPES[name]))
    judge(got)
    Response.model_validate_json(json.dumps(got[-1]["response"]), strict=True)


@pytest.mark.parametrize("item", [item for item in ITEMS if item["type"] != "x_item"], ids=lambda item: item["type"])
def test_an_item_of_a_backend_of_the_same_api_has_the_published_type(item: dict[str, Any]) -> None:
    events = stream_of(texts(item))
    judge(known(events))
    judge(frames(events))
    judge_whole(response_with(texts(item)))


@pytest.mark.parametrize("maker", USAGES)
def test_the_counts_of_a_backend_have_the_published_types(maker: str) -> None:
    response = response_with(TEXT_ITEM)
    response["usage"] = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7, **USAGES[maker]}
    read = judge_whole(response)
    assert read.usage is not None and read.usage.input_tokens_details.cache_write_tokens == 0


@pytest.mark.parametrize(
    "name", [name for name in EVENTS if not any(map(PassthroughFields.__instancecheck__, EVENTS[name][0]))]
)
def test_an_answer_of_any_other_backend_has_the_published_types(name: str) -> None:
    events: list[Event] = [ResponseStart(), *EVENTS[name][0], UsageReport(1, 2), Finish("stop")]
    judge(events_of(sent(events)))
    Response.model_validate_json(STREAM_DIALECT.encode_answer(decoded(), HEAD, events), strict=True)
