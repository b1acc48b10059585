"""What a person sees of a request at a glance: one sentence, the whole answer, old and new values."""

import asyncio
import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.redact.canaries import CANARIES, core_of
from tests.server.api.inspect.test_request_routes import TOOLS, asked, shown
from tests.server.api.inspect.test_routes import settings

CANARY: Final = CANARIES["openai"]
WORDS: Final = "Your plan allows 3 requests"


def call(arguments: Json, call_id: str = "c_1") -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "weather", "arguments": arguments}}


def calling(arguments: Json, call_id: str = "c_1", result_id: str | None = None) -> list[Json]:
    return [
        {"role": "user", "content": "Wetter?"},
        {"role": "assistant", "content": "", "tool_calls": [call(arguments, call_id)]},
        {"role": "tool", "tool_call_id": result_id or call_id, "content": "Regen"},
        {"role": "user", "content": "Danke"},
    ]


def over(base_url: str, **inspector: Json) -> dict[str, Json]:
    entry: Json = {"adapter": "openai_chat", "base_url": base_url}
    return {**settings(None, **inspector), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}


def event(choice: Json) -> bytes:
    return chunk(b"data: %s\n\n" % json.dumps({"id": "x", "choices": [choice]}).encode())


async def said_all(connection: Connection) -> None:
    """Thinks, speaks in two pieces with a field of its own between them, and calls."""
    function: Json = {"name": "weather", "arguments": '{"city":'}
    rest: Json = {"arguments": f' "{CANARY}"}}'}
    await connection.send(
        HEAD,
        event({"index": 0, "delta": {"reasoning_content": "Ich denke"}}),
        event({"index": 0, "delta": {"content": "Es "}}),
        event({"index": 0, "delta": {"content": "regnet"}}),
        event(
            {"index": 0, "delta": {"tool_calls": [{"index": 0, "id": "c_7", "type": "function", "function": function}]}}
        ),
        event({"index": 0, "delta": {"tool_calls": [{"index": 0, "function": rest}]}}),
        event({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
        chunk(b"data: [DONE]\n\n") + END,
    )


async def refused(connection: Connection) -> None:
    error: Json = {"error": {"message": f"{WORDS} {CANARY} <b>now</b>", "type": "x", "code": "rate_limit_exceeded"}}
    await connection.send(answer("429 Too Many Requests", json.dumps(error).encode()))


async def broken(connection: Connection) -> None:
    await connection.send(HEAD, event({"index": 0, "delta": {"content": "Es "}}))
    connection.close()


async def test_the_answer_is_assembled_and_its_secrets_stay_out() -> None:
    async with faulty_backend(said_all) as backend, running_gateway(over(backend.base_url)) as gateway:
        request_id = await asked(gateway, "m", calling("{}"), stream=True)
        found = await shown(gateway, f"{request_id}/answer", reveal=1)
        parts = found["assembled"]["parts"]
        assert [part["kind"] for part in parts] == ["thinking", "text", "call"]
        assert [part["text"] for part in parts[:2]] == ["Ich denke", "Es regnet"]
        assert (parts[2]["id"], parts[2]["name"]) == ("c_7", "weather")
        assert json.loads(parts[2]["text"])["city"].startswith("[key:openai:")
        assert found["assembled"]["finish"] == "tool_calls" and core_of(CANARY) not in json.dumps(found)
        hidden = await shown(gateway, f"{request_id}/answer")
        assert "regnet" not in json.dumps(hidden)
        assert [len(part["text"]) for part in hidden["assembled"]["parts"][:2]] == [9, 9]
        headline = (await shown(gateway, request_id))["headline"]
        assert (
            headline == "The backend b answered with 9 characters of thinking, 9 characters of text, 1 call (weather)."
        )


async def test_the_words_of_a_backend_are_shown_without_its_secrets() -> None:
    async with faulty_backend(refused) as backend, running_gateway(over(backend.base_url)) as gateway:
        request_id = await asked(gateway, "m", calling("{}"))
        found = await shown(gateway, request_id)
        assert found["headline"] == "The backend b refused the request with the status 429."
        assert WORDS in found["error"]["backend_words"] and WORDS not in found["error"]["message"]
        assert core_of(CANARY) not in json.dumps(found)


async def test_they_are_hidden_where_no_words_are_shown() -> None:
    async with faulty_backend(refused) as backend, running_gateway(over(backend.base_url, reveal=False)) as gateway:
        found = await shown(gateway, await asked(gateway, "m", calling("{}")))
        assert found["error"]["backend_words"] == "" and WORDS not in json.dumps(found)


async def test_a_headline_says_who_failed() -> None:
    async with faulty_backend(broken) as backend, running_gateway(over(backend.base_url)) as gateway:
        cut = await shown(gateway, await asked(gateway, "m", calling("{}"), stream=True))
        assert cut["headline"] == "The backend b ended its answer before it was complete."
        unknown = await shown(gateway, await asked(gateway, "no-such-model"))
        assert unknown["headline"] == "The gateway refused the request; nothing was sent to a backend."
        assert unknown["error"]["backend_words"] == ""


async def test_a_headline_says_how_far_a_request_is() -> None:
    steps = {name: asyncio.Event() for name in ("head", "text")}

    async def slow(connection: Connection) -> None:
        await steps["head"].wait()
        await connection.send(HEAD)
        await steps["text"].wait()
        await connection.send(event({"index": 0, "delta": {"content": "Es regnet"}}))
        await connection.gone()

    async with faulty_backend(slow) as backend, running_gateway(over(backend.base_url)) as gateway:
        task = asyncio.create_task(asked(gateway, "m", calling("{}"), stream=True))
        await said_in_headline(gateway, "The backend b has not answered yet.")
        steps["head"].set()
        await said_in_headline(gateway, "The backend b has begun to answer.")
        steps["text"].set()
        await said_in_headline(gateway, "The backend b is answering: 9 characters of text so far.")
        task.cancel()


async def said_in_headline(gateway: RunningGateway, words: str) -> None:
    """Waits until this is the headline of the newest request."""
    async with asyncio.timeout(20):
        while True:
            listed = (await gateway.client.get("/inspect/api/requests?limit=1")).json()["requests"]
            if listed and (await shown(gateway, listed[0]["id"]))["headline"] == words:
                return
            await asyncio.sleep(0.02)


async def rows_of(gateway: RunningGateway, request_id: str) -> list[dict[str, Any]]:
    return list((await shown(gateway, f"{request_id}/messages", reveal=1))["rows"])


async def test_arguments_as_an_object_differ_from_those_as_text() -> None:
    async with running_gateway({**settings(), "repair": "repair"}) as gateway:
        request_id = await asked(gateway, "demo-chat", calling({"city": "Rom"}))
        cells = (await rows_of(gateway, request_id))[1]["cells"]
        forms = {name: (cell["mark"], cell["calls"][0]["form"]) for name, cell in cells.items()}
        assert forms == {
            "client": ("=", "object"),
            "repaired": ("~", "text"),
            "trimmed": ("=", "text"),
            "sent": ("=", "text"),
        }
        notices = (await shown(gateway, request_id, reveal=1))["notices"]
        (notice,) = [one for one in notices if one["rule"] == "CALL_ARGS_TYPE"]
        assert notice["changes"] == [{"field": "calls[0].arguments as", "was": "object", "now": "text"}]
        plain = await rows_of(gateway, await asked(gateway, "demo-chat", calling('{"city":"Rom"}')))
        assert "form" not in plain[1]["cells"]["client"]["calls"][0] and plain[1]["cells"]["repaired"]["mark"] == "="


async def test_a_notice_has_the_old_and_the_new_value() -> None:
    async with running_gateway({**settings(), "repair": "repair", "max_tool_result_chars": 120}) as gateway:
        long: list[Json] = calling("{}")
        long[2] = {"role": "tool", "tool_call_id": "c_1", "content": "Regen " * 100 + CANARY}
        request_id = await asked(gateway, "demo-chat", long)
        found = await shown(gateway, request_id, reveal=1)
        (notice,) = [one for one in found["notices"] if one["rule"] == "TOOL_RESULT_SHORTENED"]
        (change,) = notice["changes"]
        assert change["field"] == "text" and change["was"] != change["now"]
        assert len(change["was"]) <= 164 and change["was"].startswith("…") and "Regen" in change["was"]
        hidden = await shown(gateway, request_id)
        assert "Regen" not in json.dumps(hidden) and core_of(CANARY) not in json.dumps([found, hidden])


async def test_a_message_that_is_left_out_became_nothing() -> None:
    async with running_gateway({**settings(), "max_tool_results": 0}) as gateway:
        found = await shown(gateway, await asked(gateway, "demo-chat", calling("{}")), reveal=1)
        dropped = [one["changes"] for one in found["notices"] if one["stage"] == "trim" and one["changes"]]
        assert [change["now"] for changes in dropped for change in changes if change["field"] == "message"] in (
            [],
            [None],
        )


@pytest.mark.parametrize("model", ["demo-agent", "demo-text", "demo-chat"])
async def test_what_is_only_seen_is_quiet(model: str) -> None:
    async with running_gateway(settings()) as gateway:
        found = await shown(gateway, await asked(gateway, model, calling("{}")), reveal=1)
        for notice in found["notices"]:
            assert notice["quiet"] == (notice["action"] == "seen" and notice["level"] == "debug")


async def test_new_messages_are_those_behind_the_end_of_the_earlier_request() -> None:
    async with running_gateway(settings()) as gateway:
        first = calling("{}")
        await asked(gateway, "demo-chat", first)
        added: list[Json] = [{"role": "assistant", "content": "Gern."}, {"role": "user", "content": f"Und {CANARY}?"}]
        later = await asked(gateway, "demo-chat", [*first, *added])
        found = await shown(gateway, f"{later}/diff", reveal=1)
        assert found["common"] == 4 and found["changed"] == []
        assert [(one["index"], one["cell"]["role"]) for one in found["new"]] == [(4, "assistant"), (5, "user")]
        assert found["new"][0]["cell"]["text"] == "Gern." and core_of(CANARY) not in json.dumps(found)
        assert "Gern." not in json.dumps(await shown(gateway, f"{later}/diff"))
        # Of another model, the last message is changed, and what stands behind it is new.
        changed = await asked(gateway, "demo-chat", [*first[:3], {"role": "user", "content": "Nein"}, *added])
        other = await shown(gateway, f"{changed}/diff", against=later, reveal=1)
        assert [one["index"] for one in other["changed"]] == [3] and other["new"] == []


async def test_the_clients_request_is_shown_as_it_came() -> None:
    async with running_gateway({**settings(), "repair": "repair"}) as gateway:
        messages = calling({"city": CANARY})
        request_id = await asked(gateway, "demo-chat", messages)
        found = await shown(gateway, f"{request_id}/received", reveal=1)
        assert (found["method"], found["path"]) == ("POST", "/v1/chat/completions")
        body = json.loads(found["views"]["json"])
        arguments = body["messages"][1]["tool_calls"][0]["function"]["arguments"]
        assert arguments["city"].startswith("[key:openai:") and body["tools"] == TOOLS
        assert core_of(CANARY) not in json.dumps(found)
        assert "Wetter" not in json.dumps(await shown(gateway, f"{request_id}/received"))


async def test_the_clients_bytes_are_shown_as_they_are_written() -> None:
    """Values that no program would write so stay, for whoever sends them again; what is no JSON is text."""
    async with running_gateway(settings()) as gateway:
        headers = {"content-type": "application/json"}
        written = {
            b'{"n": 1.50, "n": 12345678901234567890123, "x": 1e400}': ["1.50", "12345678901234567890123", "1e400"],
            b'{"a": "\\u00fc\\ud83d\\udd11 \\u0022\\u202e\\\\u00fc"}': ['"\u00fc\U0001f511 \\u0022\\u202e\\\\u00fc"'],
        }
        for body, parts in written.items():
            answer = await gateway.client.post("/v1/chat/completions", content=body, headers=headers)
            found = await shown(gateway, f"{answer.headers['x-request-id']}/received", reveal=1)
            assert [part for part in parts if part not in found["views"]["json"]] == [], found["views"]["json"]
        answer = await gateway.client.post("/v1/chat/completions", content=b'{"model": "m",', headers=headers)
        found = await shown(gateway, f"{answer.headers['x-request-id']}/received", reveal=1)
        assert [*found["views"]] == ["text", "hex"] and found["views"]["text"] == '{"model": "m",'
