"""`dragoman map`: what it prints, and its exit status."""

import json
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from tests.adapters.proto.backend.mappings import TALK
from tests.adapters.proto.backend.services import TALK as ANSWER
from tests.adapters.proto.backend.services import envelope, grpc_web

BODY: Final = grpc_web(ANSWER)
ENTRY: Final = {"adapter": "proto", "base_url": "http://127.0.0.1:9", **TALK}


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["map", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one backend, as settings and as an entry, and a response as bytes and in hexadecimal."""
    settings = {"backends": {"talk": ENTRY}, "models": {"t": {"backend": "talk"}}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "talk.json").write_text(json.dumps(ENTRY))
    (tmp_path / "answer.bin").write_bytes(BODY)
    (tmp_path / "answer.hex").write_text(BODY.hex(" ", 16))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("file", ["settings.json", "talk.json"])
def test_a_check_without_faults_names_each_backend(file: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (run("check", file), capsys.readouterr().out) == (0, "backends.talk: no fault\n")


def test_a_check_reports_every_fault_with_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = json.loads(json.dumps(ENTRY).replace("so_far", "sofar").replace("$prompt", "$promt"))
    chat = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}
    (folder / "wrong.json").write_text(json.dumps({"backends": {"talk": wrong, "chat": chat}}, indent=1))
    assert run("check", "wrong.json") == 1
    lines = capsys.readouterr().out.splitlines()
    for place, line in zip(("read[1].text", "request.text"), lines, strict=False):
        assert line.startswith("wrong.json: line ") and f": backends.talk.{place}: " in line
        assert "did you mean" in line
    assert lines[2:] == ["backends.chat: no fault"]


@pytest.mark.parametrize("file", ["settings.json", "talk.json"])
@pytest.mark.parametrize("answer", ["answer.bin", "answer.hex"])
def test_a_trial_shows_the_request_and_the_events(
    file: str, answer: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "request.json").write_text('[{"role": "user", "content": "Good morning?"}]')
    assert run("try", file, "--request", "request.json", "--answer", answer) == 0
    page = capsys.readouterr().out
    assert page.startswith("request: POST /acme.talk.v1.Talk/Speak\n  content-type: application/grpc-web+proto\n")
    assert '  text   <- request.text   "User: Good morning?\\n\\nAssistant:"\n' in page
    first, second = (5 + len(message) for message in ANSWER[:2])
    assert f'\n{first:>8}  ResponseStart\n          TextDelta text="Good"\n' in page
    assert f'\n{first + second:>8}  TextDelta text=" morning, 日"\n' in page
    assert "UsageReport prompt_tokens=3 completion_tokens=5 total_tokens=8\n" in page
    assert page.endswith('  Finish reason="stop" raw="ENDING_DONE"\n')


def test_the_dump_has_every_byte_of_the_body(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("try", "talk.json") == 0
    page = capsys.readouterr().out
    dump = page.partition(" bytes\n")[2].partition("\n\n")[0]
    data = b"".join(bytes.fromhex(line[10:57]) for line in dump.splitlines())
    assert f"body: {len(data)} bytes\n" in page
    assert data[:5] == b"\0" + (len(data) - 5).to_bytes(4, "big") and b"User: Hello" in data


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        (BODY[:-1], ["   error  502 upstream_stream_truncated: "]),
        (
            grpc_web(ANSWER, b"grpc-status: 8\r\ngrpc-message: slow%20down\r\n"),
            ["   error  429 rate_limit_exceeded: slow down"],
        ),
        (BODY + b"more", ["  4 bytes behind the end were not read"]),
        (ANSWER[0], ["   error  502 "]),
    ],
)
def test_a_response_that_is_wrong_is_told_with_what_came_before(
    body: bytes, lines: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.bin").write_bytes(body)
    status = run("try", "talk.json", "--answer", "wrong.bin")
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(lines[0])
    assert status == (1 if "error" in last else 0)


@pytest.mark.parametrize(
    ("trailers", "last", "status"),
    [
        ([], '          Finish reason="stop" raw="ENDING_DONE"', 0),
        (["grpc-status: 14", "grpc-message: busy"], "   error  503 upstream_overloaded: The backend is overloaded.", 1),
        (
            ["other: 1"],
            "   error  502 upstream_stream_truncated: The backend's response ended without a status.",
            1,
        ),
    ],
)
def test_a_response_of_grpc_ends_with_its_trailers(
    trailers: list[str], last: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "talk.json").write_text(json.dumps({**ENTRY, "carrier": "grpc"}))
    (folder / "frames.bin").write_bytes(b"".join(map(envelope, ANSWER)))
    options = [word for trailer in trailers for word in ("--trailer", trailer)]
    assert run("try", "talk.json", "--answer", "frames.bin", *options) == status
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


def test_a_request_that_is_refused_is_a_finding(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "request.json").write_text('{"messages": [{"role": "user", "content": "x"}], "logprobs": true}')
    assert run("try", "talk.json", "--request", "request.json", "--model", "any") == 1
    assert capsys.readouterr().out.startswith("refused, nothing would be sent: logprobs is not supported")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["try", "nowhere.json"], "nowhere.json: there is no such file"),
        (["try", "talk.json", "--request", "nowhere.json"], "nowhere.json: cannot be read"),
        (["try", "talk.json", "--answer", "odd.hex"], "odd.hex: it is not text of pairs of hexadecimal digits\n"),
        (["try", "wrong.json"], "unknown setting 'backends.wrong.carier'; did you mean 'carrier'?"),
        (["try", "none.json"], "none.json: there is no model, and so no backend to try"),
    ],
)
def test_a_file_that_is_wrong_is_an_error(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "odd.hex").write_text("0a0")
    (folder / "wrong.json").write_text(json.dumps({**ENTRY, "carier": "body"}))
    (folder / "none.json").write_text("{}")
    assert run(*arguments) == 2
    assert capsys.readouterr().err.startswith(f"dragoman: {message}")
