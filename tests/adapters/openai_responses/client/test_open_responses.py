"""Every response and every event of ours is one of the published schema of Open Responses.

The schema decides, in its version of 2026-04-24, as the package `openresponses-types` has it, which is generated from
the document that the standard publishes. The requests are those of the standard's own compliance program, with which an
answer must have a body of the schema, output, and the status `completed`.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import openresponses_types
import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.openai_responses.client.open_responses import (
    DEMO,
    EVENTS,
    MODELS,
    WEATHER,
    event_faults,
    faults,
    said,
)
from tests.paths import ROOT
from tests.tiers import sample

VERSION: Final = "2026-04-24"
# The items of the standard. OpenAI's API has more, with events of their own: clients get them only of tools that the
# standard does not have either.
ITEMS: Final = frozenset({"message", "function_call", "function_call_output", "reasoning", "compaction"})
PIXEL: Final = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cfc0f01f00050001ff"
        "56c72f0d0000000049454e44ae426082"
    )
).decode()


def seen(*parts: Json) -> Json:
    return [said("user", [{"type": "input_text", "text": "What is this?"}, *parts])]


REQUESTS: Final[Mapping[str, dict[str, Json]]] = {
    "basic": {"input": [said("user", "Say hello.")]},
    "system prompt": {"input": [said("system", "Be brief."), said("user", "Say hello.")]},
    "tool calling": {"input": [said("user", "What is the weather in Paris?")], "tools": [WEATHER]},
    "several turns": {"input": [said("user", "I am Ada."), said("assistant", "Hello."), said("user", "Who am I?")]},
    "phases": {
        "input": [
            {**said("assistant", "I look."), "phase": "commentary"},
            {**said("assistant", "Four."), "phase": "final_answer"},
            said("user", "The number?"),
        ]
    },
    "reasoning": {"input": "think about it", "reasoning": {"effort": "low"}},
    "fields": {
        "input": "Say hello.",
        "instructions": "Be brief.",
        "temperature": 0.5,
        "max_output_tokens": 64,
        "metadata": {"a": "b"},
        "store": False,
    },
    "incomplete": {"input": "Say hello to everybody.", "max_output_tokens": 16},
}
# These need a backend with pictures or files, or one that can be forced to call.
NATIVE_REQUESTS: Final[Mapping[str, dict[str, Json]]] = {
    "image": {"input": seen({"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"})},
    "file": {
        "input": seen(
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjEK"}
        )
    },
    "forced call": {
        "input": "The weather",
        "tools": [WEATHER],
        "tool_choice": {"type": "function", "name": "get_weather"},
    },
}
NATIVE: Final = ("demo-chat", "demo-responses", "demo-messages", "demo-gemini")
# Chat completions takes no files here, which a 400 says.
NATIVE_CASES: Final = [
    (name, model) for name in NATIVE_REQUESTS for model in NATIVE if (name, model) != ("file", "demo-chat")
]


def events_of(stream: str) -> list[dict[str, Any]]:
    """The events of a stream, each of which names itself twice."""
    found = []
    for block in stream.replace("\r\n", "\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
        if "event" in lines:
            found.append(json.loads(lines["data"]))
            assert found[-1]["type"] == lines["event"]
    return found


@pytest.fixture
async def gateway() -> AsyncIterator[RunningGateway]:
    async with running_gateway(DEMO) as started:
        yield started


async def _check(gateway: RunningGateway, fields: Mapping[str, Json], status: str = "completed") -> dict[str, Any]:
    whole = await gateway.client.post("/v1/responses", json=fields)
    assert whole.status_code == 200, whole.text
    made: dict[str, Any] = whole.json()
    assert faults(openresponses_types.ResponseResource, made) == []
    assert made["output"] and made["status"] == status
    streamed = await gateway.client.post("/v1/responses", json={**fields, "stream": True})
    events = events_of(streamed.text)
    assert [fault for event in events for fault in event_faults(event)] == []
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    assert events[-1]["response"]["status"] == status
    return made


def test_the_schema_is_of_this_version() -> None:
    assert openresponses_types.__spec_version__ == VERSION
    assert len(EVENTS) == 24


@sample()
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", REQUESTS)
async def test_the_requests_of_the_compliance_program(gateway: RunningGateway, name: str, model: str) -> None:
    # The wire of the demo agent has no limit of tokens, which a notice says.
    incomplete = name == "incomplete" and model != "demo-agent"
    made = await _check(gateway, {"model": model, **REQUESTS[name]}, "incomplete" if incomplete else "completed")
    if name == "tool calling":
        assert "function_call" in [item["type"] for item in made["output"]]


@sample()
@pytest.mark.parametrize(("name", "model"), NATIVE_CASES)
async def test_pictures_files_and_forced_calls(gateway: RunningGateway, name: str, model: str) -> None:
    await _check(gateway, {"model": model, **NATIVE_REQUESTS[name]})


@pytest.mark.parametrize("model", MODELS)
async def test_a_call_goes_there_and_back(gateway: RunningGateway, model: str) -> None:
    first: dict[str, Json] = {"model": model, "input": "What is the weather in Paris?", "tools": [WEATHER]}
    made = await _check(gateway, first)
    call = next(item for item in made["output"] if item["type"] == "function_call")
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "22 degrees"}
    sent: dict[str, Json] = {**first, "input": [said("user", "What is the weather in Paris?"), *made["output"], result]}
    await _check(gateway, sent)


@pytest.mark.parametrize("model", MODELS)
async def test_the_output_of_a_call_alone_continues_its_response(gateway: RunningGateway, model: str) -> None:
    made = await _check(gateway, {"model": model, "input": "What is the weather in Paris?", "tools": [WEATHER]})
    call = next(item for item in made["output"] if item["type"] == "function_call")
    result: Json = {"type": "function_call_output", "call_id": call["call_id"], "output": "22 degrees"}
    again = await _check(gateway, {"model": model, "input": [result], "previous_response_id": made["id"]})
    assert "message" in [item["type"] for item in again["output"]]


@pytest.mark.parametrize("model", MODELS)
async def test_a_response_is_continued_by_its_id(gateway: RunningGateway, model: str) -> None:
    made = await _check(gateway, {"model": model, "input": "Remember papaya."})
    again = await _check(gateway, {"model": model, "input": "Which word?", "previous_response_id": made["id"]})
    assert again["previous_response_id"] == made["id"]


async def test_a_compaction(gateway: RunningGateway) -> None:
    history = [said("user", "I am Ada."), said("assistant", "Hello."), said("user", "Go on.")]
    asked = {"model": "demo-chat", "input": history}
    made = await gateway.client.post("/v1/responses/compact", json=asked)
    assert made.status_code == 200, made.text
    assert faults(openresponses_types.CompactResource, made.json()) == []


async def test_a_compaction_without_a_model_is_refused(gateway: RunningGateway) -> None:
    refused = await gateway.client.post("/v1/responses/compact", json={"input": [said("user", "Shorten this.")]})
    assert refused.status_code in (400, 422)


def _golden_streams() -> Iterator[Path]:
    for path in sorted((ROOT / "tests/golden").glob("*/client_stream.txt")):
        if "event: response.created" in path.read_text(encoding="utf-8"):
            yield path


@pytest.mark.parametrize("path", [*_golden_streams()], ids=lambda path: path.parent.name)
def test_every_recorded_stream(path: Path) -> None:
    """Failures in streams are among them."""
    events = events_of(path.read_text(encoding="utf-8"))
    assert events
    assert [fault for event in events if not _is_own(event) for fault in event_faults(event)] == []


def _is_own(event: dict[str, Any]) -> bool:
    """Whether an event is of an item or a tool that the standard does not have."""
    if event["type"].startswith(("response.custom_tool_call", "response.web_search_call")):
        return True
    response = event.get("response") or {}
    items = [*response.get("output", ()), *filter(None, [event.get("item")])]
    return any(item["type"] not in ITEMS or "namespace" in item for item in items) or any(
        tool["type"] != "function" for tool in response.get("tools", ())
    )
