"""The real Codex lives through compactions (`make clients`): with its built-in provider, whose API has to compact, over
a change of the backend in between, and with the provider that `dragoman connect codex` writes, which compacts by an
ordinary request."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.memory.summaries.job_request import INSTRUCTIONS
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.clients.installed import CLIENTS, PROGRAMS
from tests.server.summaries.scripted import completion, summarise

CODEX: Final = PROGRAMS / "node_modules" / ".bin" / "codex"
PATIENCE_S: Final = 120
QUESTION: Final = "Remember the word swordfish. Run the commands."
# Codex compacts when an answer reports so many tokens.
FULL: Final = 260_000
ROUNDS: Final = 6
BUILT_IN: Final = 'model = "m"\nopenai_base_url = "{url}/v1"\n'
# Codex takes a provider of this name for its built-in one, and its silence may then be limited.
IMPATIENT: Final = """\
model = "m"
model_provider = "impatient"
model_context_window = 272000
[model_providers.impatient]
name = "OpenAI"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
stream_idle_timeout_ms = 2000
stream_max_retries = 0
"""
SLOW_S: Final = 6
CONNECTED: Final = """\
model = "m"
model_provider = "dragoman"
model_context_window = 272000
[model_providers.dragoman]
name = "Dragoman"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
"""


class Model:
    """A chat backend that has a command run in each round, and says after every second one that its window is full. It
    takes `slow_s` seconds to write a summary."""

    def __init__(self, slow_s: float) -> None:
        self.rounds = 0
        self._slow_s = slow_s
        self.summarised = 0
        self.asked: list[list[dict[str, Any]]] = []

    async def script(self, connection: Connection) -> None:
        body = json.loads(connection.body)
        messages = body["messages"]
        if messages[0].get("content") == INSTRUCTIONS:
            self.summarised += 1
            await asyncio.sleep(self._slow_s)
            lines = [json.loads(line) for line in messages[1]["content"].split("\n")]
            await connection.send(completion(summarise(lines), "stop", 1_000))
            return
        self.asked.append(messages)
        tools = {tool["function"]["name"] for tool in body.get("tools", [])}
        if "exec_command" not in tools or self.rounds == ROUNDS:
            # Without tools Codex asks for a summary.
            await connection.send(_streamed([{"content": "The word is swordfish."}], "stop", 1_000))
            return
        self.rounds += 1
        arguments = json.dumps({"cmd": f"echo round {self.rounds}"})
        call: Json = {
            "index": 0,
            "id": f"call_{self.rounds}",
            "type": "function",
            "function": {"name": "exec_command", "arguments": arguments},
        }
        tokens = FULL if self.rounds % 2 == 0 else 1_000
        await connection.send(_streamed([{"tool_calls": [call]}], "tool_calls", tokens))


def _streamed(deltas: list[dict[str, Json]], finish: str, tokens: int) -> bytes:
    def event(choices: list[Json], **fields: Json) -> bytes:
        body: Json = {"id": "c", "object": "chat.completion.chunk", "choices": choices, **fields}
        return b"data: %s\n\n" % json.dumps(body).encode()

    usage: Json = {"prompt_tokens": tokens, "completion_tokens": 10, "total_tokens": tokens + 10}
    parts = [event([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    parts.append(event([{"index": 0, "delta": {}, "finish_reason": finish}]))
    parts.append(event([], usage=usage))
    body = b"".join(parts) + b"data: [DONE]\n\n"
    return answer("200 OK", body, b"content-type: text/event-stream")


@asynccontextmanager
async def serving(slow_s: float = 0) -> AsyncIterator[tuple[RunningGateway, Model]]:
    model = Model(slow_s)
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        chat: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        settings: dict[str, Json] = {
            "server": {"sse_ping_s": 0.5},
            "state": {"deadline_ms": 10_000},
            "backends": {"one": chat, "other": chat},
            "models": {
                "m": {"backend": "one", "context_length": 272_000},
                "n": {"backend": "other", "context_length": 272_000},
            },
        }
        yield await stack.enter_async_context(running_gateway(settings)), model


async def run(folder: Path, config: str, *arguments: str) -> str:
    """What `codex exec` prints, which ends well."""
    home, work = folder / "home", folder / "work"
    home.mkdir(exist_ok=True)
    work.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    environ = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environ |= {"CODEX_HOME": str(home), "OPENAI_API_KEY": "unused", "CODEX_API_KEY": "unused"}
    process = await asyncio.create_subprocess_exec(
        str(CODEX),
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        *arguments,
        cwd=work,
        env=environ,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        printed, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    text = printed.decode()
    assert process.returncode == 0 and "Error" not in text, text
    return text


needs_codex: Final = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS or not CODEX.exists(), reason="make clients installs the programs and runs this"),
]
pytestmark = needs_codex


async def test_the_api_compacts_three_times_for_the_built_in_provider(tmp_path: Path) -> None:
    async with serving() as (gateway, model):
        printed = await run(tmp_path, BUILT_IN.format(url=gateway.base_url), QUESTION)
        assert printed.count("context compacted") == 3 and model.rounds == ROUNDS
        assert model.summarised == 3
        last = [message["content"] for message in model.asked[-1]]
        [summary] = [text for text in last if isinstance(text, str) and text.startswith("[The first ")]
        # What the first messages said, and what was done before the first compaction.
        assert QUESTION in summary and "echo round 1" in summary and "echo round 6" in summary


async def test_it_waits_for_a_compaction_that_takes_longer_than_it_bears_silence(tmp_path: Path) -> None:
    async with serving(SLOW_S) as (gateway, model):
        printed = await run(tmp_path, IMPATIENT.format(url=gateway.base_url), QUESTION)
        assert printed.count("context compacted") == model.summarised == 3 and model.rounds == ROUNDS


async def test_a_compacted_session_goes_on_with_another_backend(tmp_path: Path) -> None:
    async with serving() as (gateway, model):
        config = BUILT_IN.format(url=gateway.base_url)
        await run(tmp_path, config, QUESTION)
        model.rounds = ROUNDS
        printed = await run(tmp_path, config.replace('"m"', '"n"'), "resume", "--last", "Which word?")
        assert "swordfish" in printed
        assert any("[The first " in str(message["content"]) for message in model.asked[-1])


async def test_the_connected_provider_compacts_by_itself(tmp_path: Path) -> None:
    async with serving() as (gateway, model):
        printed = await run(tmp_path, CONNECTED.format(url=gateway.base_url), QUESTION)
        assert "context compacted" in printed and model.rounds == ROUNDS
        assert model.summarised == 0
