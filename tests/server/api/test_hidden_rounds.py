"""A search for tools is answered by the gateway: the client gets one answer without it, from several requests to the
backend, over real sockets."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.sixty_tools import chat_tools

SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The name of the city, without its country"}},
    "required": ["city"],
}
LONG: Final = "It reads what the stations of the place have measured and answers with all of it as a table of numbers."
NAMES: Final = ("get_weather", "send_mail", "list_files", "read_stock", "book_room", "play_song")


def tools(*names: str) -> list[Json]:
    """Functions of a chat client, each with a long description."""
    described: list[Json] = [
        {"name": name, "description": f"{name}. {LONG * 3}", "parameters": SCHEMA} for name in names
    ]
    return [{"type": "function", "function": function} for function in described]


def _sse(document: Json) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def said(text: str = "", calls: Sequence[tuple[str, str]] = (), finish: str | None = None) -> bytes:
    """A chunk of a chat backend."""
    delta: dict[str, Json] = {"content": text} if text else {}
    if calls:
        delta["tool_calls"] = [
            {"index": at, "id": f"call_{name}_{at}", "type": "function", "function": {"name": name, "arguments": given}}
            for at, (name, given) in enumerate(calls)
        ]
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return _sse({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def counted(prompt: int, completion: int, cached: int = 0, thought: int = 0) -> bytes:
    """The chunk with the counts of a chat backend."""
    usage: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }
    return _sse({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage})


DONE: Final = b"data: [DONE]\n\n"
SEARCH: Final = ("tool_search", '{"query":"weather in a city"}')
WEATHER: Final = ("get_weather", '{"city":"Oslo"}')
SEARCHING: Final = (said("Let me look. "), said(calls=[SEARCH]), said(finish="tool_calls"), counted(100, 10, 40, 3))
CALLING: Final = (said("Now. "), said(calls=[WEATHER]), said(finish="tool_calls"), counted(150, 20, 90, 5))


class Rounds:
    """A backend that answers each request by the next of its answers."""

    def __init__(self, *answers: Sequence[bytes]) -> None:
        self._answers = list(answers)

    async def __call__(self, connection: Connection) -> None:
        pieces = self._answers.pop(0)
        await connection.send(HEAD, *[chunk(piece) for piece in pieces])
        if pieces and pieces[-1] is CUT:
            connection.reset()
        elif pieces and pieces[-1] is STALL:
            await connection.gone()
        else:
            await connection.send(chunk(DONE), END)


CUT: Final = b": cut\n\n"
STALL: Final = b": stall\n\n"


@asynccontextmanager
async def serving(
    *answers: Sequence[bytes], loading: str = "on_demand", profile: str | None = None, timeouts: Mapping[str, Json] = {}
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """A gateway before a chat backend with these answers."""
    async with faulty_backend(Rounds(*answers)) as backend:
        entry: Json = {
            "adapter": "openai_chat",
            "base_url": backend.base_url,
            "timeouts": dict(timeouts),
            "profile": profile,
        }
        models: Json = {"m": {"backend": "b", "tool_loading": loading}}
        async with running_gateway({"backends": {"b": entry}, "models": models}) as gateway:
            yield gateway, backend


def sent(backend: FaultyBackend) -> list[Any]:
    """The bodies that the backend got."""
    return [json.loads(body) for _, body in backend.seen]


def names(body: Any) -> list[str]:
    """The functions that a body offers."""
    return [tool["function"]["name"] for tool in body["tools"]]


def chunks(text: str) -> list[Any]:
    """The chunks of a stream to a chat client."""
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(one) for one in data]


async def test_a_search_loads_tools_and_the_client_gets_one_answer() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, backend):
        response = await gateway.chat(tools=tools(*NAMES), stream=False)
    answer = response.json()
    (choice,) = answer["choices"]
    assert choice["message"]["content"] == "Let me look. Now. "
    (call,) = choice["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == WEATHER
    assert choice["finish_reason"] == "tool_calls"
    first, second = sent(backend)
    assert names(first) == ["tool_search"]
    assert names(second)[:2] == ["tool_search", "get_weather"]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    asked, found = second["messages"][len(first["messages"]) :]
    assert asked["content"] == "Let me look. " and asked["tool_calls"][0]["function"]["name"] == "tool_search"
    assert "get_weather" in found["content"] and '"city"' in found["content"]


async def test_the_tokens_of_an_answer_are_those_of_its_rounds() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, _):
        usage = (await gateway.chat(tools=tools(*NAMES), stream=False)).json()["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (250, 30, 280)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 130
    assert usage["completion_tokens_details"]["reasoning_tokens"] == 8


async def test_counts_that_come_in_parts_are_those_of_all_rounds() -> None:
    counts: Json = {"prompt_tokens": 150, "completion_tokens": 20, "total_tokens": 170}
    last = _sse({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": counts})
    calling = (counted(150, 1, 90, 5), *CALLING[:-1], last)
    async with serving(SEARCHING, calling) as (gateway, _):
        usage = (await gateway.chat(tools=tools(*NAMES), stream=False)).json()["usage"]
    assert usage["total_tokens"] == 280
    assert usage["prompt_tokens_details"]["cached_tokens"] == 130


async def test_a_stream_has_one_beginning_one_end_and_no_search() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, _):
        asked: dict[str, Json] = {"stream": True, "stream_options": {"include_usage": True}}
        response = await gateway.chat(tools=tools(*NAMES), **asked)
    got = chunks(response.text)
    deltas = [choice["delta"] for one in got for choice in one["choices"]]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Let me look. Now. "
    assert [choice["finish_reason"] for one in got for choice in one["choices"] if choice["finish_reason"]] == [
        "tool_calls"
    ]
    assert len([delta for delta in deltas if "role" in delta]) == 1
    assert "tool_search" not in response.text and response.text.endswith("data: [DONE]\n\n")
    assert [one["usage"]["prompt_tokens"] for one in got if one.get("usage")] == [250]


async def test_tokens_that_the_backend_did_not_count_are_estimated_for_every_round() -> None:
    async with serving(SEARCHING[:-1], CALLING[:-1]) as (gateway, _):
        usage = (await gateway.chat(tools=tools(*NAMES), stream=False)).json()["usage"]
    async with serving(CALLING[:-1]) as (gateway, _):
        alone = (await gateway.chat(tools=tools(*NAMES), stream=False)).json()["usage"]
    assert usage["prompt_tokens"] > 1.8 * alone["prompt_tokens"]
    assert usage["completion_tokens"] > alone["completion_tokens"]


async def test_what_was_loaded_is_told_with_the_tokens_that_are_saved() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, _):
        headers = {"x-dragoman-explain": "1"}
        body = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "tools": tools(*NAMES)}
        answer = (await gateway.client.post("/v1/chat/completions", json=body, headers=headers)).json()
    told = {notice["rule"]: notice["detail"] for notice in answer["dragoman"]["diagnostics"]}
    assert told["TOOLS_HELD_BACK"].startswith("6 of 6 tools are held back")
    assert "tokens less" in told["TOOLS_HELD_BACK"]
    assert "'get_weather'" in told["TOOLS_LOADED"]
    rules = [notice["rule"] for notice in answer["dragoman"]["diagnostics"]]
    assert rules.count("TOOLS_HELD_BACK") == 1


async def test_a_search_beside_calls_of_the_client_is_not_answered() -> None:
    both = (said(calls=[SEARCH, WEATHER]), said(finish="tool_calls"), counted(100, 10))
    async with serving(both) as (gateway, backend):
        answer = (await gateway.chat(tools=tools(*NAMES), stream=False)).json()
    (call,) = answer["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "get_weather"
    assert len(backend.seen) == 1


async def test_a_fourth_search_is_an_error() -> None:
    async with serving(*[SEARCHING] * 4) as (gateway, backend):
        response = await gateway.chat(tools=tools(*NAMES), stream=False)
    assert response.status_code == 502 and response.json()["error"]["code"] == "upstream_invalid_tool_call"
    assert len(backend.seen) == 4
    last = sent(backend)[-1]
    assert "tool_search" not in names(last) and "last search" in last["messages"][-1]["content"]


@pytest.mark.parametrize("arguments", ["weather", '{"query":"weather in', '["weather"]x'])
async def test_a_search_with_arguments_that_are_no_json_is_made_with_its_words(arguments: str) -> None:
    searching = (said(calls=[("tool_search", arguments)]), said(finish="tool_calls"))
    async with serving(searching, CALLING) as (gateway, backend):
        response = await gateway.chat(tools=tools(*NAMES), stream=False)
    assert response.status_code == 200
    assert names(sent(backend)[-1]) == ["tool_search", "get_weather"]


async def test_an_answer_of_many_searches_has_few_of_them_made() -> None:
    searching = (said(calls=[SEARCH] * 50), said(finish="tool_calls"))
    async with serving(searching, CALLING) as (gateway, backend):
        await gateway.chat(tools=tools(*NAMES), stream=False)
    results = [message["content"] for message in sent(backend)[-1]["messages"] if message["role"] == "tool"]
    assert len(results) == 50
    assert len([text for text in results if "get_weather" in text]) == 8
    assert len([text for text in results if "parameters:" in text]) == 1


async def test_calls_of_two_rounds_with_one_id_stay_two_calls() -> None:
    async with serving(SEARCHING, SEARCHING, CALLING) as (gateway, backend):
        await gateway.chat(tools=tools(*NAMES), stream=False)
    messages = sent(backend)[-1]["messages"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len({*ids}) == 2
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


@pytest.mark.parametrize("limits", [{"max_tool_results": 1}, {"max_history_messages": 2}])
async def test_limits_of_the_history_are_not_for_what_the_rounds_add(limits: dict[str, Json]) -> None:
    history: list[Json] = []
    for number in range(6):
        history += [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "tool_calls": [_call(f"c{number}", "read_stock")]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number}"},
        ]
    search = '<tool_call>\n{"name": "tool_search", "arguments": {"query": "weather"}}\n</tool_call>'
    answers = (written("I look.\n", search), written(search), written("Done."))

    async def play(connection: Connection) -> None:
        await connection.send(HEAD, *[chunk(piece) for piece in answers[len(backend.seen) - 1]], END)

    async with faulty_backend(play) as backend:
        entry: Json = {"adapter": "text", "wire": "llama_cpp", "base_url": backend.base_url}
        models: Json = {"m": {"backend": "b", "tool_loading": "on_demand"}}
        async with running_gateway({**limits, "backends": {"b": entry}, "models": models}) as gateway:
            response = await gateway.chat(tools=tools(*NAMES), messages=history, stream=False)
    assert response.json()["choices"][0]["message"]["content"] == "I look.Done."
    first, second, third = (body["prompt"].partition("User: question 0")[2] for body in sent(backend))
    assert "result 5" in first and "result 0" not in first
    told = first.partition("\n\nUser: Please analyze")[0]
    assert second.startswith(told) and "These tools are loaded" in second
    assert third.startswith(second.partition("\n\nUser: Please analyze")[0])


async def test_a_search_that_an_answer_breaks_off_with_is_told_as_such() -> None:
    cut = (said("Let me"), said(calls=[SEARCH]), said(finish="length"))
    async with serving(cut) as (gateway, backend):
        told = await _told(gateway, {"tools": tools(*NAMES)})
    assert len(backend.seen) == 1
    assert told["SEARCH_NOT_ANSWERED"].endswith("because the answer ended with it: length")


async def _told(gateway: RunningGateway, fields: dict[str, Json], path: str = "/v1/chat/completions") -> dict[str, str]:
    """The notices of an answer, by their rules."""
    body: dict[str, Json] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], **fields}
    answer = (await gateway.client.post(path, json=body, headers={"x-dragoman-explain": "1"})).json()
    return {notice["rule"]: notice["detail"] for notice in answer["dragoman"]["diagnostics"]}


def removing(*offered: str, **fields: Json) -> dict[str, Json]:
    """A request to Messages whose last message removes `get_weather`."""
    named: Json = {"type": "tool_reference", "name": "get_weather"}
    return {
        "max_tokens": 500,
        "tools": [{"name": name, "description": LONG * 3, "input_schema": SCHEMA, **fields} for name in offered],
        "messages": [
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": "Weather?"},
            {"role": "system", "content": [{"type": "tool_removal", "tool": named}]},
        ],
    }


async def test_a_call_of_a_removed_tool_is_answered_for_the_client() -> None:
    async with serving(CALLING, (said("No."), said(finish="stop")), loading="all") as (gateway, backend):
        told = await _told(gateway, removing("get_weather", "send_mail"), "/v1/messages")
    assert "'get_weather', which messages[3] removes" in told["REMOVED_TOOL_CALLED"]
    *_, asked, answered = sent(backend)[-1]["messages"]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"]
    assert "no longer available" in answered["content"]


async def test_a_fourth_call_of_a_removed_tool_is_an_error() -> None:
    async with serving(*[CALLING] * 4, loading="all") as (gateway, backend):
        body = {"model": "m", **removing("get_weather")}
        response = await gateway.client.post("/v1/messages", json=body)
    assert response.status_code == 502 and "which messages[3] removes" in response.json()["error"]["message"]
    assert len(backend.seen) == 4


async def test_a_search_does_not_find_a_removed_tool() -> None:
    async with serving(SEARCHING, (said("No."), said(finish="stop"))) as (gateway, backend):
        await gateway.client.post("/v1/messages", json={"model": "m", **removing(*NAMES, defer_loading=True)})
    assert "get_weather" not in names(sent(backend)[-1])


@pytest.mark.parametrize("second", [(said("Half"), CUT), (said("Half", finish=None),)])
async def test_a_round_that_breaks_is_an_error_and_no_end(second: Sequence[bytes]) -> None:
    async with serving(SEARCHING, second) as (gateway, _):
        response = await gateway.chat(tools=tools(*NAMES), stream=True)
    got = chunks(response.text)
    assert "error" in got[-1]
    assert [c["finish_reason"] for one in got for c in one.get("choices", ()) if c["finish_reason"]] == []


async def test_a_refusal_of_a_later_round_has_its_status_while_nothing_was_sent() -> None:
    async with serving(SEARCHING[1:]) as (gateway, backend):

        async def refuse(connection: Connection) -> None:
            if len(backend.seen) == 1:
                await Rounds(SEARCHING[1:])(connection)
            else:
                await connection.send(b"HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n")

        backend.script = refuse
        response = await gateway.chat(tools=tools(*NAMES), stream=True)
    assert response.status_code == 429


async def test_all_rounds_have_one_total() -> None:
    limits: dict[str, Json] = {"total": 1.5, "idle": 60, "first_byte": 60}
    async with serving(SEARCHING, (said("Half"), STALL), timeouts=limits) as (gateway, _):
        response = await gateway.chat(tools=tools(*NAMES), stream=True)
    assert "timeouts.total" in chunks(response.text)[-1]["error"]["message"]


async def test_a_client_that_leaves_ends_the_round() -> None:
    async with serving(SEARCHING, (said("Half"), STALL)) as (gateway, backend):
        second, script = asyncio.Event(), backend.script

        async def watched(connection: Connection) -> None:
            if len(backend.seen) == 2:
                second.set()
            await script(connection)

        backend.script = watched
        asked = asyncio.create_task(gateway.chat(tools=tools(*NAMES), stream=True))
        async with asyncio.timeout(20):
            await second.wait()
        backend.closed.clear()
        asked.cancel()
        async with asyncio.timeout(20):
            await backend.closed.wait()


async def test_a_limit_of_tokens_is_for_all_rounds() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, backend):
        await gateway.chat(tools=tools(*NAMES), stream=False, max_tokens=64)
    assert [body["max_tokens"] for body in sent(backend)] == [64, 54]


@pytest.mark.parametrize("split", [False, True])
async def test_a_sequence_ends_the_answer_in_any_round(split: bool) -> None:
    # In pieces, the end of the first round's text may begin a sequence.
    searching = (said("Let me E" if split else "Let me"), said(calls=[SEARCH]), said(finish="tool_calls"))
    answering = (said("ND" if split else " look\nE"), said("ND and more"), said(finish="stop"))
    async with serving(searching, answering, profile="openai") as (gateway, _):
        asked: dict[str, Json] = {
            "model": "m",
            "max_tokens": 99,
            "messages": [{"role": "user", "content": "Hello"}],
            "tools": [{"name": name, "description": LONG * 3, "input_schema": SCHEMA} for name in NAMES],
            # More than a chat backend takes: the answer is searched.
            "stop_sequences": ["a1", "a2", "a3", "a4", "END"],
        }
        answer = (await gateway.client.post("/v1/messages", json=asked)).json()
    assert "".join(block["text"] for block in answer["content"]) == ("Let me " if split else "Let me look\n")
    assert (answer["stop_reason"], answer["stop_sequence"]) == ("stop_sequence", "END")


async def test_a_tool_of_the_client_keeps_the_name_of_the_search() -> None:
    searching = (said(calls=[("tool_search_2", '{"query":"weather"}')]), said(finish="tool_calls"))
    called = (said(calls=[("tool_search", '{"city":"x"}')]), said(finish="tool_calls"))
    async with serving(searching, called) as (gateway, backend):
        answer = (await gateway.chat(tools=tools("tool_search", *NAMES), stream=False)).json()
    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "tool_search"
    assert names(sent(backend)[0]) == ["tool_search_2"]


async def test_what_the_history_calls_is_loaded_again_in_the_same_place() -> None:
    answered = (said("Fine"), said(finish="stop"))
    history: list[Json] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "tool_calls": [_call("c1", "read_stock")]},
        {"role": "tool", "tool_call_id": "c1", "content": "7"},
        {"role": "assistant", "tool_calls": [_call("c2", "book_room")]},
        {"role": "tool", "tool_call_id": "c2", "content": "yes"},
    ]
    async with serving(answered, answered) as (gateway, backend):
        await gateway.chat(tools=tools(*NAMES), messages=history[:3])
        await gateway.chat(tools=tools(*NAMES), messages=history)
    first, second = sent(backend)
    assert names(first) == ["tool_search", "read_stock"]
    assert names(second) == ["tool_search", "read_stock", "book_room"]
    assert second["tools"][:2] == first["tools"]


def _call(identity: str, name: str) -> Json:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": '{"city":"x"}'}}


async def test_a_forced_tool_is_loaded_at_once() -> None:
    async with serving(CALLING) as (gateway, backend):
        choice: Json = {"type": "function", "function": {"name": "get_weather"}}
        await gateway.chat(tools=tools(*NAMES), tool_choice=choice, stream=False)
    assert names(sent(backend)[0]) == ["tool_search", "get_weather"]


async def test_a_search_is_no_call_that_the_client_requires() -> None:
    silent = (said("No."), said(finish="stop"))
    async with serving(SEARCHING, silent) as (gateway, _):
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": tools(*NAMES)}
        response = await gateway.client.post(
            "/v1/chat/completions", json={**body, "tool_choice": "required"}, headers={"x-dragoman-explain": "1"}
        )
    assert "TOOL_CHOICE_IGNORED" in [notice["rule"] for notice in response.json()["dragoman"]["diagnostics"]]


async def test_a_required_call_follows_the_first_search_that_finds_something() -> None:
    async with serving(SEARCHING, CALLING) as (gateway, backend):
        answer = (await gateway.chat(tools=tools(*NAMES), tool_choice="required", stream=False)).json()
    assert answer["choices"][0]["finish_reason"] == "tool_calls"
    first, second = sent(backend)
    assert names(first) == ["tool_search"]
    assert names(second)[0] == "get_weather" and "tool_search" not in names(second)


async def test_without_the_setting_every_tool_is_sent_and_asked_once() -> None:
    async with serving(CALLING, loading="all") as (gateway, backend):
        await gateway.chat(tools=tools(*NAMES), stream=False)
    (body,) = sent(backend)
    assert names(body) == list(NAMES)


async def test_few_tools_are_sent_at_once() -> None:
    short: Json = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    async with serving(CALLING) as (gateway, backend):
        await gateway.chat(tools=[short], stream=False)
    assert names(sent(backend)[0]) == ["f"]


def message(*events: dict[str, Json]) -> list[bytes]:
    """A stream of a Messages backend with these content blocks' events."""
    begun: Json = {"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {}}
    framed: list[dict[str, Json]] = [
        {"type": "message_start", "message": begun},
        *events,
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return [b"event: " + str(event["type"]).encode() + b"\n" + _sse(event) for event in framed]


def block(index: int, begun: Json, *deltas: Json) -> list[dict[str, Json]]:
    """The events of a content block."""
    said: list[dict[str, Json]] = [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
    start: dict[str, Json] = {"type": "content_block_start", "index": index, "content_block": begun}
    return [start, *said, {"type": "content_block_stop", "index": index}]


async def test_signed_thinking_of_a_round_goes_back_in_the_next_one() -> None:
    thinking = block(
        0,
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "A tool is missing."},
        {"type": "signature_delta", "signature": "c2lnbmVk"},
    )
    called: Json = {"type": "tool_use", "id": "toolu_1", "name": "tool_search", "input": {}}
    search = block(1, called, {"type": "input_json_delta", "partial_json": '{"query":"weather"}'})
    weather: Json = {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}}
    answers = (message(*thinking, *search), message(*block(0, weather)))

    async def play(connection: Connection) -> None:
        pieces = answers[len(backend.seen) - 1]
        await connection.send(HEAD, *[chunk(piece) for piece in pieces], END)

    async with faulty_backend(play) as backend:
        entry: Json = {"adapter": "anthropic_messages", "base_url": backend.base_url}
        models: Json = {"m": {"backend": "b", "tool_loading": "on_demand"}}
        async with running_gateway({"backends": {"b": entry}, "models": models}) as gateway:
            response = await gateway.chat(tools=tools(*NAMES), stream=False, reasoning_effort="high", max_tokens=9000)
    assert response.json()["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
    _, second = sent(backend)
    asked, found = second["messages"][-2:]
    kinds = [part["type"] for part in asked["content"]]
    assert kinds == ["thinking", "tool_use"]
    assert asked["content"][0]["signature"] == "c2lnbmVk"
    assert found["content"][0]["tool_use_id"] == "toolu_1"


def thinking(text: str, signature: str) -> list[dict[str, Json]]:
    """The events of a signed block of thinking, the first one of a message."""
    said: list[Json] = [
        {"type": "thinking_delta", "thinking": text},
        {"type": "signature_delta", "signature": signature},
    ]
    return block(0, {"type": "thinking", "thinking": "", "signature": ""}, *said)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-sonnet-4-5", [("First", "c2lnMQ=="), ("Second", "c2lnMg==")]),
        # What it thinks behind the search is bound to the search, which the client's history has not.
        ("claude-fable-5-1", [("", "c2lnMQ==")]),
    ],
)
async def test_thinking_of_several_rounds_comes_back_as_it_was_signed(model: str, known: list[tuple[str, str]]) -> None:
    search: Json = {"type": "tool_use", "id": "toolu_1", "name": "tool_search", "input": {"query": "weather"}}
    weather: Json = {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {}}
    answers = (
        message(*thinking("First", "c2lnMQ=="), *block(1, search)),
        message(*thinking("Second", "c2lnMg=="), *block(1, weather)),
        message(*block(0, {"type": "text", "text": "Sunny."})),
    )

    async def play(connection: Connection) -> None:
        pieces = answers[len(backend.seen) - 1]
        await connection.send(HEAD, *[chunk(piece) for piece in pieces], END)

    async with faulty_backend(play) as backend:
        entry: Json = {"adapter": "anthropic_messages", "base_url": backend.base_url, "profile": "anthropic"}
        models: Json = {"m": {"backend": "b", "tool_loading": "on_demand", "name": model}}
        async with running_gateway({"backends": {"b": entry}, "models": models}) as gateway:
            asked: dict[str, Any] = {"tools": tools(*NAMES), "stream": False, "reasoning_effort": "high"}
            question: Json = {"role": "user", "content": "Hello"}
            first = await gateway.chat(messages=[question], max_tokens=9000, **asked)
            said = first.json()["choices"][0]["message"]
            result: Json = {"role": "tool", "tool_call_id": "toolu_2", "content": "sun"}
            await gateway.chat(messages=[question, said, result], max_tokens=9000, **asked)
    assert said["reasoning_content"] == "FirstSecond"
    blocks = sent(backend)[-1]["messages"][1]["content"]
    kept = [(one["thinking"], one["signature"]) for one in blocks if one["type"] == "thinking"]
    assert kept == known


def written(*texts: str) -> list[bytes]:
    """A stream of llama.cpp's completions."""
    pieces: list[dict[str, Json]] = [{"content": text, "stop": False} for text in texts]
    end: dict[str, Json] = {"content": "", "stop": True, "stop_type": "eos"}
    return [_sse(piece) for piece in [*pieces, end]]


async def test_each_round_of_a_text_may_begin_with_the_label_of_the_answer() -> None:
    search = '<tool_call>\n{"name": "tool_search", "arguments": {"query": "weather"}}\n</tool_call>'
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    answers = (written("I look.\n", search, "\nUser: and mail?"), written("Assistant: Now.\n", call))

    async def play(connection: Connection) -> None:
        await connection.send(HEAD, *[chunk(piece) for piece in answers[len(backend.seen) - 1]], END)

    async with faulty_backend(play) as backend:
        entry: Json = {"adapter": "text", "wire": "llama_cpp", "base_url": backend.base_url}
        models: Json = {"m": {"backend": "b", "tool_loading": "on_demand"}}
        async with running_gateway({"backends": {"b": entry}, "models": models}) as gateway:
            response = await gateway.chat(tools=tools(*NAMES), stream=False)
    (choice,) = response.json()["choices"]
    assert choice["message"]["content"] == "I look.Now."
    assert [one["function"]["name"] for one in choice["message"]["tool_calls"]] == ["get_weather"]
    first, second = (body["prompt"] for body in sent(backend))
    assert "get_weather" in first and '"city"' not in first
    assert '"city"' in second and "These tools are loaded" in second


async def test_tools_that_wait_take_no_room_of_the_window() -> None:
    call: Json = {
        "id": "c1",
        "type": "function",
        "function": {"name": "weather_forecast", "arguments": '{"city":"Oslo"}'},
    }
    result = "The wind comes from the north west. " * 500
    history: list[Json] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]
    async with faulty_backend(Rounds((said("Windy."), said(finish="stop")))) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        # All sixty functions are 8,000 tokens, and the result is 4,000.
        model: Json = {
            "backend": "b",
            "tool_loading": "on_demand",
            "context_length": 11_000,
            "compress": {"enabled": True},
        }
        async with running_gateway({"backends": {"b": entry}, "models": {"m": model}}) as gateway:
            await gateway.chat(tools=chat_tools(), messages=history, stream=False)
    assert sent(backend)[0]["messages"][-1]["content"] == result
