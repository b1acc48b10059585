"""The seals of the Magpie's thoughts in a whole gateway: out to the client, back to the Magpie, and to nobody else."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, FaultyBackend, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway

TOOLS: Final[list[Json]] = [{"type": "function", "function": {"name": "look"}}]
ASKED: Final[dict[str, Json]] = {"role": "user", "content": "Look."}
ANSWER: Final = b"""\
{"think": "Where?", "seal": "only-mine"}
{"call": "look", "id": "m1", "input": "{}"}
{"end": "called"}
"""


async def _calls(connection: Connection) -> None:
    await connection.send(answer("200 OK", ANSWER, b"content-type: application/x-ndjson"))


@asynccontextmanager
async def magpies(**more: Json) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """Two Magpies with an account each, `m` and `other`, at one address."""
    async with faulty_backend(_calls) as backend:
        entry: dict[str, Json] = {
            "adapter": "tests.examples.magpie:MagpieAdapter",
            "base_url": backend.base_url,
            "api_key_env": "TEST_MAGPIE",
        }
        settings: dict[str, Json] = {
            "backends": {"m": entry, "other": {**entry, "api_key_env": "TEST_OTHER_MAGPIE"}},
            "models": {"m": {"backend": "m"}, "other": {"backend": "other"}},
            **more,
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MAGPIE", "key-1")
    monkeypatch.setenv("TEST_OTHER_MAGPIE", "key-2")


async def asked(gateway: RunningGateway) -> dict[str, Any]:
    """The message of the first answer. (Any: JSON.)"""
    response = await gateway.chat(messages=[ASKED], tools=TOOLS)
    message: dict[str, Any] = response.json()["choices"][0]["message"]
    return message


async def history_after(
    gateway: RunningGateway, backend: FaultyBackend, message: dict[str, Any], model: str = "m"
) -> tuple[dict[str, Any], str]:
    """The Magpie's own turn as it gets it back, and the notices of that request. (Any: JSON.)"""
    result: Json = {"role": "tool", "tool_call_id": "m1", "content": "A ring."}
    response = await gateway.client.post(
        "/v1/chat/completions",
        json={"model": model, "messages": [ASKED, message, result], "tools": TOOLS},
        headers={"x-dragoman-explain": "1"},
    )
    assert response.status_code == 200, response.text
    turn: dict[str, Any] = msgspec.json.decode(backend.seen[-1][1])["history"][1]
    return turn, response.text


async def test_a_seal_comes_back_through_the_client() -> None:
    async with magpies() as (gateway, backend):
        message = await asked(gateway)
        shown = message["extra_content"]["magpie"]["opaque"]
        assert shown.startswith("Dragoman") and shown.endswith("only-mine")
        turn, _ = await history_after(gateway, backend, message)
    assert (turn["thinks"], turn["seals"]) == ("Where?", ["only-mine"])


async def test_a_seal_reaches_no_other_account() -> None:
    async with magpies() as (gateway, backend):
        turn, told = await history_after(gateway, backend, await asked(gateway), "other")
    assert "seals" not in turn and b"only-mine" not in backend.seen[-1][1]
    assert "STATE_FOREIGN" in told


async def test_the_state_cache_puts_back_what_the_client_has_dropped() -> None:
    # A busy machine must not look like a slow store.
    async with magpies(keeper={"enabled": True}, state={"deadline_ms": 5000}) as (gateway, backend):
        message = await asked(gateway)
        dropped = {name: message[name] for name in ("role", "content", "tool_calls")}
        turn, told = await history_after(gateway, backend, dropped)
    assert (turn["thinks"], turn["seals"]) == ("Where?", ["only-mine"])
    assert "STATE_RESTORED" in told
