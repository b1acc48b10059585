"""Tests the measurement of agents' requests with a real gateway and the backend of the benchmark."""

import asyncio
import json
import math
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import PARTS
from bench.agent_body import SIZES, agent_body
from bench.agents import (
    COLUMNS,
    DELTAS,
    LIMITS,
    NEXT_TURNS,
    WIRES,
    Turns,
    Way,
    chosen,
    converse,
    grown_mb,
    of_checkout,
    settings,
    table,
)
from bench.gateways import CHAT, KEY, MeasuredGateway, Running, serve_command, started
from bench.load import Target
from bench.load_test.gateway_process import free_ports

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

TOGETHER = 3
# Another test may keep the processors.
PATIENCE_S = 90


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("agents")


def mock(folder: Path, held: int) -> Iterator[Target]:
    (port,) = free_ports(1)
    command = (sys.executable, "-m", "bench.mock", str(port), str(DELTAS), str(held))
    with started(command, port, None, {}, folder / f"mock{port}.log", PATIENCE_S):
        yield Target(f"http://127.0.0.1:{port}{CHAT}")


@pytest.fixture(scope="module")
def backend(folder: Path) -> Iterator[Target]:
    yield from mock(folder, 0)


@pytest.fixture(scope="module")
def holding_backend(folder: Path) -> Iterator[Target]:
    yield from mock(folder, TOGETHER)


@pytest.fixture(scope="module")
def gateway(folder: Path, backend: Target) -> Iterator[tuple[Target, Running]]:
    (port,) = free_ports(1)
    file = folder / "settings.json"
    file.write_text(json.dumps(settings(port, backend.url.removesuffix(CHAT), folder / "gateway.log")))
    target = Target(f"http://127.0.0.1:{port}{CHAT}", (("authorization", f"Bearer {KEY}"),))
    with started(
        serve_command(file), port, None, {"DRAGOMAN_API_KEYS": KEY}, folder / "gateway.err", PATIENCE_S
    ) as running:
        yield target, running


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("wire", WIRES)
def test_every_way_answers_a_conversation_whole(gateway: tuple[Target, Running], wire: str, limits: str) -> None:
    target, running = gateway
    for stream in (False, True):
        body = agent_body("60", Way("dragoman", wire, limits).model, stream=stream)
        first, later = asyncio.run(converse(target, running, body, 2, 0))
        assert (first.errors, later.errors) == (0, 0)
        assert (len(first.first_bytes), len(later.first_bytes)) == (2, 2 * NEXT_TURNS)
        assert min(first.cpu_s, first.first_byte_s, later.cpu_s, later.first_byte_s) > 0


def test_only_the_limits_shorten_a_history(gateway: tuple[Target, Running], folder: Path) -> None:
    target, running = gateway
    log = folder / "gateway.log"
    for limits, said in (("off", False), ("on", True)):
        before = len(log.read_text())
        asyncio.run(
            converse(target, running, agent_body("500", Way("dragoman", "native", limits).model, stream=False), 1, 0)
        )
        assert ("Limiting tool results" in log.read_text()[before:]) is said


def test_a_response_that_is_not_whole_gives_no_figure(gateway: tuple[Target, Running]) -> None:
    target, running = gateway
    first, _ = asyncio.run(converse(target, running, agent_body("small", "unknown", stream=True), 2, 0))
    assert first.errors == 2 and math.isnan(first.cpu_s) and math.isnan(first.first_byte_s)


def test_memory_is_measured_while_all_requests_are_there(holding_backend: Target) -> None:
    """The backend begins no response before it has all requests: with one fewer, none ends."""
    idle = Running(None, 0)
    body = agent_body("small", "any", stream=True)
    assert asyncio.run(grown_mb(holding_backend, idle, body, TOGETHER)) == 0

    async def too_few() -> None:
        async with asyncio.timeout(0.5):
            await grown_mb(holding_backend, idle, body, TOGETHER - 1)

    with pytest.raises(TimeoutError):
        asyncio.run(too_few())


def test_the_processor_time_of_another_process_is_read(folder: Path) -> None:
    (port,) = free_ports(1)
    spin = (
        f"import socket, time\ns = socket.create_server(('127.0.0.1', {port}))\nwhile time.process_time() < 0.5: pass\n"
    )
    with started((sys.executable, "-c", spin + "time.sleep(60)"), port, None, {}, folder / "spin.log") as running:
        while (spent := running.cpu_s) < 0.5:
            pass
        assert spent == pytest.approx(0.5, abs=0.1)


def test_another_checkout_runs_its_own_code(folder: Path) -> None:
    other = folder / "other"
    (other / "gateway").mkdir(parents=True)
    (other / "gateway" / "__main__.py").write_text("print('the other one')")
    target = Target(f"http://127.0.0.1:1{CHAT}")
    found = of_checkout(MeasuredGateway(target, (sys.executable, "-m", "gateway")), other)
    assert found.command is not None
    said = subprocess.check_output(found.command, env={**os.environ, **found.environ}, text=True)
    assert said == "the other one\n"


def options(**chosen: Any) -> Namespace:
    every = {"size": list(SIZES), "wire": list(WIRES), "limits": list(LIMITS)}
    return Namespace(**{**every, **chosen})


def test_a_part_of_the_rows_can_be_chosen() -> None:
    assert len(list(chosen("dragoman", options()))) == len(SIZES) * len(WIRES) * len(LIMITS)
    few = chosen("dragoman", options(size=["500"], wire=["text"], limits=["off"]))
    assert list(few) == [(Way("dragoman", "text"), "500")]
    assert list(chosen("before", options(size=["500"], wire=["text"], limits=["off"]))) == [
        (Way("before", "text"), "500")
    ]
    # What the others are compared with.
    assert list(chosen("relay", options(size=["500"], wire=["text"]))) == [(Way("relay", "native"), "500")]


def test_a_table_compares_each_figure_with_that_of_the_relay() -> None:
    rows = {
        Way("relay", "native"): (2.0,) * len(COLUMNS),
        Way("dragoman", "text", "on"): (5.0, math.nan, 250.0, 0.5),
    }
    lines = table("60", COLUMNS, rows).splitlines()
    assert lines[2] == "| relay, native | 2 | 2 | 2 | 2 |"
    assert lines[3] == "| dragoman, text, limits | 5 (2.5) | failed | 250 (125) | 0.5 (0.25) |"
    assert lines[4] == "| litellm | not measured | not measured | not measured | not measured |"


def test_the_parts_of_the_benchmark_have_their_names() -> None:
    assert list(PARTS) == ["cases", "agents", "agents-memory"]


def test_turns_without_a_response_have_no_figure() -> None:
    assert math.isnan(Turns(errors=1).cpu_s)
