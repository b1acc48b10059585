"""The key that seals what clients keep is there before a gateway serves: one for all of its workers, also where no
folder can keep it, and a start that ends with words where it cannot be used."""

import asyncio
import os
import re
import signal
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from gateway.demo.serve import serve_demo
from gateway.testing.gateway import gateway_command
from tests.server.process.test_answers_of_workers import settings
from tests.server.process.test_workers import children, crowd_before, metrics_become, until

INPUT: Final = [{"type": "message", "role": "user", "content": "Find out why the service fails at its start."}]
TWO: Final = ("serve", "--port", "0", "--workers", "2")


async def opened(client: httpx.AsyncClient, output: list[Any]) -> list[int]:
    """Returns the statuses of requests that either worker may get."""
    again = [client.post("/v1/responses", json={"model": "m", "input": output}) for _ in range(12)]
    return [one.status_code for one in await asyncio.gather(*again)]


@pytest.mark.full
@pytest.mark.parametrize("folder", ["state", "/proc/nowhere"])
async def test_workers_and_their_successors_have_one_key(tmp_path: Path, folder: str) -> None:
    place = str(tmp_path / folder)
    async with (
        serve_demo("chat") as demo,
        gateway_command(tmp_path, settings(demo.base_url), *TWO, STATE_DIRECTORY=place) as gateway,
    ):
        await gateway.wait_ready()
        await metrics_become(gateway, {"gateway_workers": 2})
        async with crowd_before(gateway) as client:
            made = await client.post("/v1/responses/compact", json={"model": "m", "input": INPUT})
            assert made.status_code == 200, made.text
            output = made.json()["output"]
            assert await opened(client, output) == [200] * 12
            before = children(gateway)
            os.kill(before[0], signal.SIGKILL)
            await until(lambda: len({*children(gateway)} - {*before}) == 1)
            os.kill(before[1], signal.SIGKILL)
            await until(lambda: len({*children(gateway)} - {*before}) == 2)
            assert await opened(client, output) == [200] * 12
        gateway.process.terminate()
        _, logged = await gateway.ended()
    told = re.findall(r".*(?:made a key|no key can be kept).*", logged)
    assert len(told) == 1 and place in told[0] and "DRAGOMAN_STATE_KEY" in told[0]


@pytest.mark.parametrize("arguments", [("serve", "--port", "0"), TWO])
async def test_a_key_that_cannot_be_used_ends_the_start_with_one_line(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "state.key").write_text("cut off")
    (tmp_path / "state.key").chmod(0o600)
    used = settings("http://127.0.0.1:1")
    async with gateway_command(tmp_path, used, *arguments, STATE_DIRECTORY=str(tmp_path)) as gateway:
        status, errors = await gateway.ended()
    assert status == 2 and errors.count("\n") == 1
    assert str(tmp_path / "state.key") in errors and "64 hexadecimal digits" in errors
