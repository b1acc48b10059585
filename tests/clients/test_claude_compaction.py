"""The real Claude Code compacts by itself on a backend that reads only text (`make clients`): at the moment that its
window asks for, because each answer says how much its prompt had, and it goes on with what its summary says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from adapters.text.demo.request import CLOSER, OPENER
from gateway.core.conversation import Json
from gateway.core.tokens import estimate_text
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.clients.installed import CLIENTS, PROGRAMS
from tests.clients.scratch import Scratch, claude_environ, printed_by

CLAUDE: Final = PROGRAMS / "bin" / "claude"
WINDOW: Final = 60_000
LONGEST: Final = 8_000
# Claude Code compacts where 13,000 tokens and the longest answer are left of the window.
FULL: Final = WINDOW - LONGEST - 13_000
ROUNDS: Final = 8
CHARACTERS_A_TOKEN: Final = 4
QUESTION: Final = "Remember the word swordfish. Run the commands."
# How Claude Code asks for a summary of the conversation.
ASKED: Final = "create a detailed summary of the conversation"
SUMMARY: Final = "<summary>The word is swordfish. Commands are being run.</summary>"
ENVIRON: Final = {
    "ANTHROPIC_MODEL": "m",
    "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(WINDOW),
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(LONGEST),
}
pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS or not CLAUDE.exists(), reason="make clients installs the programs and runs this"),
]


class Asked(msgspec.Struct, frozen=True):
    """A prompt, and whether it asks for a summary."""

    prompt: str
    summary: bool

    @property
    def tokens(self) -> int:
        return len(self.prompt) // CHARACTERS_A_TOKEN


class TextModel:
    """llama.cpp's completion endpoint, whose model has a command run in each round. `counts`: it reports tokens."""

    def __init__(self, counts: bool) -> None:
        self.asked: list[Asked] = []
        self.rounds = 0
        self._counts = counts

    async def script(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        asked = Asked(body["prompt"], ASKED in body["prompt"][-8_000:])
        self.asked.append(asked)
        if asked.summary:
            text = f" {SUMMARY}"
        elif OPENER not in asked.prompt or self.rounds == ROUNDS:
            text = " All commands were run."
        else:
            self.rounds += 1
            # Some six thousand tokens.
            command: Json = {"command": f"echo round {self.rounds}; seq -w 1 4000", "description": "Count"}
            text = f" {OPENER}\n{json.dumps({'name': 'Bash', 'arguments': command})}\n{CLOSER}"
        last: dict[str, Json] = {"index": 0, "content": text, "stop": True, "stop_type": "eos", "stopping_word": ""}
        if self._counts:
            last |= {"tokens_evaluated": asked.tokens, "tokens_predicted": len(text) // CHARACTERS_A_TOKEN}
        if body.get("stream"):
            frame = b"data: %s\n\n" % json.dumps(last).encode()
            await connection.send(answer("200 OK", frame, b"content-type: text/event-stream"))
        else:
            await connection.send(answer("200 OK", json.dumps(last).encode(), b"content-type: application/json"))


@asynccontextmanager
async def serving(counts: bool) -> AsyncIterator[tuple[RunningGateway, TextModel]]:
    model = TextModel(counts)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        settings: dict[str, Json] = {
            "backends": {"text": {"adapter": "text", "wire": "llama_cpp", "base_url": backend.base_url}},
            "models": {"m": {"backend": "text", "context_length": WINDOW}},
        }
        yield await stack.enter_async_context(running_gateway(settings)), model


@pytest.mark.parametrize("counts", [True, False], ids=["the backend counts", "the gateway estimates"])
async def test_it_compacts_when_its_window_is_full_and_goes_on(counts: bool, tmp_path: Path) -> None:
    async with serving(counts) as (gateway, model):
        environ = {**claude_environ(gateway.base_url, "m"), **ENVIRON}
        command = f"claude -p '{QUESTION}' --dangerously-skip-permissions"
        printed = await asyncio.to_thread(printed_by, CLAUDE, Scratch(tmp_path), command, environ)
        assert "All commands were run." in printed and model.rounds == ROUNDS
        at = next(n for n, asked in enumerate(model.asked) if asked.summary)
        sizes = [asked.tokens if counts else estimate_text(asked.prompt) for asked in model.asked]
        before = sizes[:at]
        a_round = before[-1] - before[-2]
        # Not sooner, and not later: the newest result is added to what the last answer says.
        assert FULL - 2 * a_round < before[-1] < FULL and before == sorted(before)
        assert max(sizes) + LONGEST <= WINDOW
        assert sizes[at + 1] < before[-1] and "The word is swordfish." in model.asked[at + 1].prompt
