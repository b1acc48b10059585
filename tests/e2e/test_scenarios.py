"""Every way in which an agent can answer -> what an OpenAI client sees through a serving gateway: in both encodings,
whole and streamed, and in every framing the wire allows."""

import asyncio
import gc
import re
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import httpx
import pytest
import pytest_asyncio

from adapters.warp.demo.scenarios import FRAMING_OPTIONS, SCENARIOS, TOOLS
from gateway.core.conversation import Json, JsonObject
from tests.e2e.answers import Answer
from tests.e2e.demo_gateway import (
    AGENTS,
    STREAMED,
    WHOLE,
    DemoGateway,
    Fields,
    body_of,
    busy,
    demo_gateway,
    query_of,
    user,
)
from tests.e2e.expected import CAT, HELLO, HTTP, PART, STREAMS, UNICODE, Expected
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Tests of their own below.
ELSEWHERE: Final = {"http_401_refresh", "concurrent", "client_cancel", "echo"}
FRAMINGS: Final = (
    "chunk=1",
    "chunk=7",
    "delay_ms=1",
    "padding=0",
    "alphabet=standard",
    "alphabet=hex",
    "quotes=1",
    "space=1",
    "newline=crlf",
    "newline=cr",
    "name=0",
    "lines=3",
    "comments=1",
    "batch=8",
    "done=1",
    "chunk=5 padding=0 alphabet=standard quotes=1 space=1 newline=crlf name=0 lines=2 comments=1 batch=3 done=1",
)
# A megabyte is not written byte by byte.
COARSE: Final = ("chunk=4093", "lines=3", "newline=crlf", "alphabet=standard padding=0")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[DemoGateway]:
    async with demo_gateway() as opened:
        yield opened


async def play(demo: DemoGateway, model: str, name: str, framing: str = "", fields: Fields = WHOLE) -> Answer:
    question = f"Please go on. [[scenario:{name} {framing}]]" if framing else f"Please go on. [[scenario:{name}]]"
    return await demo.ask(model, [user(question)], fields, tools=TOOLS)


def check(answer: Answer, expected: Expected, *, streamed: bool, hasty: bool = False) -> None:
    """`hasty`: text and failure may have arrived in one piece; then the failure may be all that the client hears."""
    if expected.status == 200:
        assert (answer.status, answer.error) == (200, None)
        assert answer.text == expected.text
        assert (answer.reasoning, answer.named, answer.finish) == (
            expected.reasoning,
            [*expected.calls],
            expected.finish,
        )
        estimated = answer.said.get("usage") == "estimated"
        assert (answer.usage, estimated) == (expected.usage or answer.usage, expected.usage is None)
        assert answer.usage is not None
        ids = [call.id for call in answer.calls]
        assert all(ids) and len(set(ids)) == len(ids)
        return
    assert answer.error is not None
    kind = expected.type
    if streamed and expected.begun is not None and not (hasty and answer.status != 200):
        assert answer.status == 200
        # By this type clients know a failure that may pass.
        kind = "server_error" if kind == "upstream_error" else kind
        assert expected.begun.startswith(answer.text) if hasty else answer.text == expected.begun
    else:
        assert (answer.status, answer.text) == (expected.status, "")
    assert (answer.error["type"], answer.error["code"]) == (kind, expected.code)
    assert (answer.calls, answer.finish, answer.done) == ([], None, False)
    assert answer.headers.get("retry-after") == expected.retry


async def test_the_table_is_complete() -> None:
    assert STREAMS.keys() | HTTP.keys() | ELSEWHERE == SCENARIOS.keys()
    assert {part.partition("=")[0] for framing in FRAMINGS for part in framing.split()} == FRAMING_OPTIONS.keys()


def models_for(name: str) -> tuple[str, str]:
    return ("brief", "structured-brief") if name.startswith("stall") else ("flat", "structured")


@pytest.mark.parametrize("name", STREAMS)
async def test_every_answer_in_both_encodings(demo: DemoGateway, name: str) -> None:
    pace = "delay_ms=15" if STREAMS[name].begun is not None else ""

    async def both(model: str) -> None:
        whole, streamed = await asyncio.gather(
            play(demo, model, name, pace), play(demo, model, name, pace, fields=STREAMED)
        )
        check(whole, STREAMS[name], streamed=False)
        check(streamed, STREAMS[name], streamed=True)

    await asyncio.gather(*(both(model) for model in models_for(name)))


@sample(lambda name: (STREAMS[name].finish, STREAMS[name].code, len(STREAMS[name].calls)))
@pytest.mark.parametrize("name", STREAMS)
async def test_every_answer_in_every_framing(demo: DemoGateway, name: str) -> None:
    """The framing changes how an event is written, never what it says."""
    framings = COARSE if name == "long_unicode" else FRAMINGS
    flat, structured = models_for(name)

    async def both(framing: str) -> None:
        by_hex = "hex" in framing and not name.startswith("stall")
        streamed, whole = await asyncio.gather(
            play(demo, "hex" if by_hex else flat, name, framing, fields=STREAMED),
            play(demo, "hex" if by_hex else structured, name, framing),
        )
        check(streamed, STREAMS[name], streamed=True, hasty=True)
        check(whole, STREAMS[name], streamed=False)

    await asyncio.gather(*(both(framing) for framing in framings if "hex" not in framing or flat != "brief"))


@pytest.mark.parametrize("name", HTTP)
async def test_answers_without_a_stream(name: str) -> None:
    """A failure has its status, streamed or not; the gateway never tries a second time by itself."""
    expected, recovers = HTTP[name]
    silent: dict[str, Json] = {"timeouts": {"first_byte": 1, "total": 2}} if expected.status == 504 else {}
    agents: dict[str, dict[str, Json]] = {model: {**AGENTS[model], **silent} for model in ("flat", "structured")}
    async with demo_gateway(agents, {}) as demo:
        for model in agents:
            for fields in (WHOLE, STREAMED):
                check(await play(demo, model, name, fields=fields), expected, streamed=bool(fields))
                if recovers:
                    check(await play(demo, model, name, fields=fields), STREAMS["plain_text"], streamed=bool(fields))
        assert len(demo.agent.requests) == (8 if recovers else 4)


async def test_a_backend_that_finds_a_request_too_large_delays_nobody(
    demo: DemoGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a client that is still sending is waited for."""
    monkeypatch.setattr("gateway.server.api.client_response.LINGER_S", 60)
    async with asyncio.timeout(30):
        for _ in range(3):
            assert (await play(demo, "flat", "http_413")).status == 413


async def test_what_a_failing_backend_says_is_passed_on_only_where_it_helps(demo: DemoGateway) -> None:
    quota = await play(demo, "flat", "quota_http")
    assert quota.error is not None and quota.error["message"] == "You are out of credits until the 1st."
    assert quota.headers["x-should-retry"] == "false"
    page = await play(demo, "flat", "http_403_html")
    assert page.error is not None and not re.search(r"[<>]|Forbidden", str(page.error["message"]))
    assert page.headers["x-should-retry"] == "false"
    key = await play(demo, "flat", "invalid_api_key")
    assert key.error is not None and "Openai" in str(key.error["message"])
    broke = await play(demo, "flat", "internal_error")
    assert broke.error is not None and broke.error["message"] == "The backend failed."


async def test_a_call_and_its_result(demo: DemoGateway) -> None:
    for model in ("flat", "structured"):
        for fields in (WHOLE, STREAMED):
            question = user("What does the file hold? [[scenario:call_then_result]]")
            first = await demo.ask(model, [question], fields, tools=TOOLS)
            (call,) = first.calls
            assert (call.name, call.arguments) == CAT
            assert re.fullmatch(r"request-[0-9a-f]{12}-k1", call.id), "the backend's own id is kept"
            made: Json = {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            messages: list[JsonObject] = [
                question,
                {"role": "assistant", "content": first.text, "tool_calls": [made]},
                {"role": "tool", "tool_call_id": call.id, "content": '{"debug": true}'},
            ]
            second = await demo.ask(model, messages, fields, tools=TOOLS)
            assert (second.text, second.finish) == ("The file holds what the result says.", "stop")
            if model == "flat":
                query = query_of(demo.agent.requests[-1])
                places = [
                    query.index(said)
                    for said in ("What does the file hold?", "Let me", "Called Execute", '{"debug": true}')
                ]
                assert places == sorted(places) and query.count("What does the file hold?") == 1
                assert f"Tool result ({call.id}): " in query
            else:
                sent = body_of(demo.agent.requests[-1])
                text = str(sent["task_context"])
                assert "What does the file hold?" in text and call.id in text
                assert str(sent["input"]).count(call.id) == 1 and "debug" in str(sent["input"])


async def test_reasoning_can_be_left_out(demo: DemoGateway) -> None:
    for fields in (WHOLE, STREAMED):
        answer = await play(demo, "silent", "reasoning_text", fields=fields)
        assert (answer.text, answer.reasoning) == (HELLO, "")


async def test_a_native_call_is_exposed_to_a_client_that_declares_it(demo: DemoGateway) -> None:
    tool: JsonObject = {"type": "function", "function": {"name": "run_shell_command", "parameters": {"type": "object"}}}
    for fields in (WHOLE, STREAMED):
        answer = await demo.ask("expose", [user("[[scenario:native_tool]]")], fields, tools=[tool])
        assert (answer.named, answer.finish) == ([("run_shell_command", '{"command":"ls"}')], "tool_calls")
        assert (await play(demo, "expose", "native_tool", fields=fields)).error is not None


async def test_a_rollback_of_what_was_sent_already_is_an_error(demo: DemoGateway) -> None:
    for model in ("flat-stream", "structured-stream"):
        answer = await play(demo, model, "rollback_retry", "delay_ms=15", fields=STREAMED)
        assert (answer.status, answer.text, answer.code) == (200, "This is wrong.", "upstream_rolled_back")
        check(await play(demo, model, "rollback_retry"), STREAMS["rollback_retry"], streamed=False)
        check(await play(demo, model, "rollback_to_call", fields=STREAMED), STREAMS["rollback_to_call"], streamed=True)
        cut = await play(demo, model, "disconnect_in_transaction", "delay_ms=15", fields=STREAMED)
        assert (cut.text, cut.code) == (PART, "upstream_stream_truncated")


async def test_an_empty_answer_can_be_an_error(demo: DemoGateway) -> None:
    for name in ("empty_finish", "finished_without_reason"):
        answer = await play(demo, "insists", name, fields=STREAMED)
        assert (answer.status, answer.code) == (502, "upstream_empty_answer")


@pytest.mark.parametrize("name", ["bad_base64", "truncated_base64", "bad_protobuf"])
async def test_a_lenient_backend_entry_skips_what_it_cannot_read_and_says_so(demo: DemoGateway, name: str) -> None:
    for fields in (WHOLE, STREAMED):
        answer = await demo.ask("lenient", [user(f"[[scenario:{name}]]")], fields, explain=True)
        assert (answer.text, answer.finish) == (PART, "stop")
        assert answer.rules == ["MALFORMED_EVENT", "USAGE_ESTIMATED"]


async def test_hexadecimal_needs_a_setting(demo: DemoGateway) -> None:
    answer = await play(demo, "flat", "plain_text", "alphabet=hex")
    assert (answer.status, answer.code) == (502, "upstream_invalid_event")


NOTICED: Final[dict[str, list[str]]] = {
    "plain_text": [],
    "native_tool_and_text": ["NATIVE_CALL_DROPPED", "NATIVE_CALL_DROPPED"],
    "rollback_retry": ["ROLLED_BACK"],
    "empty_finish": ["EMPTY_ANSWER"],
    "finished_without_reason": ["EMPTY_ANSWER"],
    "subtask": ["SUBTASK_HIDDEN"],
    "numbers": ["NUMBER_INEXACT"],
    "duplicate_tool_id": ["CALL_ID_RENAMED"],
    "missing_tool_id": ["CALL_ID_ADDED"],
    "never_committed": ["TRANSACTION_OPEN"],
    "moved": ["MESSAGES_MOVED"],
    "moved_in_transaction": ["MESSAGES_MOVED"],
    "moved_back": ["MESSAGES_MOVED", "ROLLED_BACK", "MESSAGES_MOVED"],
    "moved_range_unknown": ["ACTION_SKIPPED"],
    "cited": ["FIELD_NOT_SHOWN"],
    "newer_native_tools": ["NATIVE_CALL_DROPPED"] * 3,
}


@pytest.mark.parametrize("name", NOTICED)
async def test_nothing_is_changed_or_left_out_in_silence(demo: DemoGateway, name: str) -> None:
    for fields in (WHOLE, STREAMED):
        question = [user(f"[[scenario:{name}]]")]
        answer = await demo.ask("flat", question, fields, tools=TOOLS, explain=True)
        told = [rule for rule in answer.rules if rule != "ENVELOPE_OPENED"]
        assert told == [*NOTICED[name], "USAGE_ESTIMATED"]


async def test_usage_that_was_not_counted_is_marked(demo: DemoGateway) -> None:
    for fields in (WHOLE, STREAMED):
        assert (await play(demo, "flat", "usage_only_total", fields=fields)).said == {"usage": "total_only"}
        assert (await play(demo, "flat", "usage_exact", fields=fields)).said == {}
    unasked = await play(demo, "flat", "usage_exact", fields={"stream": True})
    assert unasked.usage is None


def _delayed() -> list[bool]:
    """Of each open TCP connection of this process, whether Nagle's delay is on."""
    transports = [found for found in gc.get_objects() if issubclass(type(found), asyncio.Transport)]
    sockets = [transport.get_extra_info("socket") for transport in transports]
    return [
        sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 0
        for sock in sockets
        if sock is not None and sock.fileno() >= 0 and sock.family in (socket.AF_INET, socket.AF_INET6)
    ]


async def test_no_answer_waits_for_the_acknowledgement_of_its_own_head(demo: DemoGateway) -> None:
    """With Nagle's delay on, every answer takes at least the 40 ms after which a kernel acknowledges what it has."""
    for model in ("flat", "chat"):
        for fields in (WHOLE, STREAMED):
            await demo.ask(model, [user("Hello")], fields)
    # The client's connection and those to both backends, each from both of its sides.
    delayed = _delayed()
    assert len(delayed) >= 4
    assert not any(delayed)


async def test_a_client_hears_something_while_the_backend_is_silent() -> None:
    agents: dict[str, dict[str, Json]] = {"flat": {"timeouts": {"first_byte": 3, "idle": 3}}}
    async with demo_gateway(agents, {}, server={"sse_ping_s": 0.2}) as demo:
        answer = await play(demo, "flat", "stall", fields=STREAMED)
        check(answer, STREAMS["stall"], streamed=True)
        assert answer.comments >= 2


async def test_a_long_answer_is_no_stalled_one() -> None:
    """No timeout passes while text arrives, whether it is sent at once or held until its transaction is committed."""

    limits: dict[str, Json] = {"first_byte": 2, "idle": 2}
    agents: dict[str, dict[str, Json]] = {
        model: {**AGENTS[model], "timeouts": limits} for model in ("flat", "structured")
    }

    async def listen(demo: DemoGateway, model: str, name: str, pace: str, fields: Fields) -> None:
        begun = time.monotonic()
        answer = await play(demo, model, name, pace, fields=fields)
        check(answer, STREAMS[name], streamed=bool(fields))
        assert time.monotonic() - begun > 2

    pace = {"plain_text": "delay_ms=240", "numbers": "chunk=90 delay_ms=200"}
    async with demo_gateway(agents, {}) as demo:
        await asyncio.gather(
            *(
                listen(demo, model, name, pace[name], fields)
                for model in agents
                for name in pace
                for fields in (WHOLE, STREAMED)
            )
        )


async def test_an_expired_token_is_refreshed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many requests meet the expired token; the rotated refresh token outlives the gateway."""
    monkeypatch.setenv("TEST_REFRESH_TOKEN", "first-refresh-token")
    store = tmp_path / "token"
    async with demo_gateway({"flat": {}}, {}) as behind:
        refresh: Json = {
            "token_url": f"{behind.agent.base_url}/proxy/token?key=k",
            "refresh_token_env": "TEST_REFRESH_TOKEN",
            "store": str(store),
            "token_field": "id_token",
        }
        entry: dict[str, Json] = {"refresh": refresh, "path": "/scenario/http_401_refresh/ai/multi-agent"}
        entry["base_url"] = behind.agent.base_url
        async with demo_gateway({"flat": entry}, {}) as demo:
            answers = await asyncio.gather(
                *(demo.ask("flat", [user("Hi")], {"stream": at % 2 == 0}) for at in range(20))
            )
            assert {answer.text for answer in answers} == {HELLO}
        refreshes = [request for request in behind.agent.requests if request.path.startswith("/proxy/token")]
        assert len(refreshes) == 1
        assert "demo-refresh-1" in store.read_text()
        async with demo_gateway({"flat": entry}, {}) as demo:
            assert (await demo.ask("flat", [user("Hi")])).text == HELLO
        assert "demo-refresh-2" in store.read_text()


async def test_a_refused_refresh_is_an_error_and_no_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_REFRESH_TOKEN", "revoked")
    async with demo_gateway({"flat": {}}, {}) as behind:
        refresh: Json = {"token_url": f"{behind.agent.base_url}/proxy/token", "refresh_token_env": "TEST_REFRESH_TOKEN"}
        entry: dict[str, Json] = {
            "refresh": refresh,
            "path": "/scenario/http_401_refresh",
            "base_url": behind.agent.base_url,
        }
        async with demo_gateway({"flat": entry}, {}) as demo:
            for _ in range(3):
                answer = await demo.ask("flat", [user("Hi")], {"stream": True})
                assert (answer.status, answer.code) == (502, "upstream_auth_error")
                assert answer.headers["x-should-retry"] == "false"
        assert len(behind.agent.requests) == 1


async def test_every_character_of_a_question_arrives_and_comes_back(demo: DemoGateway) -> None:
    for fields in (WHOLE, STREAMED):
        answer = await demo.ask("structured", [user(f"{UNICODE}[[scenario:echo]]")], fields)
        assert answer.text == f"{UNICODE}[[scenario:echo]]"


@pytest.mark.full
async def test_fifty_conversations_at_once_stay_apart(demo: DemoGateway) -> None:
    async def talk(at: int) -> str:
        question = f"Session {at} wants its own words back."
        model = ("flat", "structured", "flat-stream")[at % 3]
        answer = await demo.ask(
            model, [user(f"{question} [[scenario:concurrent delay_ms=1]]")], {"stream": at % 2 == 0}
        )
        conversation, _, words = answer.text.partition("|")
        assert words.strip() == question
        return conversation

    conversations = await asyncio.gather(*(talk(at) for at in range(50)))
    assert len(set(conversations)) == 50


@pytest.mark.parametrize("model", ["flat", "structured"])
@pytest.mark.parametrize("name", ["client_cancel", "stall_first", "stall", "stall_headers"])
@pytest.mark.parametrize("fields", [WHOLE, STREAMED], ids=["whole", "streamed"])
async def test_a_client_that_leaves_ends_the_request_to_the_backend(
    demo: DemoGateway, model: str, name: str, fields: Fields
) -> None:
    before = demo.agent.aborted
    body = {"model": model, "messages": [user(f"[[scenario:{name}]]")], **fields}

    async def post() -> None:
        url = f"{demo.gateway.base_url}/v1/chat/completions"
        async with (
            httpx.AsyncClient(trust_env=False, timeout=30) as client,
            client.stream("POST", url, json=body) as response,
        ):
            async for _ in response.aiter_raw():
                pass

    task = asyncio.create_task(post())
    await busy(demo.agent)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        await demo.agent.idle()
    assert demo.agent.aborted == before + 1
