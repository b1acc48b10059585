"""`dragoman map learn`: what it reads, what it prints, and its exit status."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.policy import Policy
from gateway.recording.files import save_recording
from gateway.recording.lines import AnswerLine, BytesLine, CloseLine, HeadLine, RequestLine, RouteLine, data_of
from gateway.recording.offline_run import run_offline
from gateway.recording.recording import Interaction, Recording
from gateway.recording.remake import remade
from gateway.recording.route import policy_fields
from tests.adapters.proto.backend.test_tutorial import BLOCK, COMMAND, pattern, run
from tests.adapters.proto.learn.recorded import options_of, recorded, requests
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "proto-backends.md").read_text(encoding="utf-8")
SECTION: Final = PAGE[PAGE.index("## Learning a mapping") : PAGE.index("## Presets")]
STEPS: Final = [
    (found["command"], found["printed"])
    for block in BLOCK.finditer(SECTION)
    for found in COMMAND.finditer(block["text"])
]


def learn(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["map", "learn", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one exchange of each kind with the demo backend, and its schema."""
    write_exchanges("demo", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_exchanges(service: str, folder: Path) -> None:
    (folder / "schema.pb").write_bytes(options_of(service).schema.data)
    asked = requests("Kyoto", forced=True)
    for exchange in recorded(service, "Kyoto"):
        files = folder / "recorded" / exchange.name
        files.mkdir(parents=True)
        (files / "request.json").write_text(json.dumps(asked[exchange.name]))
        (files / "body.bin").write_bytes(exchange.body)
        (files / "answer.hex").write_text(exchange.answer.hex(" "))
        (files / "trailers.txt").write_text("grpc-status: 0\n")


def expected(folder: Path, kind: str, answer: Json) -> None:
    (folder / "recorded" / kind / "expected.json").write_text(json.dumps(answer))


def test_the_section_of_the_page_prints_what_it_shows(tmp_path: Path) -> None:
    schema = next(block["text"] for block in BLOCK.finditer(PAGE) if block["name"] == "echo.proto")
    (tmp_path / "echo.proto").write_text(schema)
    for command, printed in STEPS:
        # --diff finds a difference, which is exit status 1.
        found = run(f"{command} || true", tmp_path)
        assert re.fullmatch("".join(map(pattern, printed.splitlines())), found), found
    assert {command.split()[0] for command, _ in STEPS} == {"mkdir", "printf", "dragoman", "cat", "sed"}


def test_an_entry_is_written_that_map_check_takes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected(folder, "error", {"error": {"message": "It failed.", "code": 502}})
    assert learn("recorded", "--schema", "schema.pb", "--output", "entry.json") == 0
    printed = capsys.readouterr().out
    assert "learned from 5 exchanges: error, parallel, plain, stream, tool\n" in printed
    assert "method dragoman.demo.v1.Generation/Generate over grpc\n" in printed and "wrote entry.json\n" in printed
    with pytest.raises(SystemExit) as left:
        main(["map", "check", "entry.json"])
    assert (left.value.code, capsys.readouterr().out) == (0, "backends.entry: no fault\n")


def test_exchanges_that_are_held_back_are_replayed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected(folder, "error", {"error": {"message": "It failed."}})
    learn("recorded", "--schema", "schema.pb", "--hold-back", "2")
    printed = capsys.readouterr().out
    assert "learned from 3 exchanges: error, parallel, plain\n" in printed
    assert "  tool: " in printed and ", held back" in printed


def test_an_answer_that_is_known_is_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A text that no field holds is no text of the backend's."""
    expected(folder, "plain", {"choices": [{"message": {"content": "Something else."}, "finish_reason": "stop"}]})
    assert learn("recorded", "--schema", "schema.pb") == 1
    printed = capsys.readouterr().out
    assert '  plain: differs\n    answer.text: recorded "Something else.", made ' in printed
    assert "    read.text: " in printed


def recording(service: str, word: str) -> Recording:
    """The exchanges with a preset's backend as the gateway would have recorded them."""
    asked = requests(word, forced=True)
    found: list[Interaction] = []
    for x, exchange in enumerate(recorded(service, word), 1):
        body = data_of(json.dumps(asked[exchange.name]).encode())
        inputs = Interaction(
            RequestLine(x, f"req_{exchange.name}", "openai_chat", "POST", "/v1/chat/completions", body=body),
            RouteLine(x, "m", "b", "proto", options={"preset": service}, policy=policy_fields(Policy())),
            answer=AnswerLine(x, "unique", 1_700_000_000, (1_700_000_001,) * 9),
            steps=(
                HeadLine(x, "backend", 1, 200, {"content-type": "application/grpc"}),
                BytesLine(x, "backend", 2, data_of(exchange.answer)),
                CloseLine(x, 3, {"grpc-status": "0"}),
            ),
        )
        found.append(remade(inputs, run_offline(inputs)))
    return Recording().with_interactions(found)


def test_a_recording_is_learned_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_recording(folder / "session.dragoman.jsonl", recording("demo", "Kyoto"))
    assert learn("session.dragoman.jsonl", "--schema", "schema.pb", "-o", "entry.json") == 0
    printed = capsys.readouterr().out
    assert "learned from 5 exchanges: req_plain, req_stream, req_tool, req_parallel, req_error\n" in printed
    assert "not known" not in printed and "differs" not in printed
    save_recording(folder / "newer.dragoman.jsonl", recording("demo", "Reykjavik"))
    assert learn("newer.dragoman.jsonl", "--diff", "entry.json") == 0
    assert capsys.readouterr().out == "nothing: the entry replays 5 exchanges\n"


def test_what_newer_exchanges_change_is_told_with_what_was_learned(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_recording(folder / "session.dragoman.jsonl", recording("demo", "Kyoto"))
    learn("session.dragoman.jsonl", "--schema", "schema.pb", "-o", "entry.json")
    capsys.readouterr()
    text = (folder / "entry.json").read_text()
    older = text.replace('"max_tokens": "$max_tokens", ', "").replace(
        '"FINISH_LENGTH": "length"', '"FINISH_LENGTH": "stop"'
    )
    assert older.count("$max_tokens") == 0 and older != text
    (folder / "older.json").write_text(older)
    assert learn("session.dragoman.jsonl", "--diff", "older.json") == 1
    assert capsys.readouterr().out.splitlines() == [
        "request.limits.max_tokens: recorded 69, the entry makes nothing (req_plain)",
        'answer.finish: recorded "length", the entry makes "stop" (req_stream)',
        'request.limits: recorded {"max_tokens":905}, the entry makes nothing (req_error)',
        'learned request.limits.max_tokens: "$max_tokens" in place of nothing',
        'learned read[0].finish.reasons.FINISH_LENGTH: "length" in place of "stop"',
    ]


def test_nothing_changes_for_an_entry_that_replays_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected(folder, "error", {"error": {"message": "It failed."}})
    entry = {"adapter": "proto", "preset": "demo", "base_url": "http://127.0.0.1:9"}
    (folder / "entry.json").write_text(json.dumps(entry))
    assert learn("recorded", "--diff", "entry.json") == 0
    assert capsys.readouterr().out == "nothing: the entry replays 5 exchanges\n"


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        (None, ["recorded"], "--schema is missing: a descriptor set or a .proto file of the service"),
        (None, ["nothing"], "nothing: cannot be read"),
        (None, ["recorded", "--schema", "schema.pb", "--hold-back", "5"], "--hold-back 5 leaves none of 5 exchanges"),
        (
            None,
            ["recorded", "--schema", "schema.pb", "--method", "dragoman.demo.v1.Generation/Generat"],
            "the schema has no method 'dragoman.demo.v1.Generation/Generat'; did you mean",
        ),
        (
            None,
            ["recorded", "--schema", "schema.pb", "--carrier", "frames_u32"],
            "the recorded bodies are not those of any method of the schema over the carrier 'frames_u32'",
        ),
        (
            lambda folder: (folder / "recorded" / "plain" / "body.bin").unlink(),
            ["recorded", "--schema", "schema.pb"],
            "recorded/plain: it must have one of body.bin, body.hex, body.json; it has 0",
        ),
        (
            lambda folder: (folder / "recorded" / "plain" / "answer.hex").write_text("0a0"),
            ["recorded", "--schema", "schema.pb"],
            "recorded/plain/answer.hex: it is not text of pairs of hexadecimal digits",
        ),
        (
            lambda folder: expected(folder, "plain", {"no": "answer"}),
            ["recorded", "--schema", "schema.pb"],
            "recorded/plain/expected.json: it is no answer of chat completions",
        ),
        (
            lambda folder: (folder / "recorded" / "plain" / "expected.json").write_text("{"),
            ["recorded", "--schema", "schema.pb"],
            "recorded/plain/expected.json: it is no answer of chat completions",
        ),
        (
            lambda folder: (folder / "recorded" / "plain" / "request.json").write_text('{"messages": 1}'),
            ["recorded", "--schema", "schema.pb"],
            "recorded/plain/request.json: ",
        ),
        (
            lambda folder: (folder / "empty").mkdir(),
            ["empty", "--schema", "schema.pb"],
            "empty: there is no request.json in it, and none in a folder of it",
        ),
    ],
)
def test_what_cannot_be_learned_from_is_an_error(
    change: Callable[[Path], object] | None,
    arguments: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if change is not None:
        change(folder)
    assert learn(*arguments) == 2
    assert capsys.readouterr().err.startswith(f"dragoman: {message}")
