import asyncio
import contextlib

import httpx
import pytest

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.scenarios import SCENARIOS, TOOLS
from gateway.demo.serve import DemoBackend, serve_demo
from tests.demo.wires import PROTOBUF, Seen, messages_of, notation, post, question, read


async def ask(backend: DemoBackend, request: pb.Request) -> Seen:
    async with httpx.AsyncClient() as client:
        answer = await post(client, f"{backend.base_url}/ai/multi-agent", request)
    assert answer.status_code == 200, answer.text
    return read(messages_of(answer.content))


async def test_a_text_answer_has_the_bookkeeping_of_the_wire() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        answer = await post(client, f"{backend.base_url}/ai/multi-agent", question("hello"))
    events = messages_of(answer.content)
    assert notation(events) == (
        "I CT AM(server_event) AM(user_query) UP(server_message_data) B AM(agent_output) AP(agent_output.text)* C TD "
        "F(done)"
    )
    assert events[-1].finished.token_usage[0].output > 0
    assert read(events).text.startswith("Hello!")


async def test_a_loop_of_five_steps_in_flattened_text() -> None:
    query = "User: Check the weather in Oslo in five steps"
    async with serve_demo("agent") as backend:
        for step in range(1, 6):
            seen = await ask(backend, question(query, TOOLS))
            ((name, arguments),) = seen.calls
            assert (name, arguments) == ("get_weather", {"city": "Oslo", **({"days": step} if step > 1 else {})})
            query += (
                f"\n\nAssistant: {seen.text}\nTool calls: Called {name} with args: {{}}"
                f"\n\nTool result ({seen.ids[0]}): {step} degrees"
            )
        query += "\n\nUser: Please analyze the tool results above and provide your response."
        seen = await ask(backend, question(query, TOOLS))
    assert seen.calls == []
    assert [f"get_weather says: {step} degrees" in seen.text for step in range(1, 6)] == [True] * 5


async def test_parallel_calls_only_where_they_are_supported() -> None:
    async with serve_demo("agent") as backend:
        both = await ask(backend, question("weather in Paris and Rome", TOOLS))
        one = await ask(backend, question("weather in Paris and Rome", TOOLS, parallel=False))
    assert [arguments for _, arguments in both.calls] == [{"city": "Paris"}, {"city": "Rome"}]
    assert [arguments for _, arguments in one.calls] == [{"city": "Paris"}]


async def test_reasoning_only_where_it_is_supported() -> None:
    async with serve_demo("agent") as backend:
        shown = await ask(backend, question("think: hello", reasoning=True))
        hidden = await ask(backend, question("think: hello", reasoning=False))
    assert shown.reasoning and not hidden.reasoning
    assert shown.text == hidden.text


async def test_a_known_conversation_gets_no_new_task() -> None:
    request = question("hello")
    request.metadata.conversation_id = "c1"
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        events = messages_of((await post(client, f"{backend.base_url}/ai/multi-agent", request)).content)
    assert events[0].init.conversation_id == "c1"
    assert "CT" not in notation(events)


@pytest.mark.parametrize(
    ("body", "headers", "status", "why"),
    [
        (b"\xff\xff", PROTOBUF, 400, "not a Request"),
        (b"", PROTOBUF, 400, "input has no type"),
        (question("hi").SerializeToString(), {"content-type": "application/json"}, 415, "content type"),
    ],
)
async def test_a_request_that_breaks_the_wire_is_refused(
    body: bytes, headers: dict[str, str], status: int, why: str
) -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        answer = await client.post(f"{backend.base_url}/ai/multi-agent", content=body, headers=headers)
    assert answer.status_code == status
    assert why in answer.json()["error"]


async def test_what_was_asked_is_recorded() -> None:
    request = question("hello", TOOLS)
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        await post(client, f"{backend.base_url}/ai/multi-agent?chunk=0", request)
        shown = (await client.get(f"{backend.base_url}/__sim/requests")).json()
        (recorded,) = backend.requests
    assert shown["requests"][0]["body_hex"] == recorded.body_hex == request.SerializeToString().hex()
    assert recorded.path == "/ai/multi-agent?chunk=0"
    assert recorded.headers["content-type"] == "application/x-protobuf"
    summary = shown["requests"][0]["summary"]
    assert summary["input"]["user_inputs"]["inputs"][0]["user_query"]["query"] == "hello"
    assert summary["mcp_context"]["servers"][0]["tools"][0]["name"] == "Execute"


async def test_the_courtesy_routes() -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        login = await client.post(f"{backend.base_url}/client/login")
        listed = await client.get(f"{backend.base_url}/__sim/scenarios")
    assert login.status_code == 204
    assert listed.json().keys() == SCENARIOS.keys()


async def test_fifty_conversations_stay_apart() -> None:
    async with serve_demo("agent") as backend:
        asked = [f"question number {at} [[scenario:concurrent chunk=3]]" for at in range(50)]
        seen = await asyncio.gather(*(ask(backend, question(text)) for text in asked))
    assert [found.text.partition("|")[2] for found in seen] == [f"question number {at}" for at in range(50)]
    assert len({found.text.partition("|")[0] for found in seen}) == 50


@pytest.mark.parametrize("name", ["disconnect_reset", "disconnect_fin", "disconnect_eof"])
async def test_a_cut_of_our_own_is_no_abort(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        with contextlib.suppress(httpx.RemoteProtocolError, httpx.ReadError):
            await post(client, f"{backend.base_url}/ai/multi-agent", question(f"[[scenario:{name}]]"))
        await asyncio.wait_for(backend.idle(), 8)
        assert backend.aborted == 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("name", ["client_cancel", "stall", "stall_first", "held_open"])
async def test_a_client_that_leaves_is_counted(name: str) -> None:
    headers = PROTOBUF
    body = question(f"[[scenario:{name}]]").SerializeToString()
    async with serve_demo("agent") as backend, httpx.AsyncClient() as client:
        async with client.stream("POST", f"{backend.base_url}/ai/multi-agent", content=body, headers=headers) as answer:
            if name != "stall_first":
                await anext(answer.aiter_raw())
            assert (backend.active, backend.aborted) == (1, 0)
        await asyncio.wait_for(backend.idle(), 8)
        assert backend.aborted == 1
        await ask(backend, question("hello"))
        assert backend.aborted == 1


async def test_our_own_shutdown_is_no_abort_and_is_quick() -> None:
    body = question("[[scenario:stall]]").SerializeToString()
    async with httpx.AsyncClient() as client:
        async with serve_demo("agent") as backend:
            url = f"{backend.base_url}/ai/multi-agent"
            answer = await client.send(client.build_request("POST", url, content=body, headers=PROTOBUF), stream=True)
            started = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - started < 60
        assert backend.aborted == 0
        await answer.aclose()
