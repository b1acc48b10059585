"""Known defects of gateways between OpenAI clients and this agent wire, with one test for each broken rule."""

import asyncio
import json
import logging
import ssl
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.warp.demo.scenarios import TOOLS
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.server.api.app import create_app
from gateway.settings import read_settings
from tests.e2e.answers import Answer
from tests.e2e.checkers import check_log, check_text
from tests.e2e.demo_gateway import AGENTS, STREAMED, WHOLE, DemoGateway, Fields, body_of, demo_gateway, query_of, user

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOTH: Final[tuple[Fields, ...]] = (WHOLE, STREAMED)
HELLO: Final = "Hello, world. This is a plain answer."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[DemoGateway]:
    policies: dict[str, tuple[str, dict[str, Json]]] = {
        "flat-short": ("flat", {"max_history_messages": 5}),
        "structured-short": ("structured", {"max_history_messages": 5}),
        "flat-bare": ("flat", {"disable_warp_tools": True}),
    }
    async with demo_gateway(AGENTS, policies) as opened:
        yield opened


async def play(demo: DemoGateway, name: str, fields: Fields = WHOLE, model: str = "flat", knobs: str = "") -> Answer:
    marker = f"[[scenario:{name} {knobs}]]" if knobs else f"[[scenario:{name}]]"
    return await demo.ask(model, [user(f"Please. {marker}")], fields, tools=TOOLS)


def made(*calls: tuple[str, str, str]) -> JsonObject:
    listed: list[Json] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def result(call_id: str, content: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


async def test_the_question_is_asked_also_when_results_are_last(demo: DemoGateway) -> None:
    """The last user message went neither into the history nor into the query once a tool result followed it: the
    model saw what the tools said, and not what it had been asked."""
    messages = [user("How warm is it in Oslo?"), made(("c1", "get_weather", "{}")), result("c1", "4 degrees")]
    await demo.ask("flat", messages)
    query = query_of(demo.agent.requests[-1])
    assert query.count("How warm is it in Oslo?") == 1
    assert query.index("How warm is it in Oslo?") < query.index("4 degrees")
    await demo.ask("structured", messages)
    assert str(demo.agent.requests[-1].summary).count("How warm is it in Oslo?") == 1


async def test_results_stay_with_their_calls_in_order_and_through_a_short_memory(demo: DemoGateway) -> None:
    """All results were put behind all calls, those before the last question were left out though their calls stayed,
    and a history cut by count fell apart in the middle of a round."""
    messages: list[JsonObject] = []
    for number in range(5):
        messages += [
            user(f"Question {number}"),
            made((f"c{number}", "get_weather", f'{{"n":{number}}}')),
            result(f"c{number}", f"Result {number}"),
        ]
    await demo.ask("flat", messages)
    query = query_of(demo.agent.requests[-1])
    places = [query.index(said) for n in range(5) for said in (f"Question {n}", f'{{"n":{n}}}', f"Result {n}")]
    assert places == sorted(places)
    for ending in range(1, len(messages) + 1):
        await demo.ask("flat-short", messages[:ending])
        check_text(query_of(demo.agent.requests[-1]))
        await demo.ask("structured-short", messages[:ending])
        check_log(demo.agent.requests[-1].summary)


@pytest.mark.parametrize("model", ["flat", "structured", "flat-bare"])
async def test_the_backend_is_never_allowed_all_of_its_tools(demo: DemoGateway, model: str) -> None:
    """An empty list of supported tools was sent to forbid tools, but on this wire it allows every one of them, and a
    forgotten 0 in it allows the shell."""
    for tools in ((), TOOLS):
        await demo.ask(model, [user("Hello")], tools=tools)
        settings = body_of(demo.agent.requests[-1])["settings"]
        assert isinstance(settings, dict) and settings["supported_tools"] == ["TOOL_CALL_MCP_TOOL"]


async def test_a_streamed_answer_ends_for_the_reason_it_has(demo: DemoGateway) -> None:
    """A stream with tool calls ended with `stop`, so that agents stopped; its `[DONE]` was missing; and a failure
    became a `stop` with `[DONE]`."""
    for fields in BOTH:
        assert (await play(demo, "single_mcp_call", fields)).finish == "tool_calls"
        assert (await play(demo, "plain_text", fields)).finish == "stop"
        assert (await play(demo, "max_tokens", fields)).finish == "length"
    broken = await play(demo, "quota_after_text", STREAMED, knobs="delay_ms=15")
    assert (broken.status, broken.finish, broken.done, broken.code) == (200, None, False, "insufficient_quota")


async def test_parallel_calls_stay_apart(demo: DemoGateway) -> None:
    """Call deltas had no index, or always 0: clients put two calls into one, with names and arguments run together."""
    for name in ("parallel_calls", "parallel_calls_two_events"):
        for fields in BOTH:
            answer = await play(demo, name, fields)
            assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [
                ("Execute", {"command": "cat config.json"}),
                ("get_weather", {"city": "Paris", "days": 3}),
            ]
            assert len({call.id for call in answer.calls}) == 2


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("quota_in_stream", 429, "insufficient_quota"),
        ("context_exceeded", 400, "context_length_exceeded"),
        ("llm_unavailable", 503, "upstream_overloaded"),
        ("internal_error", 502, "upstream_error"),
        ("other", 502, "upstream_error"),
        ("invalid_api_key", 502, "upstream_auth_error"),
    ],
)
async def test_a_bad_end_is_an_error(demo: DemoGateway, name: str, status: int, code: str) -> None:
    """The reason was looked for under a key that does not exist, so a spent quota and an overlong conversation looked
    like answers that had ended well."""
    for fields in BOTH:
        answer = await play(demo, name, fields)
        assert (answer.status, answer.code, answer.finish) == (status, code, None)


async def test_text_that_is_told_again_is_not_repeated(demo: DemoGateway) -> None:
    """An update that holds the whole text so far was appended to it, and the conversation's title and summary were
    given out as the answer."""
    for model in ("flat", "flat-stream", "structured"):
        for fields in BOTH:
            assert (await play(demo, "mask_edge", fields, model)).text == "Hello world"
            assert (await play(demo, "metadata", fields, model)).text == HELLO
            assert (await play(demo, "plain_text", fields, model)).text == HELLO


async def test_what_the_backend_takes_back_is_not_answered(demo: DemoGateway) -> None:
    """Transactions were ignored: text and calls that had been rolled back stayed in the answer."""
    for fields in BOTH:
        answer = await play(demo, "rollback_retry", fields)
        assert (answer.text, answer.calls, answer.finish) == ("This is right.", [], "stop")
        again = await play(demo, "rollback_to_call", fields)
        assert [call.name for call in again.calls] == ["get_weather"]
        assert (await play(demo, "rollback_end", fields)).status == 503
    for fields in BOTH:
        assert (await play(demo, "rollback_to_call", fields, "flat-stream")).named == again.named


async def test_reasoning_is_passed_on_apart_from_the_text(demo: DemoGateway) -> None:
    """Messages of the kind that holds the reasoning were not known, and got lost without a word."""
    for fields in BOTH:
        answer = await play(demo, "reasoning_text", fields)
        assert answer.reasoning == "The user wants an answer. I shall give one."
        assert answer.text == HELLO
    settings = body_of(demo.agent.requests[-1])["settings"]
    assert isinstance(settings, dict) and settings["supports_reasoning_message"] is True


async def test_a_call_of_the_backends_own_tools_is_neither_given_away_nor_lost_in_silence(demo: DemoGateway) -> None:
    """Calls of the wire's own tools were given to clients that never declared them, every field turned into text; or
    they were dropped, and an empty answer looked like a success."""
    for fields in BOTH:
        only = await play(demo, "native_tool", fields)
        assert (only.status, only.code, only.calls) == (502, "upstream_unsupported_tool", [])
        beside = await demo.ask("flat", [user("[[scenario:native_tool_and_text]]")], fields, explain=True)
        assert (beside.text, beside.calls, beside.finish) == ("I looked around.", [], "stop")
        assert "NATIVE_CALL_DROPPED" in beside.rules


COUNTED: Final[dict[str, Any]] = {"type": "object", "properties": {"n": {"$ref": "#/$defs/whole"}}}
MEASURE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "count": {"$ref": "#/$defs/whole"},
        "ratio": {"type": "number"},
        "big": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "nested": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/counted"}]}},
        "nul": {"type": ["integer", "null"]},
        "s": {"type": "string"},
    },
    "$defs": {"whole": {"type": "integer"}, "counted": COUNTED},
}


async def test_whole_numbers_stay_whole_and_text_stays_text(demo: DemoGateway) -> None:
    """The wire knows only doubles: 5 became 5.0, which tools that want an integer refuse, and large numbers lost
    digits without a word."""
    tool: JsonObject = {"type": "function", "function": {"name": "measure", "parameters": MEASURE}}
    for model in ("flat", "structured"):
        for fields in BOTH:
            answer = await demo.ask(model, [user("[[scenario:numbers]]")], fields, tools=[tool], explain=True)
            (call,) = answer.calls
            assert call.arguments == (
                '{"count":5,"ratio":1.5,"big":9007199254740992,"nested":[{"n":1}],"nul":null,"s":"5"}'
            )
            assert answer.rules.count("NUMBER_INEXACT") == 1
    history = [user("Go"), made(("c1", "measure", '{"count":9007199254740993}')), result("c1", "ok")]
    answer = await demo.ask("structured", history, explain=True)
    assert "NUMBER_INEXACT" in answer.rules


async def test_no_conversation_knows_anything_of_another(demo: DemoGateway) -> None:
    """One task and one conversation served every caller, so that users saw each other's context; and what the backend
    wants back unchanged was taken apart and put together anew."""

    async def talk(name: str) -> tuple[str, list[str]]:
        question = user(f"{name} asks. [[scenario:call_then_result]]")
        body = {"model": "structured", "messages": [question], "tools": TOOLS}
        first = await demo.gateway.client.post("/v1/chat/completions", json=body)
        message = first.json()["choices"][0]["message"]
        (call,) = message["tool_calls"]
        carried = call["extra_content"]["warp"]
        await demo.ask("structured", [question, message, result(call["id"], f"{name} only")], tools=TOOLS)
        sent = next(str(request.summary) for request in reversed(demo.agent.requests) if f"{name} only" in str(request))
        assert f"'conversation_id': '{carried['conversation_id']}'" in sent and carried["message_id"] in sent
        return sent, [carried["conversation_id"], carried["message_id"], carried["task_id"], f"{name} asks"]

    told = await asyncio.gather(*(talk(name) for name in ("Ada", "Bob", "Cleo", "Dan")))
    for at, (sent, _) in enumerate(told):
        foreign = [word for other, (_, own) in enumerate(told) if other != at for word in own]
        assert len(set(foreign)) == 12 and [word for word in foreign if word in sent] == []
    stranger = await demo.ask("structured", [user("I am new here")])
    fresh = body_of(demo.agent.requests[-1])
    assert stranger.status == 200 and "metadata" not in fresh and fresh["task_context"] == {}


async def test_what_the_backend_wants_back_comes_back_unchanged(demo: DemoGateway) -> None:
    """ProviderState fields were decoded and encoded again, and so changed."""
    opaque = "CgQI/+8=\n not base64 \u00e9\u4e16 =="
    call: dict[str, Any] = {
        "id": "c1",
        "type": "function",
        "function": {"name": "Execute", "arguments": "{}"},
        "extra_content": {"warp": {"conversation_id": "conv-1", "server_message_data": opaque, "message_id": "m-1"}},
    }
    await demo.ask("structured", [user("Hi"), {"role": "assistant", "tool_calls": [call]}, result("c1", "ok")])
    sent: Any = demo.agent.requests[-1].summary
    assert sent["metadata"] == {"conversation_id": "conv-1"}
    (found,) = [entry for entry in sent["task_context"]["tasks"][0]["messages"] if entry["id"] == "m-1"]
    assert found["server_message_data"] == opaque


async def test_a_rate_limit_is_told_and_an_equal_request_is_sent_again(demo: DemoGateway) -> None:
    """A 429 led to a new token, a new account or a second attempt instead of a 429; a wait of fixed length ended as a
    success; and an equal request within a few seconds was given the earlier answer."""
    before = len(demo.agent.requests)
    for fields in BOTH:
        answer = await play(demo, "http_429_endless", fields)
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "rate_limit_exceeded", "1")
    assert [request.path for request in demo.agent.requests][before:] == ["/ai/multi-agent"] * 2
    first, second = [(await play(demo, "concurrent")).text for _ in range(2)]
    assert first.partition("|")[0] != second.partition("|")[0], "each answer is the backend's own"
    began = time.monotonic()
    stalled = await play(demo, "stall", STREAMED, "impatient")
    assert (stalled.code, stalled.done) == ("upstream_timeout", False)
    assert time.monotonic() - began < 30, "the settings say how long to wait"


async def test_a_backend_is_reached_only_over_trusted_tls() -> None:
    """Certificates were not checked, so anybody on the way could read the conversation and the credential."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Path(__file__).with_name("untrusted.pem"))
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(10))
        writer.write(b"HTTP/1.1 429 x\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    async with server, demo_gateway({"flat": {"base_url": f"https://127.0.0.1:{port}"}}, {}) as demo:
        answer = await demo.ask("flat", [user("Hello")])
    assert (answer.status, answer.code, heard) == (502, "upstream_tls_error", [])
    assert answer.headers["x-should-retry"] == "false"


async def test_conversations_are_not_logged(demo: DemoGateway, caplog: pytest.LogCaptureFixture) -> None:
    """Whole prompts and payloads stood in the log, at the level that everybody has on."""
    caplog.set_level(logging.INFO)
    messages = [
        {"role": "system", "content": "The password is xyzzy-system."},
        user("xyzzy-question [[scenario:native_tool_and_text]]"),
        made(("c1", "get_weather", '{"city": "xyzzy-argument"}')),
        result("c1", "xyzzy-result"),
        result("c1", "xyzzy-twice"),
        user("xyzzy-more [[scenario:numbers]]"),
    ]
    for model in ("flat", "structured"):
        for fields in BOTH:
            assert (await demo.ask(model, messages, fields, tools=TOOLS)).status == 200
            assert (await demo.ask(f"{model}-short", messages, fields)).status == 200
    await play(demo, "bad_base64")
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("gateway")]
    assert len(lines) > 8
    assert [line for line in lines if "xyzzy" in line or "9007199254740992" in line] == []


async def test_the_gateway_is_open_to_other_machines_only_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bound to all addresses without asking anybody for a key, it lent its credential to the whole network."""
    monkeypatch.delenv("DRAGOMAN_API_KEYS", raising=False)
    assert read_settings({}).server.host == "127.0.0.1"
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(SettingsError, match="DRAGOMAN_API_KEYS"):
            create_app(read_settings({"server": {"host": host}})).gateway_state.check_exposure(False)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384, 300_000])
async def test_a_request_of_any_size_is_a_request(demo: DemoGateway, length: int) -> None:
    """Requests were made by patching the bytes of a recorded one, which holds for texts below 128 bytes and for the
    very tools of the recording."""
    text = ("ä" * length)[:length]
    count = length % 41
    tools: list[JsonObject] = [
        {"type": "function", "function": {"name": f"tool_{at}", "description": text[:5000], "parameters": MEASURE}}
        for at in range(count)
    ]
    await demo.ask("structured", [{"role": "system", "content": "S" * length}, user(text)], tools=tools)
    sent = body_of(demo.agent.requests[-1])
    assert json.dumps(sent["input"], ensure_ascii=False).count("ä") == length
    assert str(sent["input"]).count("S" * length) >= 1
    servers: Any = sent.get("mcp_context", {"servers": [{"tools": []}]})
    offered = servers["servers"][0]["tools"]
    assert [tool["name"] for tool in offered] == [f"tool_{at}" for at in range(count)]
    assert all(tool["input_schema"] == MEASURE for tool in offered)


@pytest.mark.parametrize("name", ["bad_base64", "truncated_base64", "bad_protobuf", "disconnect_eof"])
async def test_an_event_that_cannot_be_read_fails_the_answer(demo: DemoGateway, name: str) -> None:
    """An unreadable event was skipped with a DEBUG line only: its text was missing in the answer."""
    for model in ("flat", "structured", "flat-stream"):
        for fields in BOTH:
            answer = await play(demo, name, fields, model)
            assert answer.error is not None and answer.finish is None
            assert answer.code in ("upstream_invalid_event", "upstream_stream_truncated")


async def test_usage_and_finish_reasons_are_those_that_clients_know(demo: DemoGateway) -> None:
    """The counts were 0 or missing though the wire had a total, and a failure ended with the reason `error`, which no
    client knows."""
    for fields in BOTH:
        exact = (await play(demo, "usage_exact", fields)).usage
        assert exact is not None
        assert [exact[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")] == [30, 12, 42]
        total = await play(demo, "usage_only_total", fields)
        assert total.usage is not None and total.usage["total_tokens"] == 42
        assert total.said == {"usage": "total_only"}
        for name in ("quota_after_text", "internal_error", "stall", "bad_protobuf"):
            assert (await play(demo, name, fields, "impatient")).finish is None


async def test_nothing_is_sent_twice_and_the_status_is_the_backends(demo: DemoGateway) -> None:
    """A retry inside a stream sent the beginning twice; and since the 200 was sent before the request to the backend,
    no stream could fail with a status."""
    for name in ("disconnect_fin", "disconnect_reset", "disconnect_before_actions"):
        before = len(demo.agent.requests)
        broken = await play(demo, name, STREAMED, knobs="delay_ms=15")
        assert len(demo.agent.requests) - before == 1
        assert broken.code == "upstream_stream_truncated"
        assert broken.text == ("" if name == "disconnect_before_actions" else "This much arrived")
    for name, status in {"quota_http": 429, "http_404": 404, "wrong_content_type": 502}.items():
        assert (await play(demo, name, STREAMED)).status == status
