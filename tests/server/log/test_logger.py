"""Tests log lines: their form, their escaping, and the block of a request."""

import asyncio
import logging
import re
import signal
import threading
from pathlib import Path

import httpx
import pytest

from gateway.core.conversation import Conversation, Json, Text, ToolResult, Turn
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.server.log import logger
from gateway.server.log.logger import LOGGER, LineQueue, log_notice, logging_to, one_line
from gateway.server.log.request_id import request_id
from gateway.server.telemetry.access_log import MOST_WARNED, AccessLog
from gateway.server.telemetry.debug_log import log_request
from gateway.server.telemetry.request_context import Observers, RequestContext
from gateway.server.upstream.backends import Backend
from gateway.settings import BackendSettings, LogSettings
from gateway.testing.gateway import gateway_command
from tests.field_paths import ITEM_PATHS
from tests.server.conftest import settings_for
from tests.server.samples import total


def written(path: Path) -> list[str]:
    """The lines in the file, after the log was closed."""
    return path.read_text(encoding="utf-8").splitlines()


def test_a_line_has_time_level_request_and_text(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "x.log"
    with logging_to(LogSettings(file=str(file))):
        log_notice(Notice("trim", "dropped", "HISTORY_LIMITED", "Limiting history messages from 60 to 50"), "req_1")
        log_notice(Notice("trim", "seen", "HISTORY_LIMITED", "unseen", level="debug"), "req_1")
        LOGGER.error("alone")
    first, second = written(file)
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO req_1 Limiting history messages from 60 to 50", first
    )
    assert second.endswith(" ERROR - alone")


def test_a_tool_that_is_not_sent_is_warned_of_once_for_a_model(tmp_path: Path) -> None:
    """An agent offers the same tools with each of its requests."""
    observers, file = Observers(AccessLog()), tmp_path / "x.log"

    def note(model: str, tool: str) -> RequestContext:
        context = RequestContext("POST", "/", "other", {}, observers)
        context.model = model
        context.note([Notice("encode", "dropped", "TOOL_NOT_SENT", f"{model} lacks {tool}", level="warning")])
        return context

    with logging_to(LogSettings(file=str(file))):
        for model, tool in (("a", "web_search"), ("a", "web_search"), ("a", "mcp"), ("b", "mcp"), ("a", "web_search")):
            assert note(model, tool).changes == {"encode": 1}
        # The names of models may be the client's own: memory has a bound.
        for number in range(MOST_WARNED):
            note(f"m{number}", "mcp")
        note("a", "web_search")
    lines = written(file)
    assert len(lines) == 3 + MOST_WARNED + 1
    first, second, third, *_, last = lines
    assert "WARNING" in first and first.endswith(" encode TOOL_NOT_SENT: a lacks web_search")
    assert second.endswith("a lacks mcp") and third.endswith("b lacks mcp") and last.endswith("a lacks web_search")


def test_a_repeated_warning_is_a_line_at_level_debug(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    context = RequestContext("POST", "/", "other", {}, Observers(AccessLog()))
    with logging_to(LogSettings(file=str(file), level="debug")):
        for _ in range(3):
            context.note([Notice("encode", "dropped", "TOOL_NOT_SENT", "x", level="warning")])
            context.note([Notice("encode", "dropped", "PART_NOT_SENT", "y", level="warning")])
    levels = [line.split()[1] for line in written(file) if "TOOL_NOT_SENT" in line]
    assert levels == ["WARNING", "DEBUG", "DEBUG"]
    assert sum("WARNING" in line and "PART_NOT_SENT" in line for line in written(file)) == 3


def test_what_is_no_line_to_search_for_is_told_with_its_place_and_rule(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with logging_to(LogSettings(file=str(file))):
        log_notice(Notice("repair", "changed", "CALL_ARGS_TYPE", "arguments is an object", 3), "req_1")
        log_notice(Notice("profile", "changed", "CALL_ID_RENAMED", "renamed"), "req_1")
        log_notice(Notice("backend", "dropped", "ROLLED_BACK", "taken back"), "req_1")
        log_notice(
            Notice("unwrap", "changed", "ENVELOPE_OPENED", "[MCP Gateway] Transformed call_mcp_tool -> f", 3), "req_1"
        )
        log_notice(Notice("repair", "changed", "CALL_ARGS_TYPE", "arguments is an object", 3), "req_1", ITEM_PATHS)
    first, second, third, fourth, fifth = written(file)
    assert first.endswith(" INFO req_1 repair messages[3] CALL_ARGS_TYPE: arguments is an object")
    assert second.endswith(" INFO req_1 profile CALL_ID_RENAMED: renamed")
    assert third.endswith(" INFO req_1 backend ROLLED_BACK: taken back")
    assert fourth.endswith(" INFO req_1 [MCP Gateway] Transformed call_mcp_tool -> f")
    assert fifth.endswith(" INFO req_1 repair input[3] CALL_ARGS_TYPE: arguments is an object")


def test_the_thread_of_the_log_takes_keys_out_of_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than all the rest of a line, for which a request does not wait."""
    threads: list[int] = []
    redacted = logger._Redacted.__str__

    def redact(detail: logger._Redacted) -> str:
        threads.append(threading.get_ident())
        return redacted(detail)

    monkeypatch.setattr(logger._Redacted, "__str__", redact)
    file, key = tmp_path / "x.log", "sk-ant-" + "a1B2" * 8
    with logging_to(LogSettings(file=str(file))):
        log_notice(Notice("repair", "changed", "CALL_ID_RENAMED", f"the id '{key}' is too long", 3), "req_1")
        log_notice(Notice("trim", "dropped", "HISTORY_LIMITED", f"left out '{key}'"), "req_1")
    assert len(threads) == 2 and threading.get_ident() not in threads
    first, second = written(file)
    assert "the id '[key:anthropic:39]" in first and "left out '[key:anthropic:39]" in second and key not in first


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain ünïcode 配置", "plain ünïcode 配置"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("x\u2028y\u202ez\u0085", "x\\u2028y\\u202ez\\x85"),
        ("\ud800", "\\ud800"),
    ],
)
def test_no_text_can_leave_its_line(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_traceback_cannot_pose_as_a_line(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with logging_to(LogSettings(file=str(file))):
        try:
            raise ValueError("2026-01-01 ERROR forged\n2026-01-01 ERROR forged again")
        except ValueError:
            LOGGER.exception("internal_error")
    first, *rest = written(file)
    assert first.endswith("internal_error")
    assert rest and all(line.startswith("  | ") for line in rest)


def test_a_log_that_cannot_be_written_is_told_once_and_hurts_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with logging_to(LogSettings(file=str(blocked / "x.log"))):
        LOGGER.info("still here")
    said = capsys.readouterr().err.splitlines()
    assert "logging to standard error only" in said[0]
    assert said[1].endswith("still here")


FULL = Path("/dev/full")


@pytest.mark.full
@pytest.mark.skipif(not FULL.exists(), reason="has no disk that is always full")
async def test_a_full_disk_for_the_log_costs_no_request_and_every_lost_line_is_counted(tmp_path: Path) -> None:
    settings: dict[str, Json] = {**settings_for("http://127.0.0.1:1"), "log": {"file": str(FULL)}}
    async with gateway_command(tmp_path, settings, "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        async with httpx.AsyncClient(base_url=gateway.base_url) as client, asyncio.timeout(8):
            lost = 0
            while lost < 5:
                assert (await client.get("/healthz")).status_code == 200
                lost = int(total((await client.get("/metrics")).text, "gateway_log_drops_total"))
        gateway.process.send_signal(signal.SIGTERM)
        status, errors = await gateway.ended()
    assert status == 0
    # Standard error has all of them, and says at the end what the file has not.
    told, _, _ = errors.partition(" log lines were dropped\n")
    *lines, last = told.splitlines()
    assert last.endswith(f" {len(lines)}")


class Stuck(logging.Handler):
    """A target that fails for every record."""

    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(28, "No space left on device")

    def handle(self, record: logging.LogRecord) -> bool:
        try:
            self.emit(record)
        except OSError:
            self.handleError(record)
        return True

    def handleError(self, record: logging.LogRecord) -> None:
        pass


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    queue = LineQueue([Stuck()], limit=10)
    record = logging.LogRecord("x", logging.INFO, "", 0, "m", None, None)
    for _ in range(1000):
        queue.handle(record)
    queue.close()
    assert queue.dropped > 0


def test_a_line_with_wrong_arguments_fails_nobody(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with logging_to(LogSettings(file=str(file))):
        LOGGER.info("%d of %s", "no number")
        LOGGER.info("after")
    assert written(file)[-1].endswith("after")


def test_files_rotate(tmp_path: Path) -> None:
    file = tmp_path / "x.log"
    with logging_to(LogSettings(file=str(file), max_mb=0.001, backups=2)):
        for number in range(300):
            LOGGER.info("line %d %s", number, "x" * 50)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.log", "x.log.1", "x.log.2"]


@pytest.mark.parametrize(("bodies", "shown"), [(None, False), (b"the client's words", True)])
def test_the_debug_block(caplog: pytest.LogCaptureFixture, bodies: bytes | None, shown: bool) -> None:
    caplog.set_level(logging.DEBUG, "gateway")
    turns = (
        Turn("user", (Text("old"),)),
        Turn("assistant", (Text("old answer"),)),
        Turn("user", (Text("question"),)),
        Turn("assistant", (Text("calling"),)),
        Turn("tool", (ToolResult("a", (Text("1"),)),)),
        Turn("tool", (ToolResult("b", (Text("2"),)),)),
    )
    backend = Backend("plain", BackendSettings("tests.server.plain:PlainAdapter", "http://x"), 1000)
    exchange = Exchange(backend.adapter, Conversation(turns), Policy(repair="off"))
    log_request(RequestContext("POST", "/", "other", {}, Observers()), backend, exchange, bodies)
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == lines[-1] == "=" * 60
    assert lines[1:4] == [
        "[Plain Request] Submitting to Plain API:",
        "  Tool results: 2",
        "  History messages: 3",
    ]
    assert any("the client's words" in line for line in lines) is shown


def test_the_debug_block_costs_nothing_at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    backend = Backend("plain", BackendSettings("tests.server.plain:PlainAdapter", "http://x"), 1000)
    exchange = Exchange(backend.adapter, Conversation((Turn("user", (Text("Hello"),)),)), Policy())
    log_request(RequestContext("POST", "/", "other", {}, Observers()), backend, exchange, b"x")
    assert not caplog.records


def test_request_ids_are_sane_or_new() -> None:
    assert request_id(b"a.b-c_d:1") == "a.b-c_d:1"
    for odd in (None, b"", b"x" * 129, b"a b", b"a\nb", "é".encode()):
        assert re.fullmatch(r"req_[0-9a-f]{24}", request_id(odd))


def test_changes_are_counted_by_stage() -> None:
    context = RequestContext("POST", "/", "other", {}, Observers())
    context.note(
        [
            Notice("repair", "added", "CALL_ID_ADDED", "x"),
            Notice("trim", "dropped", "EFFORT_CHANGED", "x"),
            Notice("repair", "moved", "RESULTS_IN_CALL_ORDER", "x"),
            Notice("encode", "seen", "LATE_EVENT", "x"),
        ]
    )
    assert context.changed == "repair=2; trim=1"


def test_a_long_name_does_not_make_a_long_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gateway")
    context = RequestContext("POST", "/" + "p" * 100_000, "other", {}, Observers(AccessLog()))
    context.model = "m" * 100_000
    context.conclude(404)
    context.conclude(404)
    assert [len(record.getMessage()) < 1000 for record in caplog.records] == [True]


def test_what_was_set_for_the_whole_process_is_put_back(tmp_path: Path) -> None:
    loggers = [logging.getLogger(name) for name in (None, "gateway", "uvicorn", "httpx")]

    def state() -> list[object]:
        levels = [logger.level for logger in loggers]
        return [levels, logging.root.handlers[:], logging.getLogRecordFactory()]

    before = state()
    with logging_to(LogSettings(level="debug", file=str(tmp_path / "x.log"))):
        assert logging.root.handlers != before[1]
    assert state() == before


class Blocked(logging.Handler):
    """A target that takes nothing until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.writing = threading.Event()
        self.released = threading.Event()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())
        self.writing.set()
        self.released.wait()


def test_the_end_does_not_wait_for_a_target_that_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logger, "CLOSE_S", 0.05)
    target = Blocked()
    queue = LineQueue([target])
    queue.handle(logging.makeLogRecord({"msg": "one"}))
    closing = threading.Thread(target=queue.close)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    target.released.set()


def test_lines_that_come_together_are_written_together() -> None:
    target = Blocked()
    queue = LineQueue([target])
    lines = [f"line {number}" for number in range(3 * logger.BATCH)]
    queue.handle(logging.makeLogRecord({"msg": "first"}))
    assert target.writing.wait(10)
    for line in lines:
        queue.handle(logging.makeLogRecord({"msg": line}))
    target.released.set()
    queue.close()
    assert len(target.lines) == 4
    assert [line.partition(" - ")[2] for text in target.lines for line in text.splitlines()] == ["first", *lines]
