"""Promises with a number in them: nothing is cut off in silence, hostile cases are cheap, and everything is given back.

The bounds are no benchmark. They are many times what is seen, so that a busy machine does not break them, and only work
without a bound does: a regular expression gone wild, a copy per piece, a buffer that nobody limits.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, Connection, FaultyBackend, Script, chunk, faulty_backend, head
from gateway.testing.gateway import hello
from tests.fuzz.hostile_answers import WARP
from tests.promises.hostile import REQUESTS, answering, scripts
from tests.promises.measured_gateway import Probed, Reading, probed_gateway
from tests.promises.wire_gateway import finishes, frames, text_of, wire_gateway, wire_settings
from tests.promises.wires import WIRES
from tests.tiers import sample

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")

GROWTH: Final = 64 * 2**20
STOOD_STILL_S: Final = 1.5
# What is alive afterwards, in blocks of the interpreter; a leak of a single message in a thousand would be more.
KEPT_BLOCKS: Final = 20_000
JSON: Final = {"content-type": "application/json"}


@sample(lambda wire: wire == "protobuf")
@pytest.mark.parametrize("wire", WIRES)
async def test_no_answer_is_cut_off_in_silence(wire: str) -> None:
    """Cut after every single byte, an answer is complete or an error, to clients that stream and those that do not."""
    spoken = WIRES[wire].spoken
    short = spoken.begin + spoken.end
    asked = 0

    async def script(connection: Connection) -> None:
        nonlocal asked
        end = asked // 2
        asked += 1
        await connection.send(head(spoken.media_type), chunk(short[:end]) if end else b"", END)

    async with faulty_backend(script) as backend, wire_gateway(WIRES[wire], {"m": backend}) as gateway:
        complete = []
        for end in range(len(short)):
            streamed = await gateway.chat(stream=True)
            whole = await gateway.chat()
            failed = _failed(streamed)
            assert failed == (whole.status_code != 200), f"after {end} bytes"
            assert failed or text_of(frames(streamed.text)) == "one", f"after {end} bytes"
            if failed:
                assert finishes(frames(streamed.text)) == []
            else:
                complete.append(end)
    assert asked == 2 * len(short)
    # Only what follows the finish may be missing.
    assert all(end >= len(short) - len(spoken.end) for end in complete)


def _failed(response: httpx.Response) -> bool:
    if response.status_code != 200:
        return True
    last = frames(response.text)[-1]
    assert last == "[DONE]" or "error" in json.loads(last)
    return last != "[DONE]"


def _settings(wire: str, backends: Mapping[str, FaultyBackend]) -> dict[str, Json]:
    settings = wire_settings(WIRES[wire], {name: backend.base_url for name, backend in backends.items()})
    # What is kept of conversations has a bound of its own (`test_long_conversations_are_kept_within_their_bound`).
    return {**settings, "limits": {"max_response_mb": 3, "max_event_mb": 3}, "state": {"prefix_mb": 0}}


@asynccontextmanager
async def _probed(
    tmp_path: Path, wire: str, told: Mapping[str, Script]
) -> AsyncIterator[tuple[Probed, httpx.AsyncClient, dict[str, FaultyBackend]]]:
    async with AsyncExitStack() as stack:
        backends = {name: await stack.enter_async_context(faulty_backend(script)) for name, script in told.items()}
        gateway = await stack.enter_async_context(probed_gateway(tmp_path, _settings(wire, backends)))
        client = httpx.AsyncClient(base_url=gateway.base_url, timeout=120, trust_env=False)
        yield gateway, await stack.enter_async_context(client), backends


async def _ask(client: httpx.AsyncClient, content: bytes) -> None:
    """The answer is read and thrown away."""
    async with client.stream("POST", "/v1/chat/completions", content=content, headers=JSON) as response:
        async for _ in response.aiter_raw():
            pass


def _asking(model: str) -> Iterable[bytes]:
    for streams in (False, True):
        yield json.dumps({**hello(model), "stream": streams}).encode()


async def _settled(gateway: Probed, descriptors: int) -> Reading:
    """The reading when everything has been closed, or after two seconds."""
    for _ in range(20):
        reading = await gateway.read()
        if reading.running == 0 and reading.descriptors <= descriptors:
            break
        await asyncio.sleep(0.1)
    return reading


# Each of the many messages in one event costs far more than its bytes: one of this size takes a second of work in all.
LARGE: Final = 900_000
LARGE_STOOD_STILL_S: Final = 0.25
DENSE: Final = ("calls", "calls of one id", "calls of unknown tools", "messages without ids", "keys of a call")


def _of_size(kind: str, size: int) -> bytes:
    make = WARP[kind]
    return make(int(size / (len(make(2048)) - len(make(1024))) * 1024))


def _saying(wire: bytes) -> Script:
    async def script(connection: Connection) -> None:
        pieces = [chunk(wire[at : at + 65_000]) for at in range(0, len(wire), 65_000)]
        await connection.send(head("text/event-stream"), *pieces, END)

    return script


@pytest.mark.full
@linux
async def test_one_large_event_leaves_the_loop_to_others(tmp_path: Path) -> None:
    told = {kind: _saying(_of_size(kind, LARGE)) for kind in DENSE}
    stood_still: dict[str, float] = {}
    async with _probed(tmp_path, "protobuf", told) as (gateway, client, _):
        await gateway.read()
        for kind in DENSE:
            for content in _asking(kind):
                response = await client.post("/v1/chat/completions", content=content, headers=JSON)
                assert response.status_code == 200, (kind, response.text)
                stood_still[kind] = max(stood_still.get(kind, 0), (await gateway.read()).stood_still)
    assert {kind: seconds for kind, seconds in stood_still.items() if seconds > LARGE_STOOD_STILL_S} == {}


@pytest.mark.full
@linux
@pytest.mark.parametrize("wire", WIRES)
async def test_hostile_cases_are_cheap(wire: str, tmp_path: Path) -> None:
    """One after the other, each alone: its memory at its height, and how long the loop did nothing else for it."""
    well = answering(WIRES[wire], lambda wire: (wire.spoken.answer,))
    # Requests meet the same code on every wire but for the encoding: text as it is, and as messages.
    requests = REQUESTS if wire in ("native", "protobuf") else {}
    cases = {name: [content()] for name, content in requests.items()}
    told = scripts(WIRES[wire])
    cases |= {f"answer: {name}": list(_asking(name)) for name in told}
    wrong: dict[str, str] = {}
    async with _probed(tmp_path, wire, {**told, "m": well}) as (gateway, client, backends):
        for content in _asking("m"):
            await _ask(client, content)
        first = start = await gateway.read()
        for name, contents in cases.items():
            for content in contents:
                await _ask(client, content)
                seen = await gateway.read()
                grown = seen.peak - start.memory
                if grown > GROWTH + 2 * len(content) or seen.stood_still > STOOD_STILL_S:
                    wrong[name] = f"{grown / 2**20:.0f} MB, {seen.stood_still:.2f} s"
                start = seen
        for backend in backends.values():
            backend.hang_up()
        last = await _settled(gateway, first.descriptors)
    assert wrong == {}
    assert last.blocks - first.blocks < KEPT_BLOCKS
    assert last.running == 0
    assert last.descriptors <= first.descriptors


async def test_no_deadline_follows_the_wall_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock jumps by years between the two events of an answer, and no deadline passes."""
    spoken = WIRES["native"].spoken
    wall = 1_000_000_000.0

    async def script(connection: Connection) -> None:
        nonlocal wall
        await connection.send(head(spoken.media_type), chunk(spoken.begin))
        await asyncio.sleep(0.3)  # three ticks of the timer that looks for what is overdue
        wall += 1e9
        await asyncio.sleep(0.3)
        await connection.send(chunk(spoken.end), END)

    monkeypatch.setattr("time.time", lambda: wall)
    async with faulty_backend(script) as backend, wire_gateway(WIRES["native"], {"m": backend}) as gateway:
        response = await gateway.chat(stream=True)
    assert response.text.endswith("data: [DONE]\n\n")
