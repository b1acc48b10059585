"""Short jobs of the kind that `make long-jobs` gives the real Codex and Claude Code, with one compaction of each form
(`make clients`): so what plays the long jobs stays sound."""

from pathlib import Path
from typing import Final

import pytest

from tests.clients.installed import CLIENTS
from tests.long_jobs.job import FACTS, LEDGER, LongJob
from tests.long_jobs.play import AGENTS, REMOTE, Client, play

ROUNDS: Final = 30
# So many words that the window is full once in these rounds.
PRINTED: Final = 1_400

pytestmark = [
    pytest.mark.clients,
    pytest.mark.skipif(not CLIENTS, reason="make clients installs the programs and runs this"),
]


@pytest.mark.parametrize("client", AGENTS, ids=lambda client: client.name)
async def test_a_job_loses_nothing_over_a_compaction_of_the_client(
    client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = LongJob(ROUNDS, printed=PRINTED)
    await play(job, client, ["warp"], tmp_path, capsys)
    assert job.compactions and not job.sealed
    assert job.last == FACTS


async def test_a_job_loses_nothing_over_a_compaction_of_the_api(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = LongJob(ROUNDS, pause=ROUNDS // 2, printed=PRINTED)
    await play(job, REMOTE, ["warp", "text"], tmp_path, capsys)
    assert job.compactions and job.sealed == [min(behind, LEDGER) for behind in job.compactions]
    assert job.last == FACTS
