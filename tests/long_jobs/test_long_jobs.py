"""Jobs of 400 rounds, over three compactions, with the real Codex and Claude Code (make long-jobs).

What is counted: the rounds, what was lost of them, the facts that the last request to the backend still has, and the
memory of the gateway.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed import CLIENTS
from tests.long_jobs.job import FACTS, LEDGER, WORDS, LongJob
from tests.long_jobs.play import AGENTS, REMOTE, WIRES, Client, play

ROUNDS: Final = int(os.environ.get("LONG_JOB_ROUNDS", "400"))
COMPACTIONS: Final = 3 if ROUNDS >= 400 else ROUNDS // 133

pytestmark = [
    pytest.mark.long_jobs,
    pytest.mark.skipif(not CLIENTS, reason="make long-jobs installs the programs and runs this"),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("client", AGENTS, ids=lambda client: client.name)
async def test_a_job_of_400_rounds_ends_and_loses_nothing(
    client: Client, wire: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = LongJob(ROUNDS)
    await play(job, client, [wire], tmp_path, capsys)
    assert len(job.compactions) >= COMPACTIONS, job.compactions
    assert job.last == FACTS


@pytest.mark.parametrize("wires", [("warp", "text"), ("text", "mapped"), ("mapped", "warp")], ids="-".join)
async def test_a_job_that_the_api_compacts_goes_on_with_another_backend(
    wires: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The gateway makes the compactions. What the user said stands in them whatever a model writes, and so do the
    newest calls."""
    job = LongJob(ROUNDS, pause=ROUNDS // 2)
    await play(job, REMOTE, wires, tmp_path, capsys)
    assert len(job.compactions) >= COMPACTIONS, job.compactions
    assert job.sealed == [LEDGER] * len(job.compactions)
    assert job.last == FACTS


@pytest.mark.parametrize("client", AGENTS, ids=lambda client: client.name)
async def test_under_the_limits_of_a_fresh_installation_the_users_words_stay(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the limits take out no client has to compact: it sends all of its history each time."""
    job = LongJob(ROUNDS)
    await play(job, client, ["warp"], tmp_path, capsys, max_tool_results=10, max_history_messages=50)
    assert WORDS in job.last
