"""Tests the counters and measurements of events on real sockets, and that the page lists them."""

import asyncio
import re
from typing import Final

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gateway.core.conversation import Json
from gateway.inspector.texts import error_codes
from gateway.server.telemetry.exposition import expose
from gateway.server.telemetry.metric_types import MOST_SERIES, Snapshot, total
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_metrics import declare_errors
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.paths import ROOT
from tests.server.backend import END, HEAD, Connection, answer, events, faulty_backend
from tests.server.conftest import HASTY, PATIENT, STALLED, Start, settings_for
from tests.server.samples import missing
from tests.server.samples import total as sum_of

PLAIN: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
ROW = re.compile(r"^\| `(gateway_\w+)` \| (\w+) \| (.*?) \|", re.M)


def test_the_page_lists_every_metric_with_kind_and_labels() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(page)]
    assert listed == [(metric.name, metric.kind, metric.labels) for metric in Metrics()]


async def test_every_metric_of_the_page_is_exported(start: Start) -> None:
    gateway, _ = await start(by_word)
    text = (await gateway.client.get("/metrics")).text
    assert re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M) == [(one.name, one.kind) for one in Metrics()]
    for metric in Metrics():
        if not metric.labels and metric.kind != "histogram":
            assert re.search(rf"^{metric.name} \d+\.0$", text, re.M), metric.name


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


async def shown(gateway: RunningGateway) -> str:
    return (await gateway.client.get("/metrics")).text


async def asked(gateway: RunningGateway, word: str, stream: bool = False) -> str:
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
                'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="400"} 1',
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
                'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="200"} 1',
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
    assert missing(text, *lines) == []
    if word == "stalled":
        assert sum_of(text, "gateway_ttfb_timeouts_total") == 0
    if word != "well":
        assert "gateway_overhead_seconds_count" not in text


async def test_a_bad_request_is_an_error_and_no_backends(start: Start) -> None:
    gateway, _ = await start(by_word)
    await gateway.chat(messages=[])
    text = await shown(gateway)
    assert sum_of(text, 'gateway_errors_total{phase="request"}') == 1
    assert sum_of(text, "gateway_upstream_errors_total") == 0


async def test_open_streams_and_departures(start: Start) -> None:
    held = asyncio.Event()

    async def hold(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hello"))
        await held.wait()

    gateway, _ = await start(hold)
    async with gateway.client.stream("POST", "/v1/chat/completions", json={**hello(), "stream": True}) as response:
        # An iterator that nothing refers to closes its response.
        pieces = response.aiter_raw()
        await anext(pieces)
        text = await shown(gateway)
        assert missing(text, "gateway_open_streams 1", "gateway_running_requests 1") == []
    async with asyncio.timeout(5):
        while missing(text := await shown(gateway), "gateway_open_streams 0"):
            pass
    held.set()
    assert missing(text, 'gateway_client_aborts_total{phase="stream"} 1') == []
    assert sum_of(text, "gateway_errors_total") == 0


async def test_the_backends_time_is_not_ours() -> None:
    async def slow(connection: Connection) -> None:
        await asyncio.sleep(0.2)
        await connection.send(HEAD, events("text Hello"))
        await asyncio.sleep(0.2)
        await connection.send(events("finish"), END)

    async with faulty_backend(slow) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        text = await asked(gateway, "x", stream=True)
    first = sum_of(text, 'gateway_first_event_seconds_sum{backend="plain"}')
    whole = sum_of(text, 'gateway_request_seconds_sum{route="chat"}')
    assert first >= 0.2 and whole - first >= 0.2
    # Both waits of 0.2 s are left out. On a busy machine the gateway begins to wait later than the backend.
    assert 0 < sum_of(text, "gateway_overhead_seconds_sum") <= whole - 0.3


# The Messages wire reports the tokens of the prompt at the beginning of a stream and again at its end.
@pytest.mark.parametrize(("demo", "adapter"), [("chat", "openai_chat"), ("messages", "anthropic_messages")])
async def test_tokens_are_those_the_backend_reports(demo: str, adapter: str) -> None:
    settings: dict[str, Json] = {
        "backends": {"d": {"adapter": adapter, "base_url": f"demo:{demo}"}},
        "models": {"m": {"backend": "d"}},
    }
    async with running_gateway(settings) as gateway:
        usage = (await gateway.chat()).json()["usage"]
        await gateway.chat(stream=True, stream_options={"include_usage": True})
        text = await shown(gateway)
    lines = (
        f'gateway_tokens_total{{backend="d",key="-",kind="prompt"}} {2 * usage["prompt_tokens"]}',
        f'gateway_tokens_total{{backend="d",key="-",kind="completion"}} {2 * usage["completion_tokens"]}',
    )
    assert missing(text, *lines) == []


async def test_each_code_is_there_before_its_first_error(start: Start) -> None:
    """A series that begins at 1 is no increase for Prometheus, which knows nothing before it."""
    gateway, _ = await start(by_word, HASTY)
    text = await shown(gateway)
    codes = error_codes()
    assert len(codes) > 50
    for code in codes:
        assert f'gateway_errors_total{{code="{code}",phase="' in text, code
        if code.startswith("upstream_"):
            line = f'gateway_upstream_errors_total{{backend="plain",code="{code}",phase="stream"}} 0'
            assert missing(text, line) == []
    assert missing(text, 'gateway_truncated_streams_total{backend="plain"} 0') == []
    assert sum_of(text, "gateway_errors_total") == 0
    before = series_of(text, "gateway_errors_total{"), series_of(text, "gateway_upstream_errors_total{")
    for word, stream in (("cut", True), ("refused", False), ("silent", False)):
        text = await asked(gateway, word, stream)
    await gateway.client.get("/nowhere")
    await gateway.chat(model="unknown")
    text = await shown(gateway)
    assert sum_of(text, "gateway_errors_total") == 5
    # Each of these errors had its series before.
    assert before == (series_of(text, "gateway_errors_total{"), series_of(text, "gateway_upstream_errors_total{"))


def series_of(text: str, name: str) -> set[str]:
    return {line.rpartition(" ")[0] for line in text.splitlines() if line.startswith(name)}


def test_what_is_declared_takes_no_place_of_what_occurs() -> None:
    metrics = Metrics()
    declare_errors(metrics, error_codes(), [f"backend-{number}" for number in range(100)])
    assert len(metrics.snapshot().counters) > MOST_SERIES
    metrics.upstream_errors.inc("backend-99", "a code of its own", "head")
    line = 'gateway_upstream_errors_total{backend="backend-99",code="a code of its own",phase="head"} 1'
    assert missing(text_of(metrics.snapshot()), line) == []
    declare_errors(metrics, error_codes(), ["backend-1"])
    metrics.errors.inc("overloaded", "request")
    declare_errors(metrics, error_codes(), [])
    assert missing(text_of(metrics.snapshot()), 'gateway_errors_total{code="overloaded",phase="request"} 1') == []


def text_of(snapshot: Snapshot) -> str:
    return expose(Metrics(), snapshot, "")[0].decode()


def test_codes_without_end_do_not_make_series_without_end() -> None:
    metrics = Metrics()
    for number in range(MOST_SERIES + 500):
        metrics.errors.inc(f"code {number}", "head")
    errors = [one for one in metrics.snapshot().counters if one.name == metrics.errors.name]
    assert len(errors) == MOST_SERIES + 1
    assert sum(one.value for one in errors) == MOST_SERIES + 500
    assert missing(text_of(metrics.snapshot()), 'gateway_errors_total{code="other",phase="other"} 500') == []


def test_buckets_add_up_and_names_are_quoted() -> None:
    metrics = Metrics()
    for seconds in (0.0004, 0.0005, 5):
        metrics.overhead_seconds.observe(seconds)
    metrics.errors.inc('a"b\\c\nd', "head")
    text = text_of(total((metrics.snapshot(), metrics.snapshot())))
    assert 'gateway_overhead_seconds_bucket{le="0.0005"} 4.0\n' in text
    assert 'gateway_overhead_seconds_bucket{le="1.0"} 4.0\n' in text
    assert 'gateway_overhead_seconds_bucket{le="+Inf"} 6.0\n' in text
    assert "gateway_overhead_seconds_count 6.0\n" in text
    assert 'gateway_errors_total{code="a\\"b\\\\c\\nd",phase="head"} 2.0\n' in text


def test_a_wrong_name_or_number_of_labels_is_a_type_error() -> None:
    # mypy also refuses a comment that hides nothing: without these comments, each line is an error to it.
    metrics = Metrics()
    with pytest.raises(AttributeError):
        metrics.request.inc()  # type: ignore[attr-defined]  # the point of this line
    metrics.errors.inc("code")  # type: ignore[call-arg]  # the point of this line
    metrics.errors.inc("code", 500)  # type: ignore[arg-type]  # the point of this line
    metrics.errors.set_function(lambda: 1)  # type: ignore[misc]  # the point of this line


def test_a_gauge_falls_as_far_as_it_rose() -> None:
    metrics = Metrics()
    metrics.open_streams.inc()
    metrics.open_streams.inc()
    metrics.open_streams.dec()
    assert missing(text_of(metrics.snapshot()), "gateway_open_streams 1") == []


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        (None, PLAIN),
        ("*/*", PLAIN),
        ("text/plain; version=0.0.4", PLAIN),
        ("text/plain;version=x", PLAIN),
        ("text/html, application/openmetrics-text;version=x", OPENMETRICS),
        ("application/openmetrics-text;version=99.0.0,text/plain;version=0.0.4;q=0.5", OPENMETRICS),
        ("Application/OpenMetrics-Text", OPENMETRICS),
    ],
)
async def test_a_scraper_gets_the_format_that_it_asks_for(start: Start, accept: str | None, media_type: str) -> None:
    gateway, _ = await start(by_word)
    await gateway.chat()
    response = await gateway.client.get("/metrics", headers={} if accept is None else {"accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (200, media_type)
    if media_type == OPENMETRICS:
        # The parser is strict: names, order, canonical numbers, and the end of the text.
        read = text_string_to_metric_families(response.text)  # type: ignore[no-untyped-call]  # the library's omission
        families = {family.name: family for family in read}
        kinds = {metric.name.removesuffix("_total"): metric.kind for metric in Metrics()}
        assert {name: family.type for name, family in families.items()} == kinds
        assert [sample.value for sample in families["gateway_requests"].samples] == [1]
    else:
        assert (
            missing(response.text, 'gateway_requests_total{route="chat",dialect="openai_chat",key="-",status="200"} 1')
            == []
        )


async def test_requests_are_counted_by_the_dialect_of_the_client(start: Start) -> None:
    gateway, _ = await start(by_word)
    question: dict[str, Json] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    for path in ("/v1/messages", "/v1/messages", "/v1/messages/count_tokens"):
        assert (await gateway.client.post(path, json=question)).status_code == 200
    text = (await gateway.client.get("/metrics")).text
    lines = [
        'gateway_requests_total{route="chat",dialect="anthropic_messages",key="-",status="200"} 2',
        'gateway_requests_total{route="count",dialect="anthropic_messages",key="-",status="200"} 1',
    ]
    assert missing(text, *lines) == []
