"""One contract for every backend that can be reached: what a client may rely on, whichever wire is behind the model.

A backend is one entry of `BACKENDS`. What it cannot do is said there, and is refused by the gateway, not missing.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.local import backend_for_model, find_weights, run_model
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.e2e.answers import Answer, read_stream, read_whole
from tests.e2e.demo_gateway import busy, user

pytestmark = pytest.mark.asyncio(loop_scope="module")

WEATHER: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "get_time",
        "description": "Tells the current time in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
ASKED: Final = "What is the weather in Paris?"
STREAM: Final = {"stream": True, "stream_options": {"include_usage": True}}
BOTH: Final = pytest.mark.parametrize("fields", [{}, STREAM], ids=["whole", "streamed"])


class Backend(msgspec.Struct, frozen=True):
    """`scripted`: a demo backend, whose words are known. `forces`: it can be held to a call.
    `limits`: it knows max_tokens. `faults`: what to write into a question, and the status and code that a whole answer
    then has."""

    open: Callable[[], AbstractAsyncContextManager[tuple[dict[str, Json], DemoBackend | None]]]
    scripted: bool = True
    forces: bool = True
    limits: bool = True
    faults: Mapping[str, tuple[int, str]] = {}


def _demo(
    kind: str, adapter: str, **entry: Json
) -> Callable[[], AbstractAsyncContextManager[tuple[dict[str, Json], DemoBackend]]]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[dict[str, Json], DemoBackend]]:
        async with serve_demo(kind) as backend:
            yield {"adapter": adapter, "base_url": backend.base_url, **entry}, backend

    return opened


@asynccontextmanager
async def _local() -> AsyncIterator[tuple[dict[str, Json], None]]:
    try:
        weights = find_weights()
    except SettingsError as error:
        pytest.skip(error.message.partition(":")[0])
    with run_model(weights) as model:
        yield backend_for_model(model.base_url), None


DEMO_FAULTS: Final[Mapping[str, tuple[int, str]]] = {
    "[[demo:context_length]]": (400, "context_length_exceeded"),
    "[[demo:error_first]]": (502, "upstream_error"),
    "[[demo:truncated]]": (502, "upstream_stream_truncated"),
    "[[demo:disconnect how=reset]]": (502, "upstream_stream_truncated"),
}
BACKENDS: Final[Mapping[str, Backend]] = {
    "demo-text": Backend(
        _demo("text", "adapters.text.backend:TextAdapter"),
        faults={**DEMO_FAULTS, "[[demo:bad_json]]": (502, "upstream_invalid_event")},
    ),
    "demo-chat": Backend(
        _demo("chat", "adapters.openai_chat.backend:OpenAIChatAdapter"),
        faults={name: told for name, told in DEMO_FAULTS.items() if "context" in name},
    ),
    "demo-messages": Backend(
        _demo("messages", "adapters.anthropic_messages.backend:AnthropicMessagesAdapter"),
        faults={name: told for name, told in DEMO_FAULTS.items() if "context" in name},
    ),
    "demo-gemini": Backend(
        _demo("gemini", "adapters.gemini.backend:GeminiAdapter"),
        faults={name: told for name, told in DEMO_FAULTS.items() if "context" in name},
    ),
    "demo-grpc": Backend(
        _demo("grpc", "adapters.proto.backend:ProtoAdapter", preset="demo"),
        faults={
            **{name: told for name, told in DEMO_FAULTS.items() if "error_first" not in name},
            "[[demo:unavailable]]": (503, "upstream_overloaded"),
            "[[demo:reset]]": (502, "upstream_stream_truncated"),
        },
    ),
    "demo-agent": Backend(
        _demo("agent", "adapters.warp.backend:WarpAdapter"),
        forces=False,
        limits=False,
        faults={
            "[[scenario:context_exceeded]]": (400, "context_length_exceeded"),
            "[[scenario:disconnect_reset]]": (502, "upstream_stream_truncated"),
        },
    ),
    "local": Backend(_local, scripted=False),
}


class OpenedBackend(msgspec.Struct, frozen=True):
    backend: Backend
    gateway: RunningGateway
    demo: DemoBackend | None

    async def ask(self, messages: list[Any], **fields: object) -> Answer:
        """At temperature 0, so that a model says the same thing twice."""
        limit = {} if self.backend.scripted else {"max_tokens": 64}
        body = {"model": "m", "messages": messages, "temperature": 0, **limit, **fields}
        answer = await self.gateway.client.post("/v1/chat/completions", json=body, timeout=120)
        streamed = answer.headers["content-type"].startswith("text/event-stream")
        return read_stream(answer) if streamed else read_whole(answer)


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=[pytest.param(name, marks=[pytest.mark.local] if name == "local" else []) for name in BACKENDS],
)
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[OpenedBackend]:
    backend = BACKENDS[request.param]
    async with backend.open() as (entry, demo):
        settings: dict[str, Json] = {
            "backends": {"b": entry},
            "models": {"m": {"backend": "b"}},
        }
        async with running_gateway(settings) as gateway:
            yield OpenedBackend(backend, gateway, demo)


@BOTH
async def test_a_question_is_answered(opened: OpenedBackend, fields: dict[str, object]) -> None:
    answer = await opened.ask([user("Say hello.")], **fields)
    assert answer.status == 200 and answer.text.strip() and answer.text == answer.text.lstrip()
    assert (answer.calls, answer.done) == ([], True)
    assert answer.finish == "stop" or (answer.finish == "length" and not opened.backend.scripted)


async def test_a_stream_says_what_a_whole_answer_says(opened: OpenedBackend) -> None:
    whole = await opened.ask([user("Say hello.")])
    streamed = await opened.ask([user("Say hello.")], **STREAM)
    assert (whole.text, whole.finish, whole.calls) == (streamed.text, streamed.finish, streamed.calls)


async def test_tokens_are_counted_when_a_stream_is_asked_for_them(opened: OpenedBackend) -> None:
    for answer in (await opened.ask([user("Say hello.")]), await opened.ask([user("Say hello.")], **STREAM)):
        counts = answer.usage or {}
        prompt, completion, total = (counts[f"{name}_tokens"] for name in ("prompt", "completion", "total"))
        assert isinstance(prompt, int) and isinstance(completion, int) and prompt > 0 and completion > 0
        assert total == prompt + completion
    assert (await opened.ask([user("Say hello.")], stream=True)).usage is None


@BOTH
async def test_a_tool_is_called_and_its_result_is_used(opened: OpenedBackend, fields: dict[str, object]) -> None:
    forced = {} if opened.backend.scripted else {"tool_choice": "required"}
    first = await opened.ask([user(ASKED)], tools=[WEATHER], **forced, **fields)
    assert first.status == 200 and first.finish == "tool_calls"
    (call,) = first.calls
    assert call.name == "get_weather" and isinstance(msgspec.json.decode(call.arguments, type=dict)["city"], str)
    said = {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
    messages = [
        user(ASKED),
        {"role": "assistant", "content": first.text or None, "tool_calls": [said]},
        {"role": "tool", "tool_call_id": call.id, "content": "18 degrees and sunny"},
    ]
    second = await opened.ask(messages, tools=[WEATHER], **fields)
    assert second.status == 200 and second.done
    if opened.backend.scripted:
        assert "18 degrees and sunny" in second.text and (second.calls, second.finish) == ([], "stop")


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"get_weather", "get_time"}),
        ({"type": "function", "function": {"name": "get_time"}}, {"get_time"}),
    ],
)
async def test_a_call_can_be_required(opened: OpenedBackend, choice: Json, names: set[str]) -> None:
    answer = await opened.ask([user("Good morning.")], tools=[WEATHER, TIME], tool_choice=choice)
    if not opened.backend.forces:
        assert (answer.status, answer.code) == (400, "unsupported_parameter")
        return
    (call,) = answer.calls
    assert call.name in names and isinstance(msgspec.json.decode(call.arguments), dict)
    assert answer.finish == "tool_calls"


async def test_tools_are_left_alone_when_the_choice_is_none(opened: OpenedBackend) -> None:
    answer = await opened.ask([user(ASKED)], tools=[WEATHER], tool_choice="none")
    assert (answer.status, answer.calls) == (200, []) and answer.text


@BOTH
async def test_two_calls_may_stand_side_by_side(opened: OpenedBackend, fields: dict[str, object]) -> None:
    _only_scripted(opened)
    question = [user("What is the weather in Paris and the time in Rome?")]
    answer = await opened.ask(question, tools=[WEATHER, TIME], **fields)
    assert answer.named == [("get_weather", '{"city":"Paris"}'), ("get_time", '{"city":"Rome"}')]
    assert len({call.id for call in answer.calls}) == 2
    alone = await opened.ask(question, tools=[WEATHER, TIME], parallel_tool_calls=False, **fields)
    assert alone.named == [("get_weather", '{"city":"Paris"}')]


async def test_a_loop_of_five_steps_ends(opened: OpenedBackend) -> None:
    _only_scripted(opened)
    messages: list[Any] = [user("Look up the weather in Paris in five steps.")]
    ids: list[str] = []
    for _ in range(8):
        answer = await opened.ask(messages, tools=[WEATHER])
        if not answer.calls:
            break
        assert answer.finish == "tool_calls"
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in answer.calls
        ]
        messages.append({"role": "assistant", "content": answer.text or None, "tool_calls": calls})
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": f"finding {len(ids)}"} for call in answer.calls
        ]
        ids += [call.id for call in answer.calls]
    assert len(ids) == len(set(ids)) == 5
    assert all(f"finding {at}" in answer.text for at in range(5))


@BOTH
async def test_an_answer_ends_before_a_stop_sequence(opened: OpenedBackend, fields: dict[str, object]) -> None:
    whole = await opened.ask([user("Count to 9.")], **fields)
    place = len(whole.text) // 2
    stop = whole.text[place : place + 3]
    answer = await opened.ask([user("Count to 9.")], stop=[stop], **fields)
    assert (answer.text, answer.finish) == (whole.text.partition(stop)[0], "stop")


@BOTH
async def test_an_answer_that_is_too_long_says_so(opened: OpenedBackend, fields: dict[str, object]) -> None:
    if not opened.backend.limits:
        pytest.skip("this wire has no limit")
    answer = await opened.ask([user("Count to 900.")], max_tokens=4, **fields)
    assert answer.text and answer.finish == "length"


async def test_a_client_that_leaves_takes_the_backends_request_with_it(opened: OpenedBackend) -> None:
    _only_scripted(opened)
    assert opened.demo is not None
    stall = "[[scenario:stall]]" if opened.demo.kind == "agent" else "[[demo:stall]]"
    aborted = opened.demo.aborted
    body = {"model": "m", "messages": [user(f"Count to 9. {stall}")], "stream": True}
    async with opened.gateway.client.stream("POST", "/v1/chat/completions", json=body) as answer:
        await anext(answer.aiter_raw())
        await busy(opened.demo)
    async with asyncio.timeout(5):
        await opened.demo.idle()
    assert opened.demo.aborted == aborted + 1


async def test_what_is_wrong_with_a_request_is_told(opened: OpenedBackend) -> None:
    for body, status, code in (
        ({"model": "nobody", "messages": [user("Hi")]}, 404, "model_not_found"),
        ({"model": "m", "messages": []}, 400, None),
        ({"model": "m", "messages": [user("Hi")], "n": 2}, 400, "unsupported_parameter"),
    ):
        answer = await opened.gateway.client.post("/v1/chat/completions", json=body)
        error = answer.json()["error"]
        assert answer.status_code == status and error["type"] == "invalid_request_error"
        assert code is None or error["code"] == code


@BOTH
async def test_a_failure_is_never_an_answer(opened: OpenedBackend, fields: dict[str, object]) -> None:
    for marker, (status, code) in opened.backend.faults.items():
        answer = await opened.ask([user(f"Count to 9. {marker}")], **fields)
        assert answer.code == code, marker
        assert answer.finish is None and answer.status in (200, status) and (answer.status == status or fields), marker


async def test_a_conversation_that_does_not_fit_is_refused(opened: OpenedBackend) -> None:
    if opened.backend.scripted:
        pytest.skip("a scripted model has no context")
    answer = await opened.ask([user("word " * 20_000)])
    assert (answer.status, answer.code) == (400, "context_length_exceeded")


def _only_scripted(opened: OpenedBackend) -> None:
    if not opened.backend.scripted:
        pytest.skip("a small model does not do so reliably")
