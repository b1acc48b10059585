"""A request goes on with another model where its own fails before the answer has begun, over real sockets."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.recording.recording import read_recording
from gateway.testing.faulty import END, HEAD, Connection, chunk, faulty_backend
from gateway.testing.gateway import hello, running_gateway
from tests.server.api.candidate_gateway import (
    OVERLOADED,
    PATIENT,
    ROLE,
    Play,
    asked,
    bodies,
    breaks_off,
    candidates_gateway,
    chunks,
    is_silent,
    metric,
    refuses,
    said,
    says,
    sse,
    text_of,
)

TOO_LONG = "This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens."
_ERROR = sse({"error": {"message": "busy", "type": "server_error", "code": 503}})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fault", "code", "cause"),
    [
        (refuses("429 Too Many Requests"), "rate_limit_exceeded", "rate_limit"),
        (refuses("429 Too Many Requests", code="insufficient_quota"), "insufficient_quota", "rate_limit"),
        (refuses("402 Payment Required"), "insufficient_quota", "rate_limit"),
        (refuses("500 Internal Server Error"), "upstream_error", "server_error"),
        (refuses("502 Bad Gateway"), "upstream_error", "server_error"),
        (OVERLOADED, "upstream_overloaded", "overloaded"),
        (refuses("529 Overloaded"), "upstream_overloaded", "overloaded"),
        (refuses("504 Gateway Timeout"), "upstream_timeout", "timeout"),
        (refuses("400 Bad Request", TOO_LONG, "context_length_exceeded"), "context_length_exceeded", "context_length"),
    ],
)
async def test_a_failed_try_goes_on_with_a_candidate(
    fault: Play, code: str, cause: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "gateway")
    async with candidates_gateway({"m": fault, "n": says("hel lo")}) as (gateway, backends):
        response = await gateway.chat(stream=stream)
        assert await metric(gateway, f'gateway_model_switches_total{{backend="m",cause="{cause}"}} 1.0')
        assert await metric(gateway, f'gateway_candidate_tries_total{{backend="m",outcome="{cause}"}} 1.0')
        assert await metric(gateway, 'gateway_candidate_tries_total{backend="n",outcome="answered"} 1.0')
        assert await metric(gateway, f'gateway_upstream_errors_total{{backend="m",code="{code}",phase="head"}} 1.0')
        assert await metric(gateway, 'gateway_notices_total{rule="MODEL_SWITCHED",stage="backend"} 1.0')
    assert response.status_code == 200, response.text
    said_text = text_of(response.text) if stream else response.json()["choices"][0]["message"]["content"]
    assert said_text == "hello"
    assert asked(backends) == {"m": 1, "n": 1}
    assert bodies(backends["n"])[0]["model"] == "n"
    assert response.headers["x-dragoman-backend"] == "n"
    assert response.headers["x-dragoman-changes"] == "backend=1"
    failures = [record.getMessage() for record in caplog.records if "upstream_failure" in record.getMessage()]
    assert len(failures) == 1 and f"backend=m model=m phase=head code={code}" in failures[0]
    assert "MODEL_SWITCHED" in caplog.text or "'m' was to answer" in caplog.text
    # The client gets the name that it knows.
    model = chunks(response.text)[0]["model"] if stream else response.json()["model"]
    assert model == "m"


@pytest.mark.parametrize(
    "fault",
    [
        refuses("400 Bad Request"),
        refuses("401 Unauthorized"),
        refuses("403 Forbidden"),
        refuses("404 Not Found", "model m not found"),
        refuses("409 Conflict"),
        refuses("413 Payload Too Large"),
        refuses("422 Unprocessable Entity"),
        refuses("301 Moved Permanently"),
    ],
)
async def test_what_another_model_would_not_mend_is_the_answer(fault: Play) -> None:
    async with candidates_gateway({"m": fault, "n": says("hello")}) as (gateway, backends):
        response = await gateway.chat()
        assert not await metric(gateway, 'gateway_notices_total{rule="MODEL_SWITCHED",stage="backend"} 1.0')
    assert response.status_code >= 400
    assert asked(backends) == {"m": 1}


async def test_a_backend_that_cannot_be_reached_is_left_with_all_its_models() -> None:
    async with faulty_backend(says("hello")) as backend, faulty_backend(is_silent) as closed:
        await closed.close()
        entry: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1", "timeouts": {"connect": 0.2}}
        models: Json = {
            "m": {"backend": "away", "candidates": ["same", "n"]},
            "same": {"backend": "away"},
            "n": {"backend": "b"},
        }
        there: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        async with running_gateway({"backends": {"away": entry, "b": there}, "models": models}) as gateway:
            response = await gateway.chat()
            assert await metric(gateway, 'gateway_model_switches_total{backend="away",cause="connect"} 1.0')
    assert response.status_code == 200


@pytest.mark.parametrize("start", [(), (ROLE,), (ROLE, _ERROR), (b": comment\n\n",)])
async def test_a_stream_that_fails_before_its_first_event_goes_on(start: tuple[bytes, ...]) -> None:
    async with candidates_gateway({"m": breaks_off(*start), "n": says("hel lo")}) as (gateway, backends):
        response = await gateway.chat(stream=True)
    got = chunks(response.text)
    assert text_of(response.text) == "hello"
    assert asked(backends) == {"m": 1, "n": 1}
    assert len({one["id"] for one in got}) == 1
    assert len([one for one in got if "role" in one["choices"][0]["delta"]]) == 1
    assert response.text.endswith("data: [DONE]\n\n")


async def test_nothing_is_switched_behind_the_first_event() -> None:
    async with candidates_gateway({"m": breaks_off(ROLE, said("hel")), "n": says("other")}) as (gateway, backends):
        response = await gateway.chat(stream=True)
    assert text_of(response.text) == "hel"
    assert "upstream_stream_truncated" in response.text or "Provider returned error" in response.text
    assert asked(backends) == {"m": 1}


async def test_a_whole_answer_that_breaks_off_has_not_begun() -> None:
    async def cut(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{")
        connection.reset()

    async with candidates_gateway({"m": cut, "n": says("hello")}) as (gateway, backends):
        response = await gateway.chat(stream=False)
    assert response.json()["choices"][0]["message"]["content"] == "hello"
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_silent_backend_is_left_at_its_first_byte_limit_and_the_total_limit_is_one() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.2}
    async with candidates_gateway({"m": is_silent, "n": says("hello")}, timeouts=hasty) as (gateway, backends):
        response = await gateway.chat(stream=True)
        assert await metric(gateway, 'gateway_ttfb_timeouts_total{backend="m"} 1.0')
    assert text_of(response.text) == "hello"
    # The gateway has closed the connection of the try that it has given up.
    await asyncio.wait_for(backends["m"].closed.wait(), 10)


async def test_all_tries_have_the_total_limit_of_the_first_backend() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.3, "total": 0.5}
    plays = {"m": is_silent, "n": is_silent, "o": says("late")}
    async with candidates_gateway(plays, timeouts=hasty) as (gateway, backends):
        response = await gateway.chat(stream=True)
    assert response.status_code == 504
    assert "timeouts.total" in response.text
    assert response.headers["x-should-retry"] == "false"
    assert asked(backends) == {"m": 1, "n": 1}


async def test_there_are_three_tries_at_most_and_the_first_error_that_may_pass_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plays = {
        "m": refuses("429 Too Many Requests", code="insufficient_quota"),
        "n": refuses("503 Service Unavailable", "no", None, b"retry-after: 7"),
        "o": refuses("500 Internal Server Error"),
        "p": says("never"),
    }
    async with candidates_gateway(plays) as (gateway, backends):
        response = await gateway.chat()
        assert await metric(
            gateway, 'gateway_upstream_errors_total{backend="n",code="upstream_overloaded",phase="head"} 1.0'
        )
        assert await metric(
            gateway, 'gateway_upstream_errors_total{backend="o",code="upstream_error",phase="head"} 1.0'
        )
        assert await metric(gateway, 'gateway_errors_total{code="upstream_overloaded",phase="head"} 1.0')
    assert asked(backends) == {"m": 1, "n": 1, "o": 1}
    assert (response.status_code, response.json()["error"]["code"]) == (503, "upstream_overloaded")
    assert response.headers["retry-after"] == "7"
    assert response.headers["x-dragoman-backend"] == "n"
    assert "x-should-retry" not in response.headers
    failures = [record.getMessage() for record in caplog.records if "upstream_failure" in record.getMessage()]
    assert [line.partition("backend=")[2][0] for line in failures] == ["m", "n", "o"]


async def test_a_key_gets_only_its_models(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("agent:sk-of-an-agent-1234567890\n", encoding="utf-8")
    server: Json = {"api_keys_env": None, "api_keys_file": str(tmp_path / "keys")}
    keys: Json = {"agent": {"models": ["m", "o"]}}
    plays = {"m": OVERLOADED, "n": says("no"), "o": says("yes")}
    async with candidates_gateway(plays, server=server, keys=keys) as (gateway, backends):
        head = {"authorization": "Bearer sk-of-an-agent-1234567890"}
        response = await gateway.client.post("/v1/chat/completions", json=hello(), headers=head)
    assert response.status_code == 200
    assert asked(backends) == {"m": 1, "o": 1}


async def test_the_candidate_that_loses_least_comes_first() -> None:
    tools: list[Json] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    backends_settings: dict[str, dict[str, Json]] = {"n": {"adapter": "text", "wire": "llama_cpp"}}
    picture: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages: list[Json] = [{"role": "user", "content": [{"type": "text", "text": "look"}, picture]}]
    models = {"n": {"images": "placeholder"}}
    async with candidates_gateway(
        {"m": OVERLOADED, "n": says("no"), "o": says("yes")}, models=models, backends=backends_settings
    ) as (gateway, backends):
        response = await gateway.chat(messages=messages, tools=tools)
    assert response.status_code == 200, response.text
    assert asked(backends) == {"m": 1, "o": 1}


async def test_a_candidate_that_refuses_the_request_is_not_asked() -> None:
    backends_settings: dict[str, dict[str, Json]] = {"n": {"adapter": "text", "wire": "llama_cpp"}}
    picture: Json = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    messages: list[Json] = [{"role": "user", "content": [picture]}]
    async with candidates_gateway({"m": OVERLOADED, "n": says("no")}, backends=backends_settings) as (
        gateway,
        backends,
    ):
        response = await gateway.chat(messages=messages)
    assert response.status_code == 503
    assert asked(backends) == {"m": 1}


async def test_a_request_with_a_file_of_an_account_stays_there() -> None:
    messages: list[Json] = [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}]
    async with candidates_gateway({"m": OVERLOADED, "n": says("no")}) as (gateway, backends):
        response = await gateway.chat(messages=messages)
    assert response.status_code == 503
    assert asked(backends) == {"m": 1}


async def test_a_prompt_that_is_too_long_goes_to_the_longer_model_alone() -> None:
    plays = {"m": refuses("400 Bad Request", TOO_LONG, "context_length_exceeded"), "n": says("no"), "l": says("yes")}
    async with candidates_gateway(plays, {"candidates": ["n"], "longer": "l"}) as (gateway, backends):
        response = await gateway.chat()
    assert response.status_code == 200
    assert asked(backends) == {"m": 1, "l": 1}


async def test_the_longer_model_is_not_asked_for_anything_else() -> None:
    async with candidates_gateway({"m": OVERLOADED, "l": says("no")}, {"longer": "l"}) as (gateway, backends):
        response = await gateway.chat()
    assert response.status_code == 503
    assert asked(backends) == {"m": 1}


async def test_a_prompt_that_is_estimated_to_be_too_long_goes_to_the_longer_model_at_once() -> None:
    plays = {"m": says("no"), "l": says("yes")}
    model: dict[str, Json] = {"longer": "l", "context_length": 100}
    async with candidates_gateway(plays, model) as (gateway, backends):
        short = await gateway.chat()
        long = await gateway.chat(messages=[{"role": "user", "content": "word " * 400}])
    assert (short.headers["x-dragoman-backend"], long.headers["x-dragoman-backend"]) == ("m", "l")
    assert asked(backends) == {"m": 1, "l": 1}


async def test_a_backend_that_fails_three_times_is_left_alone() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": says("hello")}) as (gateway, backends):
        for _ in range(5):
            response = await gateway.chat()
        assert await metric(gateway, 'gateway_open_circuits{backend="m"} 1.0')
        assert await metric(gateway, 'gateway_model_switches_total{backend="m",cause="circuit_open"} 2.0')
    assert response.status_code == 200
    assert asked(backends) == {"m": 3, "n": 5}


async def test_conversations_are_shared_by_weight_and_stay() -> None:
    model: dict[str, Json] = {"candidates": [{"model": "n", "weight": 1}]}
    async with candidates_gateway({"m": says("hello"), "n": says("hello")}, model) as (gateway, backends):
        first = [await gateway.chat(**_conversation(at, 1)) for at in range(20)]
        again = [await gateway.chat(**_conversation(at, 3)) for at in range(20)]
    served = [response.headers["x-dragoman-backend"] for response in first]
    assert {*served} == {"m", "n"}
    assert served == [response.headers["x-dragoman-backend"] for response in again]
    assert sum(asked(backends).values()) == 40


def _conversation(at: int, turns: int) -> dict[str, Json]:
    said_before: list[Json] = [{"role": "user", "content": f"conversation {at}"}]
    for turn in range(1, turns):
        role = "assistant" if turn % 2 else "user"
        said_before.append({"role": role, "content": f"turn {turn}"})
    return {"messages": said_before}


async def test_the_head_may_be_out_before_another_model_is_asked() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.6}
    server: Json = {"api_keys_env": None, "first_event_gate_s": 0.1, "sse_ping_s": 0.1}
    plays = {"m": is_silent, "n": says("hel lo")}
    async with candidates_gateway(plays, timeouts=hasty, server=server) as (gateway, backends):
        headers = {"x-dragoman-explain": "1"}
        response = await gateway.client.post("/v1/chat/completions", json={**hello(), "stream": True}, headers=headers)
    assert response.headers["x-dragoman-backend"] == "m"
    assert response.text.startswith(":")
    assert text_of(response.text) == "hello"
    told = chunks(response.text)[-1]["dragoman"]["diagnostics"]
    assert [one["rule"] for one in told] == ["MODEL_SWITCHED"]
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_client_that_leaves_ends_the_tries() -> None:
    plays = {"m": OVERLOADED, "n": is_silent, "o": says("late")}
    async with candidates_gateway(plays) as (gateway, backends):
        asking = asyncio.create_task(gateway.chat(stream=True))
        await asyncio.wait_for(backends["n"].requested.wait(), 10)
        asking.cancel()
        await asyncio.wait_for(backends["n"].closed.wait(), 10)
        assert (await gateway.client.get("/metrics")).status_code == 200
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_stop_of_the_gateway_ends_the_tries() -> None:
    plays = {"m": OVERLOADED, "n": is_silent, "o": says("late")}
    async with candidates_gateway(plays) as (gateway, backends):
        asking = asyncio.create_task(gateway.chat(stream=True))
        await asyncio.wait_for(backends["n"].requested.wait(), 10)
        gateway.app.gateway_state.stop()
        response = await asking
    assert (response.status_code, response.json()["error"]["code"]) == (503, "server_shutdown")
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_stored_answer_is_that_of_the_model_that_answered() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": says("hel lo")}) as (gateway, backends):
        first = await gateway.client.post("/v1/responses", json={"model": "m", "input": "Hello"})
        asked_again = {"model": "n", "input": "More", "previous_response_id": first.json()["id"]}
        second = await gateway.client.post("/v1/responses", json=asked_again)
    assert (first.status_code, second.status_code) == (200, 200), first.text
    assert first.json()["store"] is True
    messages = bodies(backends["n"])[1]["messages"]
    assert [one["role"] for one in messages] == ["user", "assistant", "user"]


async def test_a_model_without_candidates_fails_as_before() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": says("no")}, {}) as (gateway, backends):
        response = await gateway.chat()
        assert "circuits" not in vars(gateway.app.gateway_state)
    assert response.status_code == 503
    assert json.loads(response.text)["error"]["code"] == "upstream_overloaded"
    assert asked(backends) == {"m": 1}


async def test_tokens_of_a_try_that_was_given_up_are_counted() -> None:
    counted = sse({"id": "a", "object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 30}})
    async with candidates_gateway({"m": breaks_off(ROLE, counted), "n": says("hello")}) as (gateway, _):
        await gateway.chat(stream=True)
        assert await metric(gateway, 'gateway_tokens_total{backend="m",key="-",kind="prompt"} 30.0')


async def test_a_full_backend_is_an_overload() -> None:
    held, let_go = asyncio.Event(), asyncio.Event()

    async def waits(connection: Connection) -> None:
        held.set()
        await let_go.wait()
        await connection.send(HEAD, chunk(said("first")), chunk(said("", "stop")), chunk(b"data: [DONE]\n\n"), END)

    backends_settings: dict[str, dict[str, Json]] = {"m": {"max_concurrent": 1}}
    async with candidates_gateway({"m": waits, "n": says("hello")}, backends=backends_settings) as (gateway, backends):
        first = asyncio.create_task(gateway.chat(stream=True))
        await asyncio.wait_for(held.wait(), 10)
        second = await gateway.chat(stream=True)
        let_go.set()
        await first
    assert second.headers["x-dragoman-backend"] == "n"
    assert asked(backends) == {"m": 1, "n": 1}


async def _shown(recorded: Path) -> tuple[httpx.Response, Any]:
    """The answer of the third model, and what the inspector shows of its request."""
    inspector: Json = {"contents": "always", "record": str(recorded)}
    plays = {"m": refuses("429 Too Many Requests"), "n": OVERLOADED, "o": says("hel lo")}
    async with candidates_gateway(plays, inspector=inspector) as (gateway, _):
        response = await gateway.chat(stream=True)
        path = f"/inspect/api/requests/{response.headers['x-request-id']}"
        return response, (await gateway.client.get(path)).json()


def test_the_inspector_and_a_recording_show_each_try(tmp_path: Path) -> None:
    response, detail = asyncio.run(_shown(tmp_path))
    assert text_of(response.text) == "hello"
    assert [(one["model"], one["code"], one["status"]) for one in detail["tries"]] == [
        ("m", "rate_limit_exceeded", 429),
        ("n", "upstream_overloaded", 503),
    ]
    assert detail["route"]["backend"] == "o"
    assert [one["rule"] for one in detail["notices"]] == ["MODEL_SWITCHED", "MODEL_SWITCHED"]
    assert detail["checks"] and all(one["same"] for one in detail["checks"]), detail["checks"]
    (saved,) = [path.read_bytes() for path in sorted(tmp_path.rglob("*.jsonl"))]
    (interaction,) = read_recording(saved).interactions()
    assert [one.model for one in interaction.tries] == ["m", "n"]
    assert [one.head.status for one in interaction.rounds] == [200]
    assert interaction.route is not None and (interaction.route.model, interaction.route.name) == ("m", "o")
    assert interaction.route.state


async def test_a_request_that_fails_while_nobody_watches_has_its_tries() -> None:
    plays = {"m": OVERLOADED, "n": refuses("429 Too Many Requests")}
    async with candidates_gateway(plays) as (gateway, _):
        response = await gateway.chat(stream=True)
        detail = (await gateway.client.get(f"/inspect/api/requests/{response.headers['x-request-id']}")).json()
    assert response.status_code == 503
    assert [(one["model"], one["status"]) for one in detail["tries"]] == [("m", 503), ("n", 429)]


async def test_a_candidate_that_loses_what_the_request_requires_is_not_asked() -> None:
    backends_settings: dict[str, dict[str, Json]] = {"n": {"adapter": "text", "wire": "llama_cpp"}}
    body = {**hello(), "reasoning_effort": "high"}
    plays = {"m": OVERLOADED, "n": says("no"), "o": says("yes")}
    async with candidates_gateway(plays, backends=backends_settings) as (gateway, backends):
        head = {"x-dragoman-require": "effort"}
        response = await gateway.client.post("/v1/chat/completions", json=body, headers=head)
    assert response.status_code == 200, response.text
    assert asked(backends) == {"m": 1, "o": 1}


async def test_when_all_fail_behind_the_head_the_stream_has_one_error() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.4}
    server: Json = {"api_keys_env": None, "first_event_gate_s": 0.1, "sse_ping_s": 0.1}
    async with candidates_gateway({"m": is_silent, "n": OVERLOADED}, timeouts=hasty, server=server) as (
        gateway,
        backends,
    ):
        response = await gateway.chat(stream=True)
    assert response.status_code == 200
    (error,) = [one["error"] for one in chunks(response.text)]
    assert error["code"] == "upstream_timeout"
    assert "[DONE]" not in response.text
    assert asked(backends) == {"m": 1, "n": 1}


async def test_the_changes_that_are_told_are_those_of_the_plan_that_was_answered() -> None:
    models: dict[str, dict[str, Json]] = {"m": {"profile": "renaming"}}
    profiles: Json = {"renaming": {"base": "openai", "call_id": {"characters": "a-z0-9"}}}
    call: Json = {"id": "call.1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Json] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call.1", "content": "done"},
    ]
    plays = {"m": OVERLOADED, "n": says("hello")}
    async with candidates_gateway(plays, models=models, profiles=profiles) as (gateway, _):
        body = {**hello(), "messages": messages}
        response = await gateway.client.post("/v1/chat/completions", json=body, headers={"x-dragoman-explain": "1"})
        assert await metric(gateway, 'gateway_notices_total{rule="CALL_ID_RENAMED",stage="profile"} 1.0')
    assert response.headers["x-dragoman-changes"] == "backend=1"
    told = response.json()["dragoman"]["diagnostics"]
    assert {one["rule"] for one in told if one["action"] != "seen"} == {"MODEL_SWITCHED"}


async def test_where_no_other_is_left_a_failing_backend_is_asked_all_the_same() -> None:
    async with candidates_gateway({"m": OVERLOADED, "n": OVERLOADED}) as (gateway, backends):
        codes = [(await gateway.chat()).status_code for _ in range(4)]
    assert codes == [503] * 4
    assert asked(backends) == {"m": 4, "n": 3}


async def test_a_reload_may_remove_a_candidate() -> None:
    plays = {"m": OVERLOADED, "n": says("no"), "o": says("yes")}
    async with candidates_gateway(plays) as (gateway, backends):
        await gateway.chat()
        state = gateway.app.gateway_state
        models = {name: entry for name, entry in state.settings.models.items() if name != "n"}
        # As a request that began before it sees it: its own entry still names the candidate.
        await state.change(msgspec.structs.replace(state.settings, models=models))
        response = await gateway.chat()
    assert response.status_code == 200
    assert asked(backends) == {"m": 2, "n": 1, "o": 1}
