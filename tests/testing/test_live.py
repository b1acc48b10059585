"""Runs the live checks on small backends with real sockets: valid ones pass, faulty ones fail."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from gateway.core.errors import BackendError
from gateway.testing import live
from gateway.testing.adapter_case import GREETING
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.live import LIVE_CHECKS, LiveCase, LiveCheck
from tests.examples.parrot import ParrotAdapter

Speaker = Callable[[str], str]
WITHOUT_TOOLS = [check for check in LIVE_CHECKS if check is not live.calls_a_tool_and_reads_its_result]


def sound(prompt: str) -> str:
    """Repeats the last word."""
    return _events({"text": prompt.split()[-1]}, {"tokens": 1})


def cut_off(prompt: str) -> str:
    return _events({"text": prompt})


def silent(prompt: str) -> str:
    return _events({"tokens": 0})


def failing(prompt: str) -> str:
    return _events({"error": "no"})


def chatty(prompt: str) -> str:
    """Answers everybody at once."""
    return _events({"text": "parrot0 parrot1 parrot2 parrot3"}, {"tokens": 4})


@pytest.mark.parametrize("check", WITHOUT_TOOLS)
async def test_a_sound_backend_passes(check: LiveCheck) -> None:
    async with _parrot(sound) as case:
        await check(case)


@pytest.mark.parametrize(
    ("speaker", "check"),
    [
        (cut_off, live.answers_a_question),
        (silent, live.answers_a_question),
        (failing, live.knows_the_conversation),
        (chatty, live.keeps_answers_apart),
    ],
)
async def test_a_broken_backend_is_found(speaker: Speaker, check: LiveCheck) -> None:
    async with _parrot(speaker) as case:
        with pytest.raises((AssertionError, BackendError)):
            await check(case)


async def test_a_backend_that_takes_anything_is_found() -> None:
    async with _parrot(sound, lenient=True) as case:
        with pytest.raises(AssertionError):
            await live.refuses_what_is_no_request(case)


async def test_an_error_status_is_the_adapters_error() -> None:
    async with _parrot(sound) as case:
        with pytest.raises(BackendError) as caught:
            await live.ask(LiveCase(ParrotAdapter, case.base_url + "/elsewhere"), GREETING)
    assert (caught.value.status, caught.value.code) == (502, "upstream_unknown_url")


def _events(*payloads: dict[str, object]) -> str:
    return "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads)


@asynccontextmanager
async def _parrot(speaker: Speaker, lenient: bool = False) -> AsyncIterator[LiveCase]:
    async def script(connection: Connection) -> None:
        await connection.send(_spoken(connection, speaker, lenient))

    async with faulty_backend(script) as backend:
        yield LiveCase(ParrotAdapter, backend.base_url)


def _spoken(connection: Connection, speaker: Speaker, lenient: bool) -> bytes:
    if not connection.head.startswith(b"POST /speak "):
        return answer("404 Not Found")
    try:
        prompt = json.loads(connection.body)["prompt"]
    except ValueError:
        if not lenient:
            return answer("400 Bad Request")
        prompt = "anything"
    return answer("200 OK", speaker(prompt).encode(), b"content-type: text/event-stream")
