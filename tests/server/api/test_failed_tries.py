"""Nothing of a failed try reaches the client, and each try stands for its own model and backend."""

import asyncio

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, chunk, faulty_backend
from gateway.testing.gateway import hello, running_gateway
from tests.server.api.candidate_gateway import (
    OVERLOADED,
    PATIENT,
    ROLE,
    Play,
    asked,
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
# The head of a stream goes out at once, and a keep-alive with it.
HASTY_HEAD: dict[str, Json] = {"api_keys_env": None, "first_event_gate_s": 0.1, "sse_ping_s": 30}


@pytest.mark.parametrize("start", [ROLE, said("lost"), ROLE + said("lost")])
async def test_what_comes_with_a_fault_behind_the_head_is_not_sent(start: bytes) -> None:
    async def fails_late(connection: Connection) -> None:
        # Until the client has a keep-alive.
        await opened.get()
        await connection.send(HEAD, chunk(start + _ERROR), END)

    answered: list[str] = []
    opened: asyncio.Queue[None] = asyncio.Queue()
    plays = {"m": fails_late, "n": says("hel lo")}
    async with candidates_gateway(plays, server=HASTY_HEAD) as (gateway, backends):
        body = {**hello(), "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as response:
            async for piece in response.aiter_text():
                answered.append(piece)
                opened.put_nowait(None)
    got = "".join(answered)
    assert asked(backends) == {"m": 1, "n": 1}
    assert text_of(got) == "hello"
    assert len([one for one in chunks(got) if "role" in one["choices"][0]["delta"]]) == 1
    assert len({one["id"] for one in chunks(got)}) == 1


async def test_a_backend_that_could_not_be_reached_is_not_asked_in_a_later_try() -> None:
    async with faulty_backend(OVERLOADED) as busy, faulty_backend(says("hello")) as good:
        away: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1", "timeouts": {"connect": 0.2}}
        models: Json = {
            "m": {"backend": "away", "candidates": ["n", "same", "o"]},
            "n": {"backend": "busy"},
            "same": {"backend": "away"},
            "o": {"backend": "good"},
        }
        backends: Json = {
            "away": away,
            "busy": {"adapter": "openai_chat", "base_url": busy.base_url},
            "good": {"adapter": "openai_chat", "base_url": good.base_url},
        }
        async with running_gateway({"backends": backends, "models": models}) as gateway:
            response = await gateway.chat()
    assert response.status_code == 200, response.text
    assert response.headers["x-dragoman-backend"] == "good"


CALL: dict[str, Json] = {
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": "required",
}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_that_has_lost_what_the_request_requires_is_not_asked_for_again(stream: bool) -> None:
    """The second model ignores the choice of a function, which shows only at the end of its answer."""
    plays = {"m": OVERLOADED, "n": says("I will not."), "o": says("Nor I.")}
    async with candidates_gateway(plays) as (gateway, backends):
        body = {**hello(), **CALL, "stream": stream}
        head = {"x-dragoman-require": "tools"}
        response = await gateway.client.post("/v1/chat/completions", json=body, headers=head)
        assert not await metric(gateway, 'gateway_open_circuits{backend="n"} 1.0')
    assert asked(backends) == {"m": 1, "n": 1}
    assert "requirement_not_met" in response.text or response.status_code == 503


async def test_the_credential_that_a_backend_refused_is_told_of_that_try_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plays = {"m": OVERLOADED, "n": refuses("401 Unauthorized")}
    keyed: dict[str, dict[str, Json]] = {"n": {"api_key_env": "KEY_OF_N"}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY_OF_N", "sk-secret-of-n-1234567890")
        async with candidates_gateway(plays, backends=keyed) as (gateway, _):
            response = await gateway.chat()
    assert response.status_code == 503
    lines = [record.getMessage() for record in caplog.records if "upstream_failure" in record.getMessage()]
    assert ["KEY_OF_N" in line for line in lines] == [False, True], lines


def _called(at: int) -> list[Json]:
    """A conversation whose call has an id that `renaming` changes."""
    call: Json = {"id": "call.1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"Hello {at}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call.1", "content": "done"},
    ]


async def test_a_model_that_loses_less_than_the_named_one_does_not_share_its_conversations() -> None:
    profiles: Json = {"renaming": {"base": "openai", "call_id": {"characters": "a-z0-9"}}}
    model: dict[str, Json] = {"profile": "renaming", "candidates": [{"model": "n", "weight": 1}]}
    async with candidates_gateway({"m": says("hello"), "n": says("hello")}, model, profiles=profiles) as (
        gateway,
        backends,
    ):
        for at in range(8):
            assert (await gateway.chat(messages=_called(at))).status_code == 200
    assert asked(backends) == {"m": 8}


async def test_where_the_named_model_is_left_alone_the_sharing_ones_are_asked_for_that_reason() -> None:
    shared: dict[str, Json] = {"candidates": [{"model": "n", "weight": 1}, {"model": "o", "weight": 1}]}
    plays = {"m": OVERLOADED, "n": says("hello"), "o": says("hello")}
    async with candidates_gateway(plays, shared) as (gateway, backends):
        circuit = gateway.app.gateway_state.circuits.of("m")
        # Its pause does not end.
        circuit._clock = lambda: 0.0
        for _ in range(3):
            circuit.fail()
        for at in range(12):
            assert (await gateway.chat(messages=[{"role": "user", "content": f"Hello {at}"}])).status_code == 200
        assert await metric(gateway, 'gateway_model_switches_total{backend="m",cause="circuit_open"} 12.0')
    assert "m" not in asked(backends) and len(asked(backends)) == 2


@pytest.mark.parametrize("other", [refuses("400 Bad Request", TOO_LONG, "context_length_exceeded"), OVERLOADED])
async def test_a_model_that_was_left_alone_is_asked_where_no_other_can_answer(other: Play) -> None:
    async with candidates_gateway({"m": says("hello"), "n": other}) as (gateway, backends):
        circuit = gateway.app.gateway_state.circuits.of("m")
        circuit._clock = lambda: 0.0
        for _ in range(3):
            circuit.fail()
        response = await gateway.chat()
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "hello"
    assert asked(backends) == {"m": 1, "n": 1}


async def test_a_full_backend_is_not_left_alone() -> None:
    held, let_go = asyncio.Event(), asyncio.Event()

    async def waits(connection: Connection) -> None:
        if not held.is_set():
            held.set()
            await let_go.wait()
        await says("hello")(connection)

    full: dict[str, dict[str, Json]] = {"m": {"max_concurrent": 1}}
    async with candidates_gateway({"m": waits, "n": says("hello")}, backends=full) as (gateway, backends):
        first = asyncio.create_task(gateway.chat())
        await asyncio.wait_for(held.wait(), 10)
        for _ in range(4):
            assert (await gateway.chat()).headers["x-dragoman-backend"] == "n"
        assert await metric(gateway, 'gateway_candidate_tries_total{backend="m",outcome="overloaded"} 4.0')
        first.cancel()
        while gateway.app.gateway_state.scheduler.size:  # noqa: ASYNC110 (the request ends by itself)
            await asyncio.sleep(0.001)
        # Its place is free again.
        assert (await gateway.chat()).headers["x-dragoman-backend"] == "m"
        let_go.set()
    assert asked(backends) == {"m": 2, "n": 4}


async def test_what_was_waited_for_in_a_failed_try_is_no_work_of_the_gateway() -> None:
    hasty: dict[str, Json] = {**PATIENT, "first_byte": 0.5}
    async with candidates_gateway({"m": is_silent, "n": says("hello")}, timeouts=hasty) as (gateway, _):
        response = await gateway.chat(stream=True)
        metrics = gateway.app.gateway_state.metrics
        (own,) = metrics.overhead_seconds.samples()
        (whole,) = [one for one in metrics.request_seconds.samples() if "chat" in one.labels]
    assert text_of(response.text) == "hello"
    assert own.sum <= whole.sum - 0.5


async def test_the_error_is_that_of_the_model_that_the_client_knows_also_where_it_was_asked_last() -> None:
    busy = refuses("503 Service Unavailable", "no", None, b"retry-after: 7")
    limited = refuses("429 Too Many Requests", "no", None, b"retry-after: 3")
    async with candidates_gateway({"m": limited, "n": busy}) as (gateway, backends):
        circuit = gateway.app.gateway_state.circuits.of("m")
        circuit._clock = lambda: 0.0
        for _ in range(3):
            circuit.fail()
        response = await gateway.chat()
    assert asked(backends) == {"m": 1, "n": 1}
    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.headers["x-dragoman-backend"] == "m"
