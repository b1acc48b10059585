"""`dragoman connect`: what it prints and writes, and its exit status."""

import asyncio
import json
import tomllib
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.connect.client import client_names
from gateway.server.process.noted_address import note_address, noted_address
from gateway.testing.gateway import gateway_command
from tests.commands.test_init import OLLAMA, server


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


async def beside(folder: Path, command: str, state: Path, connect: list[str]) -> tuple[int, str]:
    """The exit status of `connect` while a gateway runs on a port that no settings name, and its address."""
    async with gateway_command(folder, None, command, "--port", "0", STATE_DIRECTORY=str(state)) as gateway:
        await gateway.wait_ready()
        return await asyncio.to_thread(run, *connect), gateway.base_url


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder for this test alone, and a port of the settings where nothing listens."""
    folder = tmp_path / "state"
    monkeypatch.setenv("STATE_DIRECTORY", str(folder))
    monkeypatch.setenv("DRAGOMAN_PORT", "1")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("known", [True, False])
def test_the_gateway_that_runs_is_asked_for_its_port(
    known: bool, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not known:
        Path("settings.json").unlink()
    (tmp_path / "empty").mkdir()
    status, base_url = asyncio.run(beside(tmp_path / "empty", "demo", state, ["codex"]))
    said = capsys.readouterr()
    model = "m" if known else "demo-agent"
    assert status == 0 and f'base_url = "{base_url}/v1"' in said.out and f'model = "{model}"' in said.out
    assert said.err == (
        f"dragoman: nothing answers at http://127.0.0.1:1; a gateway listens on {base_url}, which is used\n"
    )
    # It has ended: its note leads nowhere, and is not believed.
    assert run("codex", "--model", "m") == 0
    said = capsys.readouterr()
    assert 'base_url = "http://127.0.0.1:1/v1"' in said.out
    assert said.err.startswith("dragoman: nothing answers at http://127.0.0.1:1: start a gateway there (")
    assert said.err.count("\n") == 1


def test_another_server_at_the_address_is_named(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(OLLAMA) as url:
        monkeypatch.setenv("DRAGOMAN_PORT", url.rpartition(":")[2])
        assert run("codex") == 0
        assert f"dragoman: what answers is Ollama, and no gateway, at {url}: start" in capsys.readouterr().err
        # The note may lead to another server, too.
        state.mkdir()
        note_address(state, url)
        monkeypatch.setenv("DRAGOMAN_PORT", "1")
        assert run("codex") == 0
        said = capsys.readouterr()
        assert "nothing answers at http://127.0.0.1:1: start" in said.err and url not in said.out + said.err


def test_an_address_that_a_person_gives_is_used_and_asked(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["codex", "--url", "http://127.0.0.1:9"]
    (tmp_path / "empty").mkdir()
    status, base_url = asyncio.run(beside(tmp_path / "empty", "demo", state, arguments))
    said = capsys.readouterr()
    assert status == 0 and 'base_url = "http://127.0.0.1:9/v1"' in said.out and base_url not in said.out
    assert "nothing answers at http://127.0.0.1:9: start" in said.err


def test_a_settings_file_that_is_named_and_missing_is_an_error(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("codex", "--settings", "none.json") == 2
    assert "none.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "gw", "http://user@host", "http://127.0.0.1:8000/\x1b[2J", "ftp://host", "x" * 999]
)
def test_a_note_that_is_none_is_not_believed(text: str, tmp_path: Path) -> None:
    assert noted_address(tmp_path / "none") is None
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "address").write_text(text)
    assert noted_address(folder) is None
    (folder / "address").write_bytes(b"http://127.0.0.1:8000/\xff\n")
    assert noted_address(folder) is None
    note_address(folder, "http://127.0.0.1:8011")
    assert noted_address(folder) == "http://127.0.0.1:8011" and [*folder.iterdir()] == [folder / "address"]
    note_address(tmp_path / "none", "http://127.0.0.1:8011")


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
