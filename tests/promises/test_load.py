"""Tests the promises under load for a short time; `make load` runs longer."""

import asyncio
import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import payload
from bench.load_test import idle as idle_clients
from bench.load_test import service, slow_clients
from bench.load_test.conversations import conversations
from bench.load_test.descriptors import LIMIT, descriptors
from bench.load_test.figures import Figure, quantile, slope
from bench.load_test.gateway_process import (
    BackendAddresses,
    GatewayProcess,
    allow_descriptors,
    backends,
    gateway_process,
)
from bench.load_test.http_client import WholeResponse, connect
from bench.load_test.idle import idle
from bench.load_test.slow_clients import readers
from bench.load_test.soak import soak
from bench.load_test.streams import WIRES, ask, request, streams, verdict

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

# Long for a client that is starved of processor time: it connects two hundred times before it sends anything.
HEAD_TIMEOUT_S: Final = 6
WRITE_TIMEOUT_S: Final = 3
CONNECTIONS: Final = 2500


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that other tests keep busy is slow at random moments; `make load` has a quiet one."""
    monkeypatch.setattr(service, "SERVED_MS", 10_000)
    monkeypatch.setattr(idle_clients, "LATE_S", 10)
    monkeypatch.setattr(slow_clients, "LATE_S", 10)


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BackendAddresses]:
    with backends(tmp_path_factory.mktemp("backends")) as running:
        yield running


@pytest.fixture(scope="module")
def opened(behind: BackendAddresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    """Started with few descriptors, of which it takes as many as the system allows."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    server = {"max_connections": CONNECTIONS, "header_timeout_s": HEAD_TIMEOUT_S, "write_timeout_s": WRITE_TIMEOUT_S}
    with gateway_process(tmp_path_factory.mktemp("load"), behind, server) as running:
        allow_descriptors()
        yield running
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def broken(figures: list[Figure]) -> list[str]:
    """The promises that were not kept."""
    return [f"{figure.what}: {figure.seen}, promised {figure.bound}" for figure in figures if not figure.kept]


def seen(figures: list[Figure], what: str) -> float:
    return next(figure.seen for figure in figures if figure.what == what)


@pytest.mark.full
async def test_a_thousand_streams_stay_apart(opened: GatewayProcess) -> None:
    """All wires by turns; there is room for a thousand, and the others are sent away with words."""
    figures = await streams(opened, WIRES, 1050, deltas=12, delay_ms=300)
    assert broken(figures) == []
    assert seen(figures, "under way at once") > 300


@pytest.mark.full
async def test_thousands_of_idle_connections_hinder_nobody(opened: GatewayProcess) -> None:
    assert broken(await idle(opened, CONNECTIONS, HEAD_TIMEOUT_S, rounds=2, seconds=0.5)) == []


@pytest.mark.full
async def test_clients_that_take_nothing_hinder_nobody(opened: GatewayProcess) -> None:
    assert broken(await readers(opened, 10, WRITE_TIMEOUT_S, seconds=0.5)) == []


@pytest.mark.full
async def test_long_conversations_are_kept_within_their_bound(opened: GatewayProcess) -> None:
    assert broken(await conversations(opened, 60)) == []


@pytest.mark.full
async def test_nothing_grows(opened: GatewayProcess) -> None:
    """Everything at once, failures and departures among it."""
    figures = await soak(opened, 0.1, lambda _: None, samples=4, settled_s=0)
    # Connections to backends are still kept for a while.
    assert broken([figure for figure in figures if figure.what != "descriptors afterwards"]) == []


@pytest.mark.full
async def test_the_gateway_survives_a_lack_of_descriptors(behind: BackendAddresses, tmp_path: Path) -> None:
    with gateway_process(tmp_path, behind, {"max_connections": 10 * LIMIT}, LIMIT) as lacking:
        assert broken(await descriptors(lacking, seconds=1.5, share=0.95)) == []
    told = (tmp_path / "gateway.log").read_text()
    assert told.count("server.max_connections is 1280, but 128 descriptors are enough for 32 clients") == 1
    assert "upstream_failure" not in told


@pytest.mark.full
async def test_clients_are_refused_with_words_while_backends_have_many_descriptors(
    behind: BackendAddresses, tmp_path: Path
) -> None:
    """The first clients connect, then ask for streams, which take a descriptor each; the others come after that."""

    marks = [f"mark-{number}" for number in range(LIMIT)]
    with gateway_process(tmp_path, behind, {"max_connections": 10 * LIMIT}, LIMIT) as lacking:
        first = {mark: await connect(lacking.target) for mark in marks[: LIMIT * 5 // 8]}
        asked = {mark: request(lacking.target, "native", mark, 5, 300) for mark in first}
        await asyncio.gather(*(connection.begin(asked[mark]) for mark, connection in first.items()))
        later = await asyncio.gather(*(ask(lacking.target, "native", mark, 5, 300) for mark in marks[len(first) :]))
        answers = [*[await connection.answer() for connection in first.values()], *later]
        for connection in first.values():
            connection.abort()
    assert {verdict(answer, mark, 5) for answer, mark in zip(answers, marks, strict=True)} == {"complete", "shed"}


def _answer(
    *texts: str, finish: str = "stop", last: str = "[DONE]", status: int = 200, **headers: str
) -> WholeResponse:
    deltas = [{"delta": {"content": text}} for text in texts]
    choices = [*deltas, {"delta": {}, "finish_reason": finish}]
    data = [*(json.dumps({"choices": [choice]}) for choice in choices), last]
    body = "".join(f"data: {one}\n\n" for one in data).encode()
    return WholeResponse(status, {name.replace("_", "-"): value for name, value in headers.items()}, body, 0, 1)


OWN: Final = payload.said(3, "mark-7")


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        (_answer(*OWN), "complete"),
        (_answer("".join(OWN)), "complete"),
        (None, "no answer"),
        (_answer(status=503, retry_after="1"), "shed"),
        (_answer(status=503), "shed without retry-after"),
        (_answer(OWN[0], "mark-70.1 ", OWN[2]), "another's text"),
        (_answer(*OWN, "mark-8.3 "), "another's text"),
        (_answer(OWN[1], OWN[0], OWN[2]), "not all of its text, or not in order"),
        (_answer(*OWN[:2]), "not all of its text, or not in order"),
        (_answer(*OWN, finish=""), "no finish"),
        (_answer(*OWN, last='{"error": {}}'), "status 200, b'data: {\"error\": {}}'"),
        (_answer(*OWN, status=502), "status 502, b'data: [DONE]'"),
    ],
)
def test_what_is_wrong_with_a_stream_is_seen(answer: WholeResponse | None, wanted: str) -> None:
    assert verdict(answer, "mark-7", 3) == wanted


@pytest.mark.parametrize(
    ("figure", "kept"), [(Figure("x", 3), True), (Figure("x", 3, 2), False), (Figure("x", 3, 9, 4), False)]
)
def test_a_figure_knows_its_bounds(figure: Figure, kept: bool) -> None:
    assert figure.kept == kept


def test_growth_is_a_slope() -> None:
    assert slope([(x, 5 + 2 * x) for x in (0.0, 1.0, 5.0)]) == pytest.approx(2)
    assert slope([(1, 1)]) == 0
    assert quantile([3, 1, 2], 0.5) == 2
