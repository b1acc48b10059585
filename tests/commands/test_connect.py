"""`dragoman connect`: what it prints and writes, and its exit status."""

import asyncio
import json
import tomllib
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.connect.client import client_names
from gateway.testing.gateway import gateway_command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and a folder with settings as the current one."""
    for name in ("CODEX_HOME", "DRAGOMAN_API_KEYS", "DRAGOMAN_PORT", "DRAGOMAN_SETTINGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    entry = {"adapter": "openai_chat", "base_url": "http://host"}
    settings = {"server": {"port": 8010}, "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["connect", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def test_without_a_client_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(client_names())
    assert any(line.endswith("~/.codex/config.toml") for line in lines)


def test_the_address_and_model_of_the_settings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("codex") == 0
    said = capsys.readouterr().out
    assert 'base_url = "http://127.0.0.1:8010/v1"' in said and 'model = "m"' in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["codx"], "there is no client 'codx'; did you mean 'codex'?"),
        (["codex", "--model", "n"], "there is no model 'n'"),
        (["codex", "--url", "gw"], "'gw' is no address"),
        (["openai", "--write"], "has no file to write"),
        (["copilot", "--write"], "has no file to write"),
        (["codex", "--undo"], "there is nothing to undo"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], words: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and words in said.err
    assert not home.exists()


def test_a_file_that_is_refused_leads_to_what_a_person_can_enter(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("model = \n")
    assert run("codex", "--write") == 2
    assert "Nothing was changed: 'dragoman connect codex' prints what to enter by hand" in capsys.readouterr().err
    assert path.read_text() == "model = \n"


def test_a_file_is_written_and_restored(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = home / ".codex" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('model = "mine"\n')
    assert run("codex", "--write") == 0
    said = capsys.readouterr().out
    assert "written. It had other values of model. A copy of it is config.toml.dragoman-" in said
    assert "export DRAGOMAN_KEY=unused" in said
    assert tomllib.loads(path.read_text())["model"] == "m"
    assert run("codex", "--write") == 0
    assert "nothing to change" in capsys.readouterr().out
    assert run("codex", "--undo") == 0
    assert path.read_text() == 'model = "mine"\n' and list(path.parent.iterdir()) == [path]


def test_a_new_file_is_removed_again(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (run("codex", "--write"), run("codex", "--undo")) == (0, 0)
    assert "removed, since there was none before" in capsys.readouterr().out
    assert list((home / ".codex").iterdir()) == []


@pytest.mark.parametrize("given", ["the settings", "the option"])
def test_without_settings_a_running_gateway_is_asked(
    given: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("settings.json").unlink()

    async def beside_demo() -> tuple[int, str]:
        async with gateway_command(Path(), None, "demo", "--port", "0") as gateway:
            await gateway.wait_ready()
            if given == "the settings":
                monkeypatch.setenv("DRAGOMAN_PORT", gateway.base_url.rpartition(":")[2])
            arguments = ["codex"] if given == "the settings" else ["codex", "--url", gateway.base_url]
            return await asyncio.to_thread(run, *arguments), gateway.base_url

    status, base_url = asyncio.run(beside_demo())
    said = capsys.readouterr()
    assert status == 0, said.err
    assert f'base_url = "{base_url}/v1"' in said.out and 'model = "demo-agent"' in said.out


def test_without_settings_a_model_and_an_address_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("settings.json").unlink()
    # Nothing listens there.
    monkeypatch.setenv("DRAGOMAN_PORT", "1")
    assert run("codex") == 2
    assert "dragoman init" in capsys.readouterr().err
    assert run("codex", "--model", "x", "--url", "https://gw.example/v1") == 0
    assert "https://gw.example/v1" in capsys.readouterr().out


def test_a_key_is_never_written(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "a-secret-value")
    for name in client_names():
        run(name)
        run(name, "--write")
    files = [path.read_text() for folder in (home, Path()) for path in folder.rglob("*") if path.is_file()]
    said = capsys.readouterr()
    assert len(files) > 9 and "${DRAGOMAN_API_KEYS%%,*}" in said.out
    assert "a-secret-value" not in "".join([*files, said.out, said.err])
