"""Tests common uses of the unchanged official OpenAI SDK with the gateway and its demo backends."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

import openai
import pytest
import pytest_asyncio
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from gateway.demo.serve import DemoBackend
from tests.e2e.checkers import check_log
from tests.e2e.demo_gateway import AGENTS, DemoGateway, busy, demo_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS: Final = ("flat", "structured", "chat")
KEYS: Final = "one-key,another-key"

# The SDK's own types for messages and tools are dictionaries of many shapes.
Messages = list[Any]
Function = Callable[..., str]


def tool(name: str, description: str, **parameters: str) -> Any:
    properties = {name: {"type": kind} for name, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(parameters), "additionalProperties": False}
    function = {"name": name, "description": description, "parameters": schema, "strict": True}
    return {"type": "function", "function": function}


WEATHER: Final = tool("get_weather", "The weather of a city.", city="string")
TIME: Final = tool("get_time", "The time in a city.", city="string")
ADD: Final = tool("add", "Add two numbers.", a="integer", b="integer")


class Desk:
    """A client of the SDK and the demo that it talks to."""

    def __init__(self, demo: DemoGateway, client: AsyncOpenAI) -> None:
        self.demo = demo
        self.client = client

    def backend(self, model: str) -> DemoBackend:
        return self.demo.chat if model.startswith("chat") else self.demo.agent


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk() -> AsyncIterator[Desk]:
    agents = {
        name: AGENTS[name] for name in ("flat", "structured", "impatient", "brief", "flat-stream", "structured-stream")
    }
    policies = {"flat-strict": ("flat", {"repair": "strict"})}
    async with (
        demo_gateway(agents, policies) as demo,
        AsyncOpenAI(base_url=f"{demo.gateway.base_url}/v1", api_key="unused", max_retries=0) as client,
    ):
        yield Desk(demo, client)


def ask(text: str) -> Messages:
    return [{"role": "user", "content": text}]


async def run_tools(
    client: AsyncOpenAI, model: str, question: str, functions: Mapping[str, Function], tools: list[Any], **fields: Any
) -> tuple[str, Messages, int]:
    """The loop that every agent framework has: call, run, answer, until there is no call left."""
    messages = ask(question)
    for rounds in range(12):
        answer = await client.chat.completions.create(model=model, messages=messages, tools=tools, **fields)
        message = answer.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            assert answer.choices[0].finish_reason == "stop"
            return message.content or "", messages, rounds
        assert answer.choices[0].finish_reason == "tool_calls"
        for call in message.tool_calls:
            assert call.type == "function"
            result = functions[call.function.name](**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    raise AssertionError("the loop does not end")


@pytest.mark.parametrize("model", MODELS)
async def test_a_plain_answer(desk: Desk, model: str) -> None:
    answer = await desk.client.chat.completions.create(model=model, messages=ask('Say "Guten Tag, 世界"'))
    assert answer.choices[0].message.content == "Guten Tag, 世界"
    assert (answer.choices[0].finish_reason, answer.model, answer.object) == ("stop", model, "chat.completion")
    assert answer.usage is not None and answer.usage.completion_tokens > 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@pytest.mark.parametrize("model", ["flat-stream", "structured-stream", "chat"])
async def test_a_streamed_answer_and_its_usage(desk: Desk, model: str) -> None:
    stream = await desk.client.chat.completions.create(
        model=model, messages=ask("Count to 30"), stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    *body, last = chunks
    assert "".join(chunk.choices[0].delta.content or "" for chunk in body) == ", ".join(map(str, range(1, 31)))
    assert [chunk.choices[0].finish_reason for chunk in body if chunk.choices[0].finish_reason] == ["stop"]
    assert last.choices == [] and last.usage is not None and last.usage.completion_tokens > 20
    assert len({chunk.id for chunk in chunks}) == 1 and len(body) > 5

    unasked = await desk.client.chat.completions.create(model=model, messages=ask("Count to 3"), stream=True)
    assert [chunk.usage async for chunk in unasked if chunk.usage or not chunk.choices] == []


@pytest.mark.parametrize("model", MODELS)
async def test_a_round_with_one_tool(desk: Desk, model: str) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        asked.append(city)
        return "18 degrees and sunny"

    text, messages, rounds = await run_tools(
        desk.client, model, "What is the weather in Paris?", {"get_weather": get_weather}, [WEATHER, TIME]
    )
    assert (asked, rounds, len(messages)) == (["Paris"], 1, 4)
    assert text == "get_weather says: 18 degrees and sunny"


@pytest.mark.parametrize("model", MODELS)
async def test_a_round_with_parallel_tools(desk: Desk, model: str) -> None:
    functions: dict[str, Function] = {
        "get_weather": lambda city: f"sun over {city}",
        "get_time": lambda city: f"noon in {city}",
    }
    question = "What is the weather in Paris and the time in Tokyo?"
    text, messages, rounds = await run_tools(desk.client, model, question, functions, [WEATHER, TIME])
    assert [call.function.name for call in messages[1].tool_calls] == ["get_weather", "get_time"]
    assert len({call.id for call in messages[1].tool_calls}) == 2
    assert (rounds, len(messages)) == (1, 5)
    assert "sun over Paris" in text and "noon in Tokyo" in text
    one_by_one = await run_tools(desk.client, model, question, functions, [WEATHER, TIME], parallel_tool_calls=False)
    assert one_by_one[2] == 2, "parallel_tool_calls=False is honoured"


@pytest.mark.parametrize("model", MODELS)
async def test_an_agent_loop_of_five_steps(desk: Desk, model: str) -> None:
    seen: list[tuple[int, int]] = []

    def add(a: int, b: int) -> str:
        assert (type(a), type(b)) == (int, int)
        seen.append((a, b))
        return f"{a + b} (step {len(seen)})"

    text, messages, rounds = await run_tools(desk.client, model, "Add 2 and 3 in five steps", {"add": add}, [ADD])
    assert (rounds, seen) == (5, [(2, 3)] * 5)
    assert [f"5 (step {step})" in text for step in range(1, 6)] == [True] * 5
    ids = [call.id for message in messages[1:-1:2] for call in message.tool_calls]
    assert len(set(ids)) == 5, "every call of the conversation has an id of its own"


@pytest.mark.parametrize("model", MODELS)
async def test_streamed_tool_calls_are_put_together_by_index(desk: Desk, model: str) -> None:
    stream = await desk.client.chat.completions.create(
        model=model,
        messages=ask("What is the weather in Paris and the time in Tokyo?"),
        tools=[WEATHER, TIME],
        stream=True,
    )
    calls: dict[int, list[str]] = {}
    finish = None
    async for chunk in stream:
        for delta in chunk.choices[0].delta.tool_calls or ():
            assert delta.function is not None
            if delta.index not in calls:
                assert delta.id and delta.function.name
                calls[delta.index] = [delta.function.name, ""]
            calls[delta.index][1] += delta.function.arguments or ""
        finish = chunk.choices[0].finish_reason or finish
    assert finish == "tool_calls" and sorted(calls) == [0, 1]
    assert [(name, json.loads(arguments)) for name, arguments in calls.values()] == [
        ("get_weather", {"city": "Paris"}),
        ("get_time", {"city": "Tokyo"}),
    ]


@pytest.mark.parametrize("model", MODELS)
async def test_the_stream_helper(desk: Desk, model: str) -> None:
    async with desk.client.chat.completions.stream(
        model=model, messages=ask("What is the weather in Paris?"), tools=[WEATHER]
    ) as stream:
        kinds = {event.type async for event in stream}
        final = await stream.get_final_completion()
    assert {"chunk", "tool_calls.function.arguments.delta", "tool_calls.function.arguments.done"} <= kinds
    assert final.choices[0].message.tool_calls
    (call,) = final.choices[0].message.tool_calls
    assert (call.function.name, call.function.parsed_arguments) == ("get_weather", {"city": "Paris"})
    async with desk.client.chat.completions.stream(model=model, messages=ask('Say "one two three"')) as stream:
        deltas = [event.delta async for event in stream if event.type == "content.delta"]
        assert "".join(deltas) == (await stream.get_final_completion()).choices[0].message.content == "one two three"


@pytest.mark.parametrize("model", MODELS)
async def test_an_agent_loop_over_the_stream_helper(desk: Desk, model: str) -> None:
    """What the helper puts together goes back as history, with the fields that it adds and those that we send."""
    messages: Messages = ask("What is the weather in Paris and then the time in Tokyo?")
    asked: list[str] = []
    for _ in range(5):
        async with desk.client.chat.completions.stream(
            model=model, messages=messages, tools=[WEATHER, TIME], stream_options={"include_usage": True}
        ) as stream:
            final = await stream.get_final_completion()
        message = final.choices[0].message
        assert final.usage is not None and final.usage.total_tokens > 0
        messages.append(message)
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            asked.append(call.function.name)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{call.function.name} in {call.id}"})
    assert asked == ["get_weather", "get_time"] and len(messages) == 6
    assert "get_weather in " in messages[-1].content and "get_time in " in messages[-1].content
    sent: Any = desk.backend(model).requests[-1].summary
    if model == "structured":
        assert sent["metadata"]["conversation_id"].startswith("conversation-")
        check_log(sent)
    raw = await desk.client.chat.completions.with_raw_response.create(model=model, messages=[*messages, *ask("Thanks")])
    assert "repair" not in raw.headers.get("x-dragoman-changes", "")


class Report(BaseModel):
    city: str
    degrees: int


async def test_structured_output_is_honoured_or_refused(desk: Desk) -> None:
    parsed = await desk.client.chat.completions.parse(
        model="chat", messages=ask("Report 18 degrees in Paris"), response_format=Report
    )
    assert isinstance(parsed.choices[0].message.parsed, Report)
    with pytest.raises(openai.BadRequestError) as refused:
        await desk.client.chat.completions.parse(model="flat", messages=ask("Report"), response_format=Report)
    assert refused.value.param == "response_format"


@pytest.mark.parametrize(
    ("model", "question"),
    [
        ("flat", "[[scenario:client_cancel]]"),
        ("structured", "[[scenario:client_cancel]]"),
        ("chat", "Write 2000 words [[demo:slow ms=20]]"),
    ],
)
async def test_leaving_in_mid_stream_closes_the_request_to_the_backend(desk: Desk, model: str, question: str) -> None:
    backend = desk.backend(model)
    before = backend.aborted
    stream = await desk.client.chat.completions.create(model=model, messages=ask(question), stream=True)
    words = 0
    async for chunk in stream:
        words += bool(chunk.choices[0].delta.content)
        if words == 3:
            break
    await stream.close()
    async with asyncio.timeout(30):
        await backend.idle()
    assert backend.aborted == before + 1
    answer = await desk.client.chat.completions.create(model=model, messages=ask('Say "still here"'))
    assert answer.choices[0].message.content == "still here"


@pytest.mark.parametrize(
    ("model", "question"), [("flat", "[[scenario:client_cancel]]"), ("chat", "[[demo:stall_headers]]")]
)
async def test_a_client_that_gives_up_waiting_closes_the_request_to_the_backend(
    desk: Desk, model: str, question: str
) -> None:
    backend = desk.backend(model)
    before = backend.aborted
    asking = asyncio.create_task(desk.client.chat.completions.create(model=model, messages=ask(question)))
    await busy(backend)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    async with asyncio.timeout(5):
        await backend.idle()
    assert backend.aborted == before + 1


FAILURES: Final[list[tuple[str, str, type[openai.APIStatusError], int, str]]] = [
    ("flat", "[[scenario:context_exceeded]]", openai.BadRequestError, 400, "context_length_exceeded"),
    ("chat", "[[demo:context_length]]", openai.BadRequestError, 400, "context_length_exceeded"),
    ("chat", "[[demo:status code=400]]", openai.BadRequestError, 400, "invalid_value"),
    ("no-such-model", "Hello", openai.NotFoundError, 404, "model_not_found"),
    ("flat", "[[scenario:http_404]]", openai.NotFoundError, 404, "model_not_found"),
    ("flat", "[[scenario:quota_http]]", openai.RateLimitError, 429, "insufficient_quota"),
    ("structured", "[[scenario:quota_in_stream]]", openai.RateLimitError, 429, "insufficient_quota"),
    ("chat", "[[demo:quota]]", openai.RateLimitError, 429, "insufficient_quota"),
    ("flat", "[[scenario:internal_error]]", openai.InternalServerError, 502, "upstream_error"),
    ("flat", "[[scenario:http_401]]", openai.InternalServerError, 502, "upstream_auth_error"),
    ("flat", "[[scenario:disconnect_before_actions]]", openai.InternalServerError, 502, "upstream_stream_truncated"),
    ("flat", "[[scenario:llm_unavailable]]", openai.InternalServerError, 503, "upstream_overloaded"),
    ("brief", "[[scenario:stall_first]]", openai.InternalServerError, 504, "upstream_timeout"),
    ("chat", "[[demo:status code=500]]", openai.InternalServerError, 502, "upstream_error"),
    ("chat", "[[demo:status code=503]]", openai.InternalServerError, 503, "upstream_overloaded"),
    ("chat", "[[demo:html]]", openai.InternalServerError, 502, "upstream_invalid_response"),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("model", "question", "kind", "status", "code"), FAILURES)
async def test_a_failure_before_the_first_word_has_its_class(
    desk: Desk, model: str, question: str, kind: type[openai.APIStatusError], status: int, code: str, stream: bool
) -> None:
    with pytest.raises(kind) as failed:
        await desk.client.chat.completions.create(model=model, messages=ask(question), stream=stream)
    assert (failed.value.status_code, failed.value.code) == (status, code)
    assert failed.value.request_id and failed.value.type


async def test_an_error_as_the_first_event_is_no_stream(desk: Desk) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        await desk.client.chat.completions.create(model="chat", messages=ask("[[demo:error_first]]"), stream=True)
    assert (failed.value.status_code, failed.value.code) == (502, "upstream_error")


@pytest.mark.parametrize(
    ("model", "question"),
    [("flat", "[[scenario:http_429_endless]]"), ("chat", "[[demo:status code=429 retry_after=1]]")],
)
async def test_a_rate_limit_tells_how_long_to_wait(desk: Desk, model: str, question: str) -> None:
    with pytest.raises(openai.RateLimitError) as limited:
        await desk.client.chat.completions.create(model=model, messages=ask(question))
    assert limited.value.response.headers["retry-after"] == "1"
    assert limited.value.code == "rate_limit_exceeded" or model == "chat"


async def test_the_sdk_itself_tries_again_and_the_gateway_does_not(desk: Desk) -> None:
    backend = desk.backend("flat")
    before = len(backend.requests)
    patient = desk.client.with_options(max_retries=2)
    answer = await patient.chat.completions.create(model="flat", messages=ask("[[scenario:http_503_then_ok]]"))
    assert answer.choices[0].message.content == "Hello, world. This is a plain answer."
    assert len(backend.requests) - before == 2
    before = len(backend.requests)
    with pytest.raises(openai.RateLimitError):
        await patient.chat.completions.create(model="flat", messages=ask("[[scenario:quota_http]]"))
    assert len(backend.requests) - before == 1, "a spent quota says that trying again is of no use"


@pytest.mark.parametrize(
    ("model", "question", "text", "code"),
    [
        ("flat", "[[scenario:quota_after_text delay_ms=15]]", "This much arrived", "insufficient_quota"),
        ("structured", "[[scenario:disconnect_fin delay_ms=15]]", "This much arrived", "upstream_stream_truncated"),
        ("flat", "[[scenario:disconnect_eof delay_ms=15]]", "This much arrived", "upstream_stream_truncated"),
        ("flat", "[[scenario:bad_base64 delay_ms=15]]", "This much arrived", "upstream_invalid_event"),
        ("impatient", "[[scenario:stall]]", "This much arrived", "upstream_timeout"),
        ("chat", "Count to 9 [[demo:disconnect]]", None, "upstream_stream_truncated"),
    ],
)
async def test_a_failure_in_mid_stream_raises(
    desk: Desk, model: str, question: str, text: str | None, code: str
) -> None:
    stream = await desk.client.chat.completions.create(model=model, messages=ask(question), stream=True)
    heard = ""
    finish: list[str] = []
    with pytest.raises(openai.APIError) as failed:
        async for chunk in stream:
            heard += chunk.choices[0].delta.content or ""
            finish += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    assert heard and finish == [] and failed.value.code == code
    assert text is None or heard == text


@pytest.mark.parametrize("model", MODELS)
async def test_the_headers_of_an_answer(desk: Desk, model: str) -> None:
    broken = [*ask("Hi"), {"role": "tool", "tool_call_id": "nobody", "content": "42"}]
    raw = await desk.client.chat.completions.with_raw_response.create(
        model=model, messages=broken, extra_headers={"x-request-id": "my-own-id"}
    )
    assert raw.headers["x-request-id"] == "my-own-id" == raw.parse()._request_id
    assert raw.headers["x-dragoman-backend"] == model
    assert "repair=1" in raw.headers["x-dragoman-changes"]
    sound = await desk.client.chat.completions.with_raw_response.create(model=model, messages=ask("Hi"))
    assert "x-dragoman-changes" not in sound.headers and sound.headers["x-request-id"].startswith("req_")
    streamed = await desk.client.chat.completions.with_raw_response.create(model=model, messages=broken, stream=True)
    assert "repair=1" in streamed.headers["x-dragoman-changes"]
    assert [chunk async for chunk in streamed.parse()]


async def test_a_strict_route_names_the_culprit(desk: Desk) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await desk.client.chat.completions.create(
            model="flat-strict", messages=[*ask("Hi"), {"role": "tool", "tool_call_id": "nobody", "content": "42"}]
        )
    assert refused.value.param == "messages[1].role"
    assert "TOOL_ORPHAN" in refused.value.message and "nobody" in refused.value.message


async def test_the_list_of_models(desk: Desk) -> None:
    listed = [model.id async for model in desk.client.models.list()]
    assert {*MODELS, "impatient", "flat-strict"} <= set(listed)
    assert (await desk.client.models.retrieve("flat")).id == "flat"
    with pytest.raises(openai.NotFoundError):
        await desk.client.models.retrieve("nothing")


async def test_a_key_is_asked_for_where_one_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_CLIENT_KEYS", KEYS)
    async with demo_gateway({"flat": {}}, {}, server={"api_keys_env": "TEST_CLIENT_KEYS"}) as demo:
        for key in KEYS.split(","):
            async with AsyncOpenAI(base_url=f"{demo.gateway.base_url}/v1", api_key=key) as client:
                answer = await client.chat.completions.create(model="flat", messages=ask('Say "in"'))
                assert answer.choices[0].message.content == "in"
        async with AsyncOpenAI(base_url=f"{demo.gateway.base_url}/v1", api_key="wrong-key") as client:
            for request in (client.chat.completions.create(model="flat", messages=ask("Hi")), client.models.list()):
                with pytest.raises(openai.AuthenticationError) as refused:
                    await request
                assert refused.value.code == "invalid_api_key" and "wrong-key" not in str(refused.value)


async def test_an_unreachable_backend_is_a_connection_error_of_the_gateway() -> None:
    async with (
        demo_gateway({"flat": {"base_url": "http://127.0.0.1:9"}}, {}) as demo,
        AsyncOpenAI(base_url=f"{demo.gateway.base_url}/v1", api_key="-", max_retries=0) as client,
    ):
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(model="flat", messages=ask("Hi"))
    assert (failed.value.status_code, failed.value.code) == (502, "upstream_connection_error")


async def test_the_client_without_asyncio(desk: Desk) -> None:
    def use() -> tuple[str | None, str]:
        with OpenAI(base_url=f"{desk.demo.gateway.base_url}/v1", api_key="unused") as client:
            answer = client.chat.completions.create(model="flat", messages=ask('Say "no loop"'))
            stream = client.chat.completions.create(model="chat", messages=ask('Say "none here"'), stream=True)
            streamed = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        return answer.choices[0].message.content, streamed

    assert await asyncio.to_thread(use) == ("no loop", "none here")


@pytest.mark.parametrize("model", MODELS)
async def test_an_answer_goes_back_as_history_as_the_sdk_dumps_it(desk: Desk, model: str) -> None:
    """The dump holds refusal, annotations, audio and function_call, all of them null."""
    answer = await desk.client.chat.completions.create(model=model, messages=ask('Say "one"'))
    dumped: Any = answer.choices[0].message.model_dump()
    assert dumped["function_call"] is None
    raw = await desk.client.chat.completions.with_raw_response.create(
        model=model, messages=[*ask('Say "one"'), dumped, *ask('Say "two"')]
    )
    assert raw.parse().choices[0].message.content == "two"
    assert "repair" not in raw.headers.get("x-dragoman-changes", "")


async def test_a_forced_tool_is_forced_or_refused(desk: Desk) -> None:
    choice: Any = {"type": "function", "function": {"name": "get_time"}}
    answer = await desk.client.chat.completions.create(
        model="chat", messages=ask("Hello Paris"), tools=[WEATHER, TIME], tool_choice=choice
    )
    assert answer.choices[0].message.tool_calls
    (call,) = answer.choices[0].message.tool_calls
    assert call.type == "function" and call.function.name == "get_time"
    for model in ("flat", "structured"):
        with pytest.raises(openai.BadRequestError) as refused:
            await desk.client.chat.completions.create(
                model=model, messages=ask("Hello Paris"), tools=[WEATHER, TIME], tool_choice=choice
            )
        assert refused.value.param == "tool_choice"
