"""Request fields beside the conversation are supported, rejected by name or reported; never silently ignored."""

from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.e2e.demo_gateway import AGENTS, STREAMED, WHOLE, DemoGateway, Fields, body_of, demo_gateway, user

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT_MODELS: Final = ("flat", "structured")
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[DemoGateway]:
    async with demo_gateway({name: AGENTS[name] for name in ("flat", "structured", "flat-stream")}, {}) as opened:
        yield opened


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 2},
        {"logprobs": True},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}},
        {"logit_bias": {"1": 1}},
        {"modalities": ["audio"]},
        {"tool_choice": "required", "tools": [TOOL]},
        {"tool_choice": {"type": "function", "function": {"name": "get_weather"}}, "tools": [TOOL]},
    ],
)
async def test_what_would_change_the_answer_is_refused_by_name(demo: DemoGateway, fields: Fields) -> None:
    before = len(demo.agent.requests)
    for model in AGENT_MODELS:
        for stream in (False, True):
            answer = await demo.ask(model, [user("Hello")], {**fields, "stream": stream})
            assert answer.error is not None
            assert (answer.status, answer.error["param"]) == (400, next(iter(fields)))
            assert answer.error["type"] == "invalid_request_error"
    assert len(demo.agent.requests) == before


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0},
        {"max_tokens": 3},
        {"max_completion_tokens": 3},
        {"seed": 1},
        {"reasoning_effort": "high"},
        {"tools": [{"type": "web_search"}]},
        {"tool_choice": "none", "tools": [TOOL]},
        {"store": False, "metadata": {"a": "b"}, "prompt_cache_key": "k", "service_tier": "auto", "verbosity": "low"},
        {"something_new": {"deep": [1]}},
    ],
)
async def test_what_only_colours_the_answer_is_left_out_and_told(demo: DemoGateway, fields: Fields) -> None:
    for model in AGENT_MODELS:
        for stream in (False, True):
            answer = await demo.ask(model, [user("Hello")], {**fields, "stream": stream}, explain=True)
            assert answer.status == 200 and "encode=" in answer.changes
            assert len(answer.rules) == (1 if "tools" in fields else len(fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1},
        {"stop": None, "temperature": None, "tools": [], "tool_choice": None, "user": None, "functions": None},
        {"response_format": {"type": "text"}, "tool_choice": "auto", "modalities": ["text"], "logprobs": False},
        {"parallel_tool_calls": True, "tools": [TOOL]},
    ],
)
async def test_what_says_nothing_changes_nothing(demo: DemoGateway, fields: Fields) -> None:
    for model in (*AGENT_MODELS, "chat"):
        answer = await demo.ask(model, [user("Hello")], fields)
        assert (answer.status, answer.changes, answer.error) == (200, "", None)


@pytest.mark.parametrize("model", ["flat", "structured", "flat-stream", "chat"])
@pytest.mark.parametrize(
    ("stop", "left"),
    [
        (["4"], "1, 2, 3, "),
        (", 7, 8", "1, 2, 3, 4, 5, 6"),
        (["never", "10, 1"], "1, 2, 3, 4, 5, 6, 7, 8, 9, "),
        (["13"], "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12"),
    ],
)
async def test_stop_sequences_end_the_answer_wherever_the_wire_cuts_it(
    demo: DemoGateway, model: str, stop: Any, left: str
) -> None:
    for fields in (WHOLE, STREAMED):
        answer = await demo.ask(model, [user("Count to 12")], {**fields, "stop": stop})
        assert (answer.text, answer.finish, answer.done) == (left, "stop", True)


async def test_a_chat_backend_is_given_every_field_as_it_came(demo: DemoGateway) -> None:
    fields: dict[str, Any] = {
        "temperature": 0.25,
        "seed": 7,
        "logit_bias": {"50256": -100},
        "metadata": {"a": "b"},
        "something_new": {"deep": [1, 2.5, None, "ü"]},
        "tools": [{**TOOL, "cache_control": {"type": "ephemeral"}}, {"type": "custom", "custom": {"name": "grep"}}],
        "tool_choice": "auto",
        "store": False,
    }
    assert (await demo.ask("chat", [user("Hello")], fields)).changes == ""
    body = body_of(demo.chat.requests[-1])
    assert {name: body[name] for name in fields} == fields
    assert body["model"] == "demo-chat"


async def test_an_image_reaches_the_backends_that_take_one(demo: DemoGateway) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    parts: Any = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
    for model in ("flat", "structured", "chat"):
        assert (await demo.ask(model, [{"role": "user", "content": parts}])).status == 200
        backend = demo.chat if model == "chat" else demo.agent
        assert "iVBORw0KGgo" in str(backend.requests[-1].summary) or "aVZCT1J3MEtHZ28" in str(
            backend.requests[-1].summary
        )
    remote: Any = [{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}]
    for model in AGENT_MODELS:
        answer = await demo.ask(model, [{"role": "user", "content": remote}])
        assert answer.error is not None
        assert (answer.status, answer.error["param"]) == (400, "messages[0].content[0]")
