"""Functions that wait for a search, before the demo backend of every wire that has no search of its own: the client of
each API gets one answer, with the call of a function that the gateway's search has loaded."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Conversation, Json, Text, ToolSpec, Turn
from gateway.inspector.views.remade import remake
from gateway.inspector.views.sent import sent_view
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import compare_to_recorded
from gateway.recording.recording import Recording, read_recording, write_recording
from gateway.recording.redact.redact import redact
from gateway.testing.dialect_case import DialectCase
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.dialects.cases import CASES
from tests.server.inspect.test_recent_requests import contents_of
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

# The adapters whose backends know nothing of deferred tools, and what their entries need beside it.
WIRES: Final[Mapping[str, dict[str, Json]]] = {
    "chat": {"adapter": "openai_chat", "base_url": "demo:chat"},
    "text": {"adapter": "text", "base_url": "demo:text"},
    "warp": {"adapter": "warp", "base_url": "demo:agent"},
    "warp, structured": {"adapter": "warp", "base_url": "demo:agent", "encoding": "structured"},
    "gemini": {"adapter": "gemini", "base_url": "demo:gemini"},
    "mapped": {"adapter": "proto", "base_url": "demo:grpc", "preset": "demo"},
}
NAMES: Final = ("get_weather", "send_email", "convert_currency", "book_room", "play_song", "read_stock", "plan_route")
SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of the city, without its country"}},
    "required": ["city"],
}
LONG: Final = "It reads what the stations of the place have measured and answers with all of it as a table of numbers."
QUESTION: Final = "What is the weather in Oslo?"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[RunningGateway]:
    models: dict[str, Json] = {name: {"backend": name, "name": "auto"} for name in WIRES}
    models |= {on_demand(name): {"backend": name, "name": "auto", "tool_loading": "on_demand"} for name in WIRES}
    inspector: Json = {"contents": "always"}
    async with running_gateway({"backends": dict(WIRES), "models": models, "inspector": inspector}) as opened:
        yield opened


def on_demand(wire: str) -> str:
    """The name of the model with tools on demand."""
    return f"{wire}, on demand".replace(", ", "-")


def described(name: str) -> str:
    return f"{name.replace('_', ' ')}. {LONG} {LONG}"


def messages_tools(**fields: Json) -> list[Json]:
    """Functions of a client of Messages."""
    return [{"name": name, "description": described(name), "input_schema": SCHEMA, **fields} for name in NAMES]


def responses_tools(**fields: Json) -> list[Json]:
    """Functions of a client of Responses."""
    return [
        {"type": "function", "name": name, "description": described(name), "parameters": SCHEMA, **fields}
        for name in NAMES
    ]


def chat_tools() -> list[Json]:
    """Functions of a client of chat completions."""
    functions: list[Json] = [{"name": name, "description": described(name), "parameters": SCHEMA} for name in NAMES]
    return [{"type": "function", "function": function} for function in functions]


async def post(gateway: RunningGateway, path: str, body: Mapping[str, Json]) -> Any:
    response = await gateway.client.post(path, json=body, headers={"x-dragoman-explain": "1"})
    assert response.status_code == 200, response.text
    return response.json()


@sample()
@pytest.mark.parametrize("kind", ["tool_search_tool_regex_20251119", "tool_search_tool_bm25_20251119"])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_of_messages_has_its_tools_searched(gateway: RunningGateway, wire: str, kind: str) -> None:
    search: Json = {"type": kind, "name": kind.removesuffix("_20251119")}
    answer = await post(
        gateway,
        "/v1/messages",
        {
            "model": wire,
            "max_tokens": 500,
            "messages": [{"role": "user", "content": QUESTION}],
            "tools": [search, *messages_tools(defer_loading=True)],
        },
    )
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    assert [(call["name"], call["input"]) for call in calls] == [("get_weather", {"city": "Oslo"})], answer
    texts = [block["text"] for block in answer["content"] if block["type"] == "text"]
    assert "".join(texts).strip() == "I look for a tool."
    assert answer["stop_reason"] == "tool_use"
    told = [notice["rule"] for notice in answer["dragoman"]["diagnostics"]]
    assert "TOOLS_HELD_BACK" in told and "TOOLS_LOADED" in told and "TOOL_NOT_SENT" not in told
    opened = [one["detail"] for one in answer["dragoman"]["diagnostics"] if one["rule"] == "ENVELOPE_OPENED"]
    wrapped = ["[MCP Gateway] Transformed call_mcp_tool -> get_weather"]
    assert opened == (wrapped if wire.startswith("warp") else [])


@sample()
@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_of_responses_has_its_tools_searched(gateway: RunningGateway, wire: str) -> None:
    answer = await post(
        gateway,
        "/v1/responses",
        {
            "model": wire,
            "input": QUESTION,
            "tools": [{"type": "tool_search"}, *responses_tools(defer_loading=True)],
        },
    )
    calls = [item for item in answer["output"] if item["type"] == "function_call"]
    assert [(call["name"], call["arguments"]) for call in calls] == [("get_weather", '{"city":"Oslo"}')], answer


@sample()
@pytest.mark.parametrize("wire", WIRES)
async def test_a_client_of_chat_completions_gets_its_tools_on_demand(gateway: RunningGateway, wire: str) -> None:
    asked: dict[str, Json] = {"messages": [{"role": "user", "content": QUESTION}], "tools": chat_tools()}
    answer = await post(gateway, "/v1/chat/completions", {"model": on_demand(wire), **asked})
    (choice,) = answer["choices"]
    (call,) = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert choice["finish_reason"] == "tool_calls"


@sample()
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", [case for case in CASES if str(case) != "openai_completions"], ids=str)
async def test_every_client_reads_the_rounds_as_one_answer(
    gateway: RunningGateway, case: DialectCase, wire: str, stream: bool
) -> None:
    if (str(case), wire) == ("gemini", "gemini"):
        return  # a client and a backend of one API, whose tools pass
    specs = tuple([ToolSpec(name, described(name), SCHEMA) for name in NAMES])
    turns = (Turn("user", (Text(QUESTION),)),)
    asked = Conversation(turns, specs, model=on_demand(wire), stream=stream, include_usage=True)
    response = await gateway.client.post(
        case.target(asked), content=case.write(asked), headers={"content-type": "application/json"}
    )
    assert response.status_code == 200, response.text
    answer = (case.read_stream if stream else case.read_whole)(response.content)
    assert [call.name for call in answer.calls] == ["get_weather"]
    assert answer.text.strip() == "I look for a tool."
    assert answer.finish in (case.finishes["tool_calls"], case.finishes["stop"])
    # Either round alone writes fewer.
    assert answer.error is None and answer.usage is not None and answer.usage[1] > 10


async def test_a_client_that_searches_itself_loads_what_its_results_name(gateway: RunningGateway) -> None:
    found: Json = {"type": "tool_reference", "tool_name": "get_weather"}
    history: list[Json] = [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [found]}]},
    ]
    own: Json = {"name": "find", "description": "Finds tools", "input_schema": {"type": "object"}}
    answer = await post(
        gateway,
        "/v1/messages",
        {
            "model": "chat",
            "max_tokens": 500,
            "messages": history,
            "tools": [own, *messages_tools(defer_loading=True)],
        },
    )
    told = [notice["detail"] for notice in answer["dragoman"]["diagnostics"] if notice["rule"].startswith("TOOLS_")]
    assert told[0].startswith("6 of 8 tools are held back")
    assert told[1] == "the history names or calls 'get_weather', loaded again"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_rounds_of_a_request_are_made_again_from_its_recording(
    gateway: RunningGateway, wire: str, stream: bool
) -> None:
    asked: dict[str, Json] = {
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": chat_tools(),
        "stream": stream,
    }
    headers = {"x-request-id": f"rounds-{wire}-{stream}".replace(", ", "-")}
    answer = await gateway.client.post(
        "/v1/chat/completions", json={"model": on_demand(wire), **asked}, headers=headers
    )
    assert answer.status_code == 200
    state = gateway.app.gateway_state
    assert state.inspector is not None
    contents = contents_of(state.inspector.recent, answer.headers["x-request-id"])
    assert contents is not None
    recorded = contents.interaction
    assert len(recorded.rounds) == 2
    run = run_offline(recorded, state.settings)
    assert [check for check in compare_to_recorded(recorded, run) if check.difference] == []
    assert len(run.hidden) == 1
    assert [notice.rule for notice in run.notices].count("TOOLS_LOADED") == 1
    shown = sent_view(remake(recorded, state.settings)).views
    assert "These tools are loaded" in shown["round 2"] and "These tools are loaded" not in next(iter(shown.values()))
    # A recording is a file as well.
    line = Recording(lines=tuple(recorded.lines()))
    (read,) = read_recording(write_recording(line)).interactions()
    assert run_offline(read, state.settings).client == run.client
    redacted = redact(line, "shape", b"seed", settings=state.settings)
    assert redacted.differences == ()
