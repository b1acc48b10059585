"""Over 50 turns of the real Claude Code, what a backend can read from its cache never shrinks."""

import json
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

from gateway.testing.gateway import gateway_command
from tests.clients.installed import CLIENTS, PROGRAMS
from tests.clients.scratch import Scratch, claude_environ, printed_by
from tests.prompt_caches.provider_caches import Cache, blocks, tokens
from tests.prompt_caches.scripted_backend import ScriptedBackend, scripted_backend
from tests.prompt_caches.test_cached_part import CHAT, DEEPSEEK, GEMINI, MESSAGES, OPENROUTER, TURNS, Backend, named

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]
BACKENDS: Final = (MESSAGES, CHAT, OPENROUTER, DEEPSEEK, GEMINI)


class Played(msgspec.Struct, frozen=True):
    """A gateway, the backend behind it, and the model of the backend's cache."""

    url: str
    received: ScriptedBackend
    cache: Cache


@pytest_asyncio.fixture(params=BACKENDS, ids=named)
async def played(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Played]:
    backend: Backend = request.param
    folder = tmp_path / "gateway"
    folder.mkdir()
    with scripted_backend(TURNS - 1) as received:
        settings: dict[str, Any] = {
            "backends": {"scripted": {"adapter": backend.adapter, "base_url": received.url}},
            "models": {"cached": {"backend": "scripted", "name": backend.model, "profile": backend.profile}},
        }
        async with gateway_command(folder, settings, "serve", "--port", "0", stderr=DEVNULL) as command:
            await command.wait_ready()
            yield Played(command.base_url, received, backend.cache())


def test_the_cached_part_of_a_claude_code_session_never_shrinks(played: Played, tmp_path: Path) -> None:
    printed_by(
        PROGRAMS / "bin" / "claude",
        Scratch(tmp_path),
        "claude -p 'Run the rounds' --model cached --dangerously-skip-permissions",
        claude_environ(played.url, "cached"),
    )
    bodies = played.received.received
    assert len(bodies) == TURNS
    read = [played.cache.ask(body) for body in bodies]
    whole = [tokens(blocks(body)) for body in bodies]
    assert read[1:] == whole[:-1], json.dumps([*zip(read, whole, strict=True)])
