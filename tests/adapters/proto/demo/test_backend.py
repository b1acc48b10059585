"""The demo service over gRPC: what grpcio's client receives, and what the service refuses."""

from collections.abc import AsyncIterator
from typing import Any, Final, TypeAlias

import grpc
import msgspec
import pytest
import pytest_asyncio

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.backend import METHOD
from adapters.proto.demo.response import envelope
from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo

Turn: TypeAlias = tuple[str, list[dict[str, Any]]]

SCHEMA: Final[dict[str, Json]] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
AS_STRUCT: Final = pb.Tool(name="get_weather", description="The weather in a city", schema=SCHEMA)
AS_TEXT: Final = pb.Tool(
    name="get_weather", description="The weather in a city", schema_json=msgspec.json.encode(SCHEMA).decode()
)
USER: Final[Turn] = ("USER", [{"text": "Weather in Rome?"}])
CALL: Final[Turn] = ("ASSISTANT", [{"call": {"id": "c1", "name": "get_weather", "arguments": {"city": "Rome"}}}])
RESULT: Final[Turn] = ("TOOL", [{"result": {"call_id": "c1", "name": "get_weather", "text": "19 degrees"}}])


class Caller:
    """Calls the method as a program of its own would."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._method = channel.unary_stream(
            METHOD, pb.GenerateRequest.SerializeToString, pb.GenerateResponse.FromString
        )

    async def call(self, *turns: Turn, **fields: Any) -> list[pb.GenerateResponse]:
        """The messages of a response. (Any: the constructor of the message checks the fields.)"""
        request = pb.GenerateRequest(
            turns=[{"role": f"ROLE_{role}", "parts": parts} for role, parts in turns], **fields
        )
        return [message async for message in self._method(request)]


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[DemoBackend]:
    async with serve_demo("grpc") as running:
        yield running


@pytest_asyncio.fixture
async def caller(backend: DemoBackend) -> AsyncIterator[Caller]:
    async with grpc.aio.insecure_channel(backend.base_url.removeprefix("http://")) as channel:
        yield Caller(channel)


def said(messages: list[pb.GenerateResponse]) -> str:
    return "".join(message.text for message in messages)


async def test_an_answer_is_streamed_and_ends_with_its_finish_and_usage(caller: Caller) -> None:
    messages = await caller.call(("USER", [{"text": "Count to 3"}]), model="m")
    assert [message.text for message in messages] == ["1,", " 2,", " 3", ""]
    assert {(message.id, message.model) for message in messages} == {("demo-1", "m")}
    assert [message.finish for message in messages] == [0, 0, 0, pb.FINISH_STOP]
    assert messages[-1].usage == pb.Usage(prompt_tokens=3, completion_tokens=3)


@pytest.mark.parametrize("tool", [AS_STRUCT, AS_TEXT], ids=["struct", "text"])
async def test_a_tool_is_called_and_its_result_is_quoted(caller: Caller, tool: pb.Tool) -> None:
    *_, call, end = await caller.call(USER, tools=[tool])
    assert (call.call.name, dict(call.call.arguments), end.finish) == (
        "get_weather",
        {"city": "Rome"},
        pb.FINISH_TOOL_CALLS,
    )
    assert "19 degrees" in said(await caller.call(USER, CALL, RESULT, tools=[tool]))


@pytest.mark.parametrize(
    ("fields", "called"),
    [
        ({"tool_choice": {"mode": "MODE_NONE"}}, []),
        ({"tool_choice": {"mode": "MODE_REQUIRED"}}, ["get_weather"]),
        ({"tool_choice": {"name": "get_time"}}, ["get_time"]),
    ],
)
async def test_a_choice_is_obeyed(caller: Caller, fields: dict[str, Any], called: list[str]) -> None:
    tools = [AS_TEXT, pb.Tool(name="get_time")]
    messages = await caller.call(("USER", [{"text": "Good morning."}]), tools=tools, **fields)
    assert [message.call.name for message in messages if message.HasField("call")] == called


async def test_calls_side_by_side_are_allowed_or_not(caller: Caller) -> None:
    question: Turn = ("USER", [{"text": "Weather in Rome and Paris?"}])
    for parallel, count in ((None, 2), (True, 2), (False, 1)):
        messages = await caller.call(question, tools=[AS_TEXT], parallel_calls=parallel)
        assert sum(message.HasField("call") for message in messages) == count


async def test_limits_cut_the_text(caller: Caller) -> None:
    count: Turn = ("USER", [{"text": "Count to 9"}])
    short = await caller.call(count, limits={"max_tokens": 2})
    assert (said(short), short[-1].finish) == ("1, 2,", pb.FINISH_LENGTH)
    stopped = await caller.call(count, limits={"stop": ["", "4"]})
    assert (said(stopped), stopped[-1].finish) == ("1, 2, 3, ", pb.FINISH_STOP)


@pytest.mark.parametrize(("effort", "thinks"), [("", False), ("none", False), ("low", True)])
async def test_reasoning_comes_when_it_is_asked_for(caller: Caller, effort: str, thinks: bool) -> None:
    messages = await caller.call(("USER", [{"text": "Hello"}]), reasoning_effort=effort)
    thought = "".join(message.reasoning for message in messages)
    assert bool(thought) is thinks is bool(messages[-1].usage.reasoning_tokens)


@pytest.mark.parametrize(
    ("turns", "fields", "reason"),
    [
        ([], {}, "turns: must not be empty"),
        ([("UNSPECIFIED", [{"text": "x"}])], {}, "turns[0].role"),
        ([USER, ("ASSISTANT", [])], {}, "turns[1].parts: must not be empty"),
        ([("USER", [{"text": "x"}, {}])], {}, "turns[0].parts[1]: must have content"),
        ([("USER", CALL[1])], {}, "turns[0].parts[0].call: cannot stand in a turn of ROLE_USER"),
        ([USER, ("ASSISTANT", RESULT[1])], {}, "turns[1].parts[0].result"),
        ([USER, CALL], {}, "turns[1]: the call 'c1' has no result"),
        ([USER, CALL, USER, RESULT], {}, "turns[1]: the call 'c1' has no result"),
        ([USER, RESULT], {}, "turns[1]: the result 'c1' belongs to no preceding call"),
        ([USER], {"tools": [pb.Tool(name="f", schema_json="[]")]}, "the schema of 'f' is not a JSON object"),
        ([("USER", [{"text": "[[demo:none]]"}])], {}, "there is no fault 'none'"),
    ],
)
async def test_a_request_that_breaks_the_rules_is_refused(
    caller: Caller, turns: list[Turn], fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await caller.call(*turns, **fields)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reason in (refused.value.details() or "")


async def test_another_method_is_not_implemented(backend: DemoBackend) -> None:
    async with grpc.aio.insecure_channel(backend.base_url.removeprefix("http://")) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await channel.unary_unary("/acme.Other/Method")(b"")
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED and "/acme.Other/Method" in str(
        refused.value.details()
    )


async def test_a_compressed_request_is_not_implemented(backend: DemoBackend) -> None:
    target = backend.base_url.removeprefix("http://")
    async with grpc.aio.insecure_channel(target, compression=grpc.Compression.Gzip) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await Caller(channel).call(("USER", [{"text": "x" * 10_000}]))
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_requests_are_shown_with_the_names_of_their_fields(backend: DemoBackend, caller: Caller) -> None:
    await caller.call(USER, model="m")
    (request,) = backend.requests
    shown = request.as_json()
    assert isinstance(shown, dict)
    assert (shown["method"], shown["path"]) == ("POST", METHOD)
    assert shown["summary"] == {
        "model": "m",
        "turns": [{"role": "ROLE_USER", "parts": [{"text": "Weather in Rome?"}]}],
    }
    assert request.body == envelope(pb.GenerateRequest.FromString(request.body[5:]).SerializeToString())


async def test_a_client_that_leaves_ends_its_response(backend: DemoBackend) -> None:
    async with grpc.aio.insecure_channel(backend.base_url.removeprefix("http://")) as channel:
        method = channel.unary_stream(METHOD, pb.GenerateRequest.SerializeToString, pb.GenerateResponse.FromString)
        call = method(pb.GenerateRequest(turns=[{"role": "ROLE_USER", "parts": [{"text": "hi [[demo:stall]]"}]}]))
        await call.read()
        assert backend.active == 1
        call.cancel()
        await backend.idle()
    assert backend.aborted == 1
