"""Plays a job to the real Codex and Claude Code, over a gateway and demo backends, and counts what the gateway needs.

Its processor time for a round is printed beside the size of the body, and judged by nobody.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final

import httpx
import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.demo.serve import DemoBackend, serve_demo
from tests.clients.installed import PROGRAMS
from tests.clients.scratch import Outcome, Scratch
from tests.long_jobs.job import END, TASK, LongJob
from tests.promises.measured_gateway import Probed, Reading, probed_gateway

# The memory is compared from here on: by then every cache has been filled once.
EARLY: Final = 50
MOST_GROWN: Final = 32 * 2**20
# So many rounds lie between two readings of the gateway's memory.
EVERY: Final = 25
LONGEST_S: Final = 3600
# Small enough for at least three compactions: a round adds some 330 tokens by the count of the demo backends.
WINDOW: Final = 48_000
LONGEST_ANSWER: Final = 4_000

WIRES: Final[dict[str, tuple[str, dict[str, Json]]]] = {
    "warp": ("agent", {"adapter": "warp", "encoding": "flatten", "rollback": "buffer"}),
    "text": ("text", {"adapter": "text", "wire": "llama_cpp"}),
    "mapped": ("grpc", {"adapter": "proto", "preset": "demo"}),
}
_BIN: Final = PROGRAMS / "node_modules" / ".bin"


class Client(msgspec.Struct, frozen=True):
    """An agent: its program, the commands that give it the job, and what keeps it from asking anybody else."""

    name: str
    program: Path
    commands: str
    environ: dict[str, str]


_CODEX: Final = f"""
mkdir -p ~/.codex
cat > ~/.codex/config.toml <<END
model = "job"
model_context_window = {WINDOW}
model_auto_compact_token_limit = {WINDOW - 2 * LONGEST_ANSWER}
%s
END
codex exec --dangerously-bypass-approvals-and-sandbox '{TASK}'
"""
# With a provider of its own, Codex compacts by an ordinary request.
_CONNECTED: Final = """\
model_provider = "dragoman"
[model_providers.dragoman]
name = "Dragoman"
base_url = "$GATEWAY/v1"
wire_api = "responses"
"""
# With its built-in provider it has the API compact. In the middle of the job the user goes on with another model.
_BUILT_IN: Final = 'openai_base_url = "$GATEWAY/v1"'
_WITH_ANOTHER: Final = """
sed -i 's/"job"/"other"/' ~/.codex/config.toml
codex exec --dangerously-bypass-approvals-and-sandbox resume --last 'Go on.'
"""
REMOTE: Final = Client(
    "codex, compacted by the API",
    _BIN / "codex",
    _CODEX % _BUILT_IN + _WITH_ANOTHER,
    {"RUST_LOG": "error", "OPENAI_API_KEY": "unused", "CODEX_API_KEY": "unused"},
)
AGENTS: Final = (
    Client("codex", _BIN / "codex", _CODEX % _CONNECTED, {"RUST_LOG": "error"}),
    Client(
        "claude-code",
        PROGRAMS / "bin" / "claude",
        f"claude -p --dangerously-skip-permissions --model job '{TASK}'",
        {
            "ANTHROPIC_API_KEY": "unused",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": "job",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_MAX_CONTEXT_TOKENS": str(WINDOW),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(LONGEST_ANSWER),
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },
    ),
)


# The model that a job begins with, and the one that goes on.
MODELS: Final = ("job", "other")


def settings(entries: Mapping[str, Json]) -> dict[str, Json]:
    """The models, of whose history no limit takes anything: what a compaction leaves is what the backend must get."""
    return {
        "max_tool_results": None,
        "max_history_messages": None,
        "backends": {**entries},
        "models": {name: {"backend": name, "context_length": WINDOW} for name in entries},
    }


class Sample(msgspec.Struct, frozen=True):
    """A reading of the gateway after so many rounds."""

    rounds: int
    reading: Reading


async def watch(job: LongJob, gateway: Probed, samples: list[Sample]) -> None:
    """Reads the gateway's memory every `EVERY` rounds, until it is cancelled."""
    due = 0
    while True:
        if len(job.rounds) >= due:
            samples.append(Sample(len(job.rounds), await gateway.read()))
            due += EVERY
        await asyncio.sleep(0.02)


class Stretch(msgspec.Struct, frozen=True):
    """The rounds between two readings: the mean body in KiB, and the mean processor time of a round in ms."""

    first: int
    last: int
    body: float
    spent: float
    memory: int

    @property
    def relative(self) -> float:
        """Milliseconds for a KiB of the body."""
        return self.spent / self.body

    def __str__(self) -> str:
        return (
            f"rounds {self.first}-{self.last}: {self.body:.0f} KiB sent, {self.spent:.1f} ms a round, "
            f"{self.relative:.3f} ms a KiB, memory {self.memory / 2**20:.1f} MiB"
        )


def stretches(job: LongJob, samples: Sequence[Sample]) -> list[Stretch]:
    found = []
    for before, after in pairwise(samples):
        rounds = job.rounds[before.rounds : after.rounds]
        if rounds:
            body = sum(one.size for one in rounds) / len(rounds) / 1024
            spent = (after.reading.processor - before.reading.processor) / len(rounds) * 1000
            found.append(Stretch(before.rounds + 1, after.rounds, body, spent, after.reading.memory))
    return found


def told(found: Sequence[Stretch]) -> str:
    """One line for each stretch, and how the time for a KiB that is sent has changed since the first quarter."""
    quarter = max(1, len(found) // 4)
    early, late = (sum(one.relative for one in some) / quarter for some in (found[:quarter], found[-quarter:]))
    return "\n".join([*map(str, found), f"ms a KiB, last quarter to first: {late / early:.2f}"])


def run(client: Client, scratch: Scratch, gateway: Probed) -> Outcome:
    folders = (str(client.program.parent), str(Path(sys.executable).parent), os.environ["PATH"])
    places = {"GATEWAY": gateway.base_url, "ANTHROPIC_BASE_URL": gateway.base_url, "PATH": os.pathsep.join(folders)}
    return scratch.run(client.commands, {**client.environ, **places}, LONGEST_S)


@asynccontextmanager
async def backends(job: LongJob, wires: Sequence[str]) -> AsyncIterator[dict[str, Json]]:
    """Runs a demo backend of each wire, which the job answers; yields their entries by the names of the models."""
    async with AsyncExitStack() as stack:
        entries: dict[str, Json] = {}
        for name, wire in zip(MODELS, wires, strict=False):
            kind, entry = WIRES[wire]
            backend = await stack.enter_async_context(served(job, kind))
            entries[name] = {**entry, "base_url": backend.base_url}
        yield entries


@asynccontextmanager
async def served(job: LongJob, kind: str) -> AsyncIterator[DemoBackend]:
    async with serve_demo(kind, model=lambda dialogue: job.reply(dialogue, backend.requests[-1].body)) as backend:
        yield backend


async def unwritten(gateway: Probed) -> list[str]:
    """The lines of the metrics that count compactions which no model has written."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as http:
        answer = await http.get(f"{gateway.base_url}/metrics", timeout=30)
    return [line for line in answer.text.splitlines() if "COMPACTION_UNWRITTEN" in line]


async def play(
    job: LongJob,
    client: Client,
    wires: Sequence[str],
    folder: Path,
    shown: pytest.CaptureFixture[str],
    **limits: Json,
) -> None:
    """Returns when the job has ended well, no output was lost, and the gateway's memory has not grown. With two wires
    the second one takes over where the job pauses."""
    if not client.program.exists():
        pytest.skip(f"NOT RUN: {client.program}, because its package could not be installed here")
    scratch = Scratch(folder)
    home = folder / "gateway"
    home.mkdir()
    samples: list[Sample] = []
    async with (
        backends(job, wires) as entries,
        probed_gateway(home, {**settings(entries), **limits}) as gateway,
    ):
        watching = asyncio.create_task(watch(job, gateway, samples))
        outcome = await asyncio.to_thread(run, client, scratch, gateway)
        watching.cancel()
        await asyncio.wait((watching,))
        samples.append(Sample(len(job.rounds), await gateway.read()))
        fallbacks = await unwritten(gateway)
    with shown.disabled():
        heading = f"{client.name} on {', then '.join(wires)} {limits}: {len(job.rounds)} rounds, "
        sys.stdout.write(f"\n{heading}compactions behind {job.compactions}\n{told(stretches(job, samples))}\n")
    assert outcome.status == 0, outcome.printed[-2000:]
    assert len(job.rounds) == job.wanted and job.ended == 1, (len(job.rounds), outcome.printed[-2000:])
    assert job.lost == [], "the output of these commands never reached the backend"
    assert f"{END} {' '.join(job.last)}" in outcome.printed, outcome.printed[-2000:]
    assert not fallbacks, fallbacks
    early = next((one for one in samples if one.rounds >= EARLY), samples[-1])
    grown = samples[-1].reading.memory - early.reading.memory
    assert grown <= MOST_GROWN, f"{grown / 2**20:.1f} MiB since round {early.rounds}"
