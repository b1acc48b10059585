"""Tests the command line: its output without a running gateway."""

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.cli import curl, main
from gateway.connect.target import key_reference
from gateway.settings import ServerSettings
from tests.paths import ROOT


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    name, number = capsys.readouterr().out.split()
    assert name == "dragoman"
    assert number[0].isdigit()


@pytest.mark.parametrize("arguments", [[], ["fly"], ["serve", "--prot", "1"]])
def test_wrong_arguments_leave_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: dragoman" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["docter"], "argument COMMAND: there is no 'docter'; did you mean 'doctor'?"),
        (["config", "chek"], "dragoman config: error: argument ACTION: there is no 'chek'; did you mean 'check'?"),
        (["doctor", "--ofline"], "dragoman doctor: error: there is no option --ofline; did you mean --offline?"),
        (["init", "--bakend=x"], "dragoman init: error: there is no option --bakend; did you mean --backend?"),
        (["init", "--zzzzzzzz"], "dragoman init: error: there is no option --zzzzzzzz (dragoman init --help"),
        (["doctor", "a", "b"], "dragoman doctor: error: one argument too many: 'b'"),
        (["lint", "--format", "yaml", "x"], "argument --format: there is no 'yaml'; there are 'text', 'json', 'sarif'"),
    ],
)
def test_a_mistake_gets_the_nearest_name_and_the_usage_of_its_command(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert words in said
    assert said.startswith(f"usage: dragoman {arguments[0]} " if "error: argument COMMAND" not in said else "usage: ")


@pytest.mark.parametrize("command", ["doctor", "init", "config check", "schema show"])
def test_the_help_of_a_command_says_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*command.split()[:-1], "--help"] if " " in command else ["--help"])
    listed = " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit):
        main([*command.split(), "--help"])
    usage, about, *_ = capsys.readouterr().out.split("\n\n")
    sentence = " ".join(about.split())
    assert usage.startswith(f"usage: dragoman {command} ")
    assert f"{sentence[0].lower()}{sentence[1:-1]}" in listed


def test_ctrl_c_ends_a_command_without_a_traceback() -> None:
    code = "import gateway.cli as c; c.COMMANDS = {'adapters': lambda _: (_ for _ in ()).throw(KeyboardInterrupt)}"
    command = [sys.executable, "-c", f"{code}; c.main(['adapters'])"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "\n")


def test_a_missing_settings_file_leads_to_the_command_that_writes_one(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["serve"], ["doctor"], ["config", "show"]):
        with pytest.raises(SystemExit) as left:
            main([*command, "--settings", "/nowhere/at-all.json"])
        assert left.value.code == 2
        assert (
            "/nowhere/at-all.json: there is no such file; 'dragoman init' writes a first settings file"
            in capsys.readouterr().err
        )


def test_help_names_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    said = capsys.readouterr().out
    assert "DRAGOMAN_SETTINGS" in said and "DRAGOMAN_PORT" in said


def test_environment_names_the_settings(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DRAGOMAN_SETTINGS", "/nowhere/at-all.json")
    with pytest.raises(SystemExit) as left:
        main(["serve"])
    assert left.value.code == 2
    assert "/nowhere/at-all.json" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["demo", "it's", 'a"b', "$(x)"])
def test_the_printed_command_survives_the_shell(model: str) -> None:
    words = shlex.split(curl("http://127.0.0.1:8000", model, ""))
    assert words[2] == "http://127.0.0.1:8000/v1/chat/completions"
    assert json.loads(words[-1])["model"] == model


@pytest.mark.parametrize(
    ("said", "file", "shown"), [("", None, ""), ("", "keys.txt", "KEY"), ("a,b", "keys.txt", "${MY_KEYS%%,*}")]
)
def test_the_printed_command_has_a_key_where_one_is_needed(said: str, file: str | None, shown: str) -> None:
    server = ServerSettings(api_keys_env="MY_KEYS", api_keys_file=file)
    assert key_reference(server, {"MY_KEYS": said}) == shown
    assert ("Authorization: Bearer" in curl("http://127.0.0.1:8000", "m", shown)) == bool(shown)


def test_what_is_printed_at_the_start_is_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    class Output(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    def serve(_: object, __: object, announce: Callable[[str], None], ___: object) -> None:
        announce("http://127.0.0.1:8000")

    pieces: list[str] = []
    monkeypatch.setattr("gateway.server.process.run.serve", serve)
    monkeypatch.setattr(sys, "stdout", Output())
    with pytest.raises(SystemExit):
        main(["demo"])
    (printed,) = [piece for piece in pieces if piece]
    assert printed.startswith("dragoman listens on http://127.0.0.1:8000/v1\nTry it:\n  curl ")
    assert "/__demo/requests\n" in printed
    assert printed.count("\n") == 7 and printed.endswith("\n  http://127.0.0.1:8000/inspect\n")


@pytest.mark.parametrize("arguments", [["config", "show"], ["--version"], ["completion", "bash"]])
def test_a_reader_that_has_gone_ends_a_command_without_a_traceback(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "gateway", *arguments]
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, cwd=ROOT)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


def test_little_is_imported_before_the_arguments_are_known() -> None:
    script = "import sys, gateway.cli; print([name for name in ('fastapi', 'uvicorn', 'httpx') if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_a_gateway_without_demo_backends_loads_neither_them_nor_other_adapters(tmp_path: Path) -> None:
    """Its address cannot be bound, which is found when everything else is built."""
    settings = {
        "server": {"host": "192.0.2.1", "api_keys_env": "KEYS"},
        "log": {"file": None},
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9/v1"}},
        "models": {"m": {"backend": "b"}},
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    code = (
        "import atexit, sys\n"
        "from gateway.cli import main\n"
        "atexit.register(lambda: print('LOADED', *(name for name in sys.modules if name.count('.') < 2)))\n"
        f"main(['serve', '--settings', {str(tmp_path / 'settings.json')!r}])\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, "KEYS": "k" * 24}
    )
    assert "cannot listen on 192.0.2.1" in told.stderr
    loaded = set(told.stdout.split("LOADED ")[1].split())
    assert "gateway.server" in loaded and "adapters.openai_chat" in loaded
    assert loaded.isdisjoint({"gateway.demo", "adapters.text", "adapters.warp", "google.protobuf", "h2"})
