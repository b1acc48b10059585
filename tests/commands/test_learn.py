"""`dragoman map learn`: what it reads, what it prints, and its exit status."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from gateway.core.conversation import Json
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
