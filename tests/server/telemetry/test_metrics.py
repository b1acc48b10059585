"""What is counted and measured when things happen on real sockets; and that the page lists it."""

import asyncio
import re

import pytest

from gateway.core.conversation import Json
from gateway.server.telemetry.metrics import FAMILIES, MOST_SERIES, Metrics, add
from gateway.server.telemetry.metrics_text import metrics_text
from tests.paths import ROOT
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import HASTY, PATIENT, STALLED, Start, settings_for
from tests.server.running import Running, hello, running_gateway

ROW = re.compile(r"^\| `(gateway_\w+)` \| (\w+) \| (.*?) \|", re.M)


def test_the_page_lists_every_metric_with_kind_and_labels() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(page)]
    assert listed == [(name, family.kind, family.labels) for name, family in FAMILIES.items()]


async def test_every_metric_of_the_page_is_exported(start: Start) -> None:
    gateway, _ = await start(by_word)
    text = (await gateway.client.get("/metrics")).text
    assert re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M) == [(name, one.kind) for name, one in FAMILIES.items()]
    for name, family in FAMILIES.items():
        if not family.labels and family.kind != "histogram":
            assert re.search(rf"^{name} \d+$", text, re.M), name


async def by_word(connection: Connection) -> None:
    """What the client's text asks for."""
    if b"refused" in connection.body:
        text = b"messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
        await connection.send(answer("400 Bad Request", text))
    elif b"cut" in connection.body:
        await connection.send(HEAD, events("text Hello"), END)
    elif b"silent" in connection.body:
        await connection.gone()
    elif b"stalled" in connection.body:
        await connection.send(HEAD, events("text Hello"))
        await connection.gone()
    else:
        await connection.send(HEAD, events("text Hello", "finish"), END)


async def shown(gateway: Running) -> list[str]:
    return (await gateway.client.get("/metrics")).text.splitlines()


async def asked(gateway: Running, word: str, stream: bool = False) -> list[str]:
    message: Json = {"role": "user", "content": word}
    await gateway.chat(messages=[message], stream=stream)
    return await shown(gateway)


@pytest.mark.parametrize(
    ("word", "stream", "lines"),
    [
        (
            "refused",
            False,
            (
                'gateway_upstream_rejections_total{backend="plain",rule="TOOL_ORPHAN"} 1',
                'gateway_notices_total{stage="backend",rule="HISTORY_REFUSED"} 1',
                'gateway_requests_total{route="chat",key="-",status="400"} 1',
            ),
        ),
        (
            "cut",
            True,
            (
                'gateway_truncated_streams_total{backend="plain"} 1',
                'gateway_errors_total{code="upstream_stream_truncated",phase="stream"} 1',
                'gateway_upstream_errors_total{backend="plain",code="upstream_stream_truncated",phase="stream"} 1',
                'gateway_first_event_seconds_count{backend="plain"} 1',
            ),
        ),
        (
            "silent",
            False,
            (
                'gateway_ttfb_timeouts_total{backend="plain"} 1',
                'gateway_upstream_errors_total{backend="plain",code="upstream_timeout",phase="head"} 1',
            ),
        ),
        (
            "stalled",
            True,
            ('gateway_upstream_errors_total{backend="plain",code="upstream_timeout",phase="stream"} 1',),
        ),
        (
            "well",
            True,
            (
                'gateway_requests_total{route="chat",key="-",status="200"} 1',
                'gateway_first_event_seconds_count{backend="plain"} 1',
                "gateway_overhead_seconds_count 1",
                'gateway_request_seconds_count{route="chat"} 1',
                "gateway_open_streams 0",
            ),
        ),
    ],
)
async def test_what_happened_is_counted(start: Start, word: str, stream: bool, lines: tuple[str, ...]) -> None:
    gateway, _ = await start(by_word, {"silent": HASTY, "stalled": STALLED}.get(word, PATIENT))
    text = await asked(gateway, word, stream)
    assert [line for line in lines if line not in text] == []
    if word == "stalled":
        assert not any(line.startswith("gateway_ttfb_timeouts_total{") for line in text)
    if word != "well":
        assert "gateway_overhead_seconds_count 1" not in text


async def test_a_bad_request_is_an_error_and_no_backends(start: Start) -> None:
    gateway, _ = await start(by_word)
    await gateway.chat(messages=[])
    text = await shown(gateway)
    assert any(line.startswith("gateway_errors_total{") and 'phase="request"' in line for line in text)
    assert not any(line.startswith("gateway_upstream_errors_total{") for line in text)


async def test_open_streams_and_departures(start: Start) -> None:
    held = asyncio.Event()

    async def hold(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello"))
        await held.wait()

    gateway, _ = await start(hold)
    async with gateway.client.stream("POST", "/v1/chat/completions", json={**hello(), "stream": True}) as response:
        await anext(response.aiter_raw())
        text = await shown(gateway)
        assert "gateway_open_streams 1" in text
        assert "gateway_running_requests 1" in text
    async with asyncio.timeout(5):
        while "gateway_open_streams 0" not in (text := await shown(gateway)):
            pass
    held.set()
    assert 'gateway_client_aborts_total{phase="stream"} 1' in text
    assert not any(line.startswith("gateway_errors_total{") for line in text)


async def test_the_backends_time_is_not_ours() -> None:
    async def slow(connection: Connection) -> None:
        await asyncio.sleep(0.2)
        await connection.send(HEAD, events("text Hello"))
        await asyncio.sleep(0.2)
        await connection.send(events("finish"), END)

    async with faulty_backend(slow) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        text = await asked(gateway, "x", stream=True)
    sums = {line.split()[0]: float(line.split()[1]) for line in text if "_sum" in line}
    first, whole = (
        sums['gateway_first_event_seconds_sum{backend="plain"}'],
        sums['gateway_request_seconds_sum{route="chat"}'],
    )
    assert first >= 0.2 and whole - first >= 0.2
    # Both waits of 0.2 s are left out. On a busy machine the gateway begins to wait later than the backend.
    assert sums["gateway_overhead_seconds_sum"] <= whole - 0.3


async def test_tokens_are_those_the_backend_reports() -> None:
    settings: dict[str, Json] = {
        "server": {"api_keys_env": None},
        "log": {"file": None},
        "backends": {"d": {"adapter": "adapters.openai_chat:OpenAIChatAdapter", "base_url": "demo:chat"}},
        "models": {"m": {"backend": "d"}},
    }
    async with running_gateway(settings) as gateway:
        usage = (await gateway.chat()).json()["usage"]
        text = await shown(gateway)
    assert f'gateway_tokens_total{{backend="d",key="-",kind="prompt"}} {usage["prompt_tokens"]}' in text
    assert f'gateway_tokens_total{{backend="d",key="-",kind="completion"}} {usage["completion_tokens"]}' in text


def test_codes_without_end_do_not_make_series_without_end() -> None:
    metrics = Metrics()
    for number in range(MOST_SERIES + 500):
        metrics.count("gateway_errors_total", f"code {number}", "head")
    snapshot = metrics.snapshot()
    assert len(snapshot.counted) <= MOST_SERIES + 1
    assert sum(one.value for one in snapshot.counted) == MOST_SERIES + 500
    assert 'gateway_errors_total{code="other",phase="other"} 500' in metrics_text(snapshot)


def test_buckets_add_up_and_names_are_quoted() -> None:
    metrics = Metrics()
    metrics.observe("gateway_overhead_seconds", 0.0004)
    metrics.observe("gateway_overhead_seconds", 0.0005)
    metrics.observe("gateway_overhead_seconds", 5)
    metrics.count("gateway_errors_total", 'a"b\\c\nd', "head")
    text = metrics_text(add((metrics.snapshot(), metrics.snapshot())))
    assert 'gateway_overhead_seconds_bucket{le="0.0005"} 4\n' in text
    assert 'gateway_overhead_seconds_bucket{le="1"} 4\n' in text
    assert 'gateway_overhead_seconds_bucket{le="+Inf"} 6\n' in text
    assert "gateway_overhead_seconds_count 6\n" in text
    assert 'gateway_errors_total{code="a\\"b\\\\c\\nd",phase="head"} 2\n' in text
