"""`dragoman record`, `replay` and `minimise` as commands, against a running gateway."""

import asyncio
import contextlib
import json
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import httpx
import pytest

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.demo.settings import DEMO_SETTINGS
from gateway.recording.files import load_recording, save_recording
from gateway.recording.recording import Recording
from gateway.testing.gateway import RunningGateway, gateway_command, running_gateway
from gateway.testing.golden import read_golden
from tests.paths import ROOT
from tests.recording.samples import golden_recordings, names

SAID = "Weltraumbahnhof"


def settings(**inspector: Json) -> dict[str, Json]:
    return {**cast("dict[str, Json]", DEMO_SETTINGS), "inspector": {"contents": "always", **inspector}}


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert isinstance(ended.value.code, int)
    return ended.value.code


async def running(*words: str) -> int:
    """Runs a command beside the gateway of this loop."""
    return await asyncio.to_thread(run, *words)


async def ask(gateway: RunningGateway, text: str = SAID, **fields: Json) -> str:
    answer = await gateway.chat(model="demo-chat", messages=[{"role": "user", "content": text}], **fields)
    return answer.headers["x-request-id"]


async def test_the_last_request_is_saved_and_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bug.dragoman.jsonl"
    async with running_gateway(settings()) as gateway:
        await ask(gateway)
        last = await ask(gateway, stream=True)
        words = ("record", "--last", "--out", str(path), "--url", gateway.base_url)
        assert await running(*words) == 0
        said = capsys.readouterr().out
        assert said.startswith("1 request, ") and "Redacted: shape, 0 secrets" in said and "outcome: yes." in said
        assert await running(*words) == 2, "no overwriting"
    (one,) = load_recording(path).interactions()
    assert one.request.id == last and SAID not in path.read_text()


def test_a_replay_tells_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    save_recording(path, golden_recordings()[names().index("openai_chat_plain_answer")])
    assert run("replay", str(path)) == 0
    assert capsys.readouterr().out.count("same.") == 4
    again = path.read_text().replace('"kind":"end","x":1,"status":200', '"kind":"end","x":1,"status":500')
    path.write_text(again)
    assert run("replay", str(path)) == 1
    said = capsys.readouterr().out
    assert "outcome: now 200" in said and "Words were replaced" not in said
    path.write_text(again.replace('{"kind":"recording"', '{"kind":"recording","redaction":{"level":"shape"}', 1))
    assert run("replay", str(path)) == 1
    assert "Words were replaced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "99999"), "no whole number from 0 to 65535"),
        (("--port", "x"), "no whole number from 0 to 65535"),
        (("--speed", "-1"), "no number from 0 on"),
        (("--speed", "nan"), "no number from 0 on"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("replay", str(tmp_path / "a"), "--serve", *words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-3", "1001", "x"])
def test_the_last_requests_are_a_number_of_them(count: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("record", "--last", count, "--out", str(tmp_path / "a")) == 2
    assert "no whole number from 1 to 1000" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a"
    save_recording(path, golden_recordings()[names().index("openai_chat_plain_answer")])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert run("replay", str(path), "--serve", "--port", str(taken.getsockname()[1])) == 2
    assert "Address already in use" in capsys.readouterr().err


async def test_what_cannot_be_run_again_is_not_said_to_be_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A request that is refused before its body is read."""
    path = tmp_path / "a"
    async with running_gateway(settings()) as gateway:
        await gateway.client.post("/v1/chat/completions", content=b"a=b", headers={"content-type": "text/plain"})
        assert await running("record", "--last", "--url", gateway.base_url, "--out", str(path)) == 0
    assert "as far as is known: 1 request cannot be run again" in capsys.readouterr().out
    assert not load_recording(path).header.redaction.checked


def test_a_recording_without_requests_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    save_recording(path, Recording())
    for command, said in (("replay", "has no request"), ("minimise", "No request of the recording can be run.")):
        assert run(command, str(path)) == 2
        assert said in capsys.readouterr().err


async def test_requests_are_chosen_by_filter_and_id(tmp_path: Path) -> None:
    async with running_gateway(settings()) as gateway:
        first, _, third = await ask(gateway), await ask(gateway, stream=True), await ask(gateway)
        url = gateway.base_url
        out = [str(tmp_path / name) for name in "abcd"]
        assert await running("record", "--filter", "stream:no", "--out", out[0], "--url", url) == 0
        assert await running("record", "--id", third, "--id", first, "--out", out[1], "--url", url) == 0
        assert await running("record", "--last", "2", "--redact", "full", "--out", out[2], "--url", url) == 0
        assert await running("record", "--filter", "status:500", "--out", out[3], "--url", url) == 1
    ids = [[one.request.id for one in load_recording(Path(path)).interactions()] for path in out[:3]]
    assert ids[0] == [first, third] and ids[1] == [third, first] and ids[2][1] == third
    assert load_recording(Path(out[2])).header.redaction.level == "full"


async def test_requests_are_chosen_by_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "session.dragoman.jsonl"
    async with running_gateway(settings()) as gateway:
        for session, agent in (("s-1", ""), ("s-2", ""), ("s-1", "a-1")):
            headers = {"x-claude-code-session-id": session} | ({"x-claude-code-agent-id": agent} if agent else {})
            body = {"model": "demo-chat", "messages": [{"role": "user", "content": SAID}]}
            await gateway.client.post("/v1/chat/completions", json=body, headers=headers)
        assert await running("record", "--session", "s-3", "--out", str(path), "--url", gateway.base_url) == 1
        assert await running("record", "--session", "s-1", "--out", str(path), "--url", gateway.base_url) == 0
        both = tmp_path / "both.dragoman.jsonl"
        assert await running("record", "--last", "3", "--out", str(both), "--url", gateway.base_url) == 0
    first, second = (one.request.session for one in load_recording(path).interactions())
    assert first is not None and second is not None and first.id == second.id and second.agent and not first.agent
    *_, last = load_recording(both).interactions()
    assert last.request.session is not None
    capsys.readouterr()
    assert run("replay", str(both), "--session", last.request.session.id) == 0
    assert capsys.readouterr().out.count("same. sent:") == 2
    assert run("replay", str(both), "--session", "nobody") == 2
    assert "no request of the session 'nobody'" in capsys.readouterr().err


async def test_what_is_followed_is_of_one_session_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "followed.dragoman.jsonl"
    async with running_gateway(settings()) as gateway:
        words = ("record", "--follow", "--out", str(path), "--url", gateway.base_url)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words), cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        async with asyncio.timeout(40):
            await process.stdout.readline()
            for _ in range(2):
                body = {"model": "demo-chat", "messages": [{"role": "user", "content": SAID}]}
                headers = {"x-claude-code-session-id": "cbf304b6-0358-4668-893d"}
                await gateway.client.post("/v1/chat/completions", json=body, headers=headers)
                await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
    first, second = (one.request.session for one in load_recording(path).interactions())
    assert first == second and first is not None and "cbf304b6" not in path.read_text()


@pytest.mark.parametrize("form", ["har", "curl", "golden"])
async def test_other_forms(form: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    async with running_gateway(settings()) as gateway:
        await ask(gateway)
        words = ("record", "--last", "--format", form, "--out", str(out), "--url", gateway.base_url)
        assert await running(*words) == 0
    if form == "golden":
        assert read_golden(out, {}).scenario.adapter == "openai_chat"
    elif form == "har":
        assert json.loads(out.read_text())["log"]["version"] == "1.2"
    else:
        assert "curl -sS" in out.read_text()


async def test_the_admin_key_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin")
    async with running_gateway(settings(enabled="on")) as gateway:
        await ask(gateway)
        words = ("record", "--last", "--url", gateway.base_url, "--out")
        assert await running(*words, str(tmp_path / "a")) == 0
        monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "wrong")
        assert await running(*words, str(tmp_path / "b")) == 2


def test_unredacted_needs_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("record", "--last", "--redact", "none", "--out", str(tmp_path / "a")) == 2
    assert "only at a terminal" in capsys.readouterr().err


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("", 2)])
async def test_unredacted_asks_first(answer: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: answer)
    out = tmp_path / "a"
    async with running_gateway(settings()) as gateway:
        await ask(gateway)
        words = ("record", "--last", "--redact", "none", "--out", str(out), "--url", gateway.base_url)
        assert await running(*words) == status
    assert out.exists() == (status == 0)
    assert status or SAID in out.read_text()


@pytest.mark.parametrize("words", [(), ("--follow",)])
def test_a_gateway_that_is_not_there_is_told(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = words or ("--last",)
    assert run("record", *chosen, "--out", str(tmp_path / "a"), "--url", "http://127.0.0.1:1") == 2
    assert "http://127.0.0.1:1" in capsys.readouterr().err


async def _lines(process: asyncio.subprocess.Process, until: str) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(40):
        while until not in (line := (await process.stdout.readline()).decode()):
            assert line, "it has ended"
    return line


async def _started(*words: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "gateway", *words)
    return await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)


async def test_what_is_followed_is_in_the_file_before_it_is_told(tmp_path: Path) -> None:
    out = tmp_path / "session.dragoman.jsonl"
    async with running_gateway(settings(contents="watched")) as gateway:
        process = await _started("record", "--follow", "--out", str(out), "--url", gateway.base_url)
        try:
            await _lines(process, "Following")
            ids = []
            for number in (1, 2):
                ids.append(await ask(gateway, stream=True))
                await _lines(process, f"{number} {ids[-1]} 200")
                assert [one.request.id for one in load_recording(out).interactions()] == ids
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


async def test_what_comes_too_fast_to_be_followed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.server.inspect.watchers._MOST_SENT", 1)
    async with running_gateway(settings(contents="watched")) as gateway:
        process = await _started("record", "--follow", "--out", str(tmp_path / "a"), "--url", gateway.base_url)
        try:
            await _lines(process, "Following")
            await asyncio.gather(*(ask(gateway) for _ in range(8)))
            await _lines(process, "came too fast")
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


async def test_what_is_followed_and_no_longer_shows_the_same_is_told(tmp_path: Path) -> None:
    out = tmp_path / "a"
    async with running_gateway(settings(contents="watched")) as gateway:
        process = await _started("record", "--follow", "--out", str(out), "--url", gateway.base_url)
        try:
            await _lines(process, "Following")
            await ask(gateway)
            await _lines(process, " 200")
            # Messages in base64 on several lines of one event are replaced as text.
            await gateway.chat(model="demo-agent", messages=[{"role": "user", "content": "[[scenario:encodings]]"}])
            await _lines(process, " 200")
            assert "differs: " in await _lines(process, "differs")
            assert not load_recording(out).header.redaction.checked
        finally:
            process.kill()
            await process.wait()


async def test_what_is_followed_without_contents_is_told(tmp_path: Path) -> None:
    out = tmp_path / "a"
    async with running_gateway(settings(contents="never")) as gateway:
        process = await _started("record", "--follow", "--out", str(out), "--url", gateway.base_url)
        try:
            await _lines(process, "Following")
            request_id = await ask(gateway)
            await _lines(process, f"{request_id} is not saved: its contents are never kept.")
            assert not out.exists()
        finally:
            process.kill()
            await process.wait()


async def test_a_recording_is_served(tmp_path: Path) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    recording = golden_recordings()[names().index("openai_chat_plain_answer")]
    save_recording(path, recording)
    (one,) = recording.interactions()
    assert one.sent is not None and one.sent.body is not None
    process = await _started("replay", str(path), "--serve", "--speed", "0")
    try:
        line = await _lines(process, "1 request on http://127.0.0.1:")
        url = line.split(" on ")[1].split(";")[0]
        async with httpx.AsyncClient(timeout=30) as client:
            answer = await client.post(f"{url}{one.sent.path}", content=one.sent.body.content)
            assert answer.content == b"".join(read.data.content for read in one.reads)
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


def test_a_smaller_recording_is_written_beside_the_large_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    save_recording(path, golden_recordings()[names().index("openai_chat_broken_history")])
    assert run("minimise", str(path), "--until", "same") == 0
    said = capsys.readouterr().out
    small = tmp_path / "a.min.dragoman.jsonl"
    assert small.exists() and " bytes, " in said and "tries. Wrote" in said
    assert run("replay", str(small)) == 0
    assert run("minimise", str(path), "--until", "rule:NO_SUCH") == 2
    assert "No request of the recording shows" in capsys.readouterr().err


def test_the_request_that_was_taken_is_named_and_a_recorded_failure_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.dragoman.jsonl"
    (plain,), (limited,) = (
        golden_recordings()[names().index(f"openai_chat_{name}")].interactions()
        for name in ("plain_answer", "rate_limited")
    )
    save_recording(path, Recording().with_interactions([plain.numbered(1), limited.numbered(2)]))
    assert run("minimise", str(path), "--until", "status:429") == 0
    said = capsys.readouterr().out
    assert said.startswith("Request req_golden, 2 of 2. ") and "--until 'command:...'" in said
    assert run("minimise", str(path), "--until", "status:200", "--out", str(tmp_path / "other")) == 0
    said = capsys.readouterr().out
    assert said.startswith("Request req_golden, 1 of 2. ") and "command:" not in said


def test_a_command_decides_what_a_smaller_recording_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, small = tmp_path / "a.dragoman.jsonl", tmp_path / "a.min.dragoman.jsonl"
    save_recording(path, golden_recordings()[names().index("openai_chat_broken_history")])
    check = tmp_path / "shows it.py"
    check.write_text("import sys\nsys.exit('assistant' not in open(sys.argv[2]).read() or sys.argv[1] != 'a b')\n")
    command = f"command:{sys.executable} '{check}' 'a b'"
    assert run("minimise", str(path), "--until", command) == 0
    assert "assistant" in small.read_text() and small.stat().st_size < path.stat().st_size
    assert load_recording(small).header.note == f"minimised until {command}"
    (before,), (after,) = load_recording(path).interactions(), load_recording(small).interactions()
    assert len(after.body or b"") < len(before.body or b"") / 4
    capsys.readouterr()
    for wrong, said in (
        ("command:", "the command is missing"),
        ("command:'", "command:': it is no command: a quotation mark is not closed, or nothing follows a backslash"),
        (f"command:{tmp_path / 'none'}", "cannot be run: No such file or directory"),
        (f"command:{sys.executable} -c 'raise SystemExit(1)'", "No request of the recording shows command:"),
    ):
        assert run("minimise", str(path), "--until", wrong, "--out", str(tmp_path / "other")) == 2
        assert said in capsys.readouterr().err and not (tmp_path / "other").exists()


def test_a_file_that_is_none_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("replay", "minimise"):
        assert run(command, str(tmp_path / "none")) == 2
        assert "cannot be read" in capsys.readouterr().err


async def test_serve_records_every_request(tmp_path: Path) -> None:
    folder = tmp_path / "recorded"
    own: Mapping[str, Json] = {**cast("dict[str, Json]", DEMO_SETTINGS), "server": {"api_keys_env": None}}
    async with gateway_command(tmp_path, own, "serve", "--port", "0", "--record", str(folder)) as command:
        await command.wait_ready()
        async with httpx.AsyncClient(base_url=command.base_url, timeout=20) as client:
            body = {"model": "demo-chat", "messages": [{"role": "user", "content": SAID}]}
            answer = await client.post("/v1/chat/completions", json=body)
        command.process.send_signal(signal.SIGTERM)
        status, errors = await command.ended()
        assert status == 0 and f"every request is recorded in {folder}" in errors
    (path,) = folder.iterdir()
    (one,) = load_recording(path).interactions()
    assert one.request.id == answer.headers["x-request-id"] and SAID not in path.read_text()
