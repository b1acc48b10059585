"""Jobs of 400 rounds, over three compactions of the client, with the real Codex and Claude Code (make long-jobs).

What is counted: the rounds, what was lost of them, the facts that the last request to the backend still has, and the
memory of the gateway. Its processor time for a round is printed beside the size of the body, and judged by nobody.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.demo.scripted_model.dialogue import Dialogue, Reply
from gateway.demo.serve import DemoBackend, serve_demo
from tests.clients.installed import CLIENTS, PROGRAMS
from tests.clients.scratch import Outcome, Scratch
from tests.long_jobs.job import END, FACTS, TASK, WORDS, LongJob
from tests.promises.measured_gateway import Probed, Reading, probed_gateway

ROUNDS: Final = int(os.environ.get("LONG_JOB_ROUNDS", "400"))
COMPACTIONS: Final = 3 if ROUNDS >= 400 else ROUNDS // 133
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

pytestmark = [
    pytest.mark.long_jobs,
    pytest.mark.skipif(not CLIENTS, reason="make long-jobs installs the programs and runs this"),
]


class Client(msgspec.Struct, frozen=True):
    """An agent: its program, the commands that give it the job, and what keeps it from asking anybody else."""

    name: str
    program: Path
    commands: str
    environ: dict[str, str]


# With its own provider, Codex compacts by itself. With `openai_base_url` it would ask for a remote compaction:
# openai_base_url = "$GATEWAY/v1" in place of model_provider and [model_providers.dragoman].
CODEX: Final = f"""
mkdir -p ~/.codex
cat > ~/.codex/config.toml <<END
model = "job"
model_provider = "dragoman"
model_context_window = {WINDOW}
model_auto_compact_token_limit = {WINDOW - 2 * LONGEST_ANSWER}
[model_providers.dragoman]
name = "Dragoman"
base_url = "$GATEWAY/v1"
wire_api = "responses"
END
codex exec --dangerously-bypass-approvals-and-sandbox '{TASK}'
"""
AGENTS: Final = (
    Client("codex", _BIN / "codex", CODEX, {"RUST_LOG": "error"}),
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


def settings(backend: DemoBackend, entry: dict[str, Json]) -> dict[str, Json]:
    """One model, of whose history no limit takes anything: what a compaction leaves is what the backend must get."""
    return {
        "max_tool_results": None,
        "max_history_messages": None,
        "backends": {"job": {**entry, "base_url": backend.base_url}},
        "models": {"job": {"backend": "job", "context_length": WINDOW}},
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


async def played(client: Client, wire: str, folder: Path, shown: pytest.CaptureFixture[str], **limits: Json) -> LongJob:
    """The job after its end: it ended well, no output was lost, and the gateway's memory has not grown."""
    if not client.program.exists():
        pytest.skip(f"NOT RUN: {client.program}, because its package could not be installed here")
    scratch = Scratch(folder)
    home = folder / "gateway"
    home.mkdir()
    kind, entry = WIRES[wire]
    samples: list[Sample] = []

    def model(dialogue: Dialogue) -> Reply:
        return job.reply(dialogue)

    async with serve_demo(kind, model=model) as backend:
        job = LongJob(ROUNDS, lambda: backend.requests[-1].body)
        async with probed_gateway(home, {**settings(backend, entry), **limits}) as gateway:
            watching = asyncio.create_task(watch(job, gateway, samples))
            outcome = await asyncio.to_thread(run, client, scratch, gateway)
            watching.cancel()
            await asyncio.wait((watching,))
            samples.append(Sample(len(job.rounds), await gateway.read()))
    with shown.disabled():
        heading = f"{client.name} on {wire} {limits}: {len(job.rounds)} rounds, compactions behind {job.compactions}"
        sys.stdout.write(f"\n{heading}\n{told(stretches(job, samples))}\n")
    assert outcome.status == 0, outcome.printed[-2000:]
    assert len(job.rounds) == ROUNDS and job.ended == 1, (len(job.rounds), outcome.printed[-2000:])
    assert job.lost == [], "the output of these commands never reached the backend"
    assert f"{END} {' '.join(job.last)}" in outcome.printed
    early = next((one for one in samples if one.rounds >= EARLY), samples[-1])
    grown = samples[-1].reading.memory - early.reading.memory
    assert grown <= MOST_GROWN, f"{grown / 2**20:.1f} MiB since round {early.rounds}"
    return job


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("client", AGENTS, ids=lambda client: client.name)
async def test_a_job_of_400_rounds_ends_and_loses_nothing(
    client: Client, wire: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = await played(client, wire, tmp_path, capsys)
    assert len(job.compactions) >= COMPACTIONS, job.compactions
    assert job.last == FACTS


@pytest.mark.parametrize("client", AGENTS, ids=lambda client: client.name)
async def test_under_the_limits_of_a_fresh_installation_the_users_words_stay(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the limits take out no client has to compact: it sends all of its history each time."""
    job = await played(client, "warp", tmp_path, capsys, max_tool_results=10, max_history_messages=50)
    assert WORDS in job.last
