"""`dragoman init`: what it finds, asks, writes and refuses."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from gateway.cli import main
from gateway.discovery.identify import identify_ports
from gateway.settings import load_settings
from tests.discovery.canned_server import canned_server, models, reply
from tests.server.backend import faulty_backend
from tests.server.doctor.test_text_wire import llama

OLLAMA: Final = {"/api/version": reply({"version": "0.12.3"}), "/v1/models": models("llama3.2")}
PAGE: Final = {"/": reply("a page")}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["init", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@contextmanager
def server(paths: dict[str, bytes]) -> Iterator[str]:
    """A canned server in a thread: the command runs an event loop of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = canned_server(paths)
    try:
        yield asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def test_a_server_on_a_known_port_becomes_a_backend(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server(OLLAMA) as url, server(PAGE) as page:
        ports = tuple(int(each.rpartition(":")[2]) for each in (url, page))
        monkeypatch.setattr("gateway.discovery.server_kinds.known_ports", lambda: ports)
        # On a busy machine, too.
        monkeypatch.setattr("gateway.discovery.identify.identify_ports", partial(identify_ports, answer_s=20))
        assert run("--yes") == 0
    said = capsys.readouterr().out
    assert f"{url}  Ollama, 1 model\n{page}  an unknown server\n" in said
    assert "Written: settings.json, and settings.schema.json for editors." in said
    assert "Next: dragoman serve, and dragoman connect for your client." in said
    settings = load_settings(Path("settings.json"))
    assert settings.backends["ollama"].base_url == f"{url}/v1" and set(settings.models) == {"llama3.2", "*"}


def test_without_a_server_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    monkeypatch.setattr("gateway.discovery.server_kinds.known_ports", lambda: (9,))
    assert run("--yes") == 1
    assert "No model server answers on this machine (ports 9)." in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_a_file_is_never_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("settings.json").write_text("mine")
    assert run("--backend", "openai", "--yes") == 2
    assert "exists, and is not overwritten: give another file, such as --out mine.json\n" in capsys.readouterr().err
    Path("mine.json").write_text("mine, too")
    assert run("--backend", "openai", "--yes") == 2
    assert "such as --out mine2.json\n" in capsys.readouterr().err
    assert run("--backend", "openai", "--yes", "--out", "other.json") == 0
    assert Path("settings.json").read_text() == "mine"
    assert "dragoman serve --settings other.json" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["azure", "snowflake", "bedrock"])
def test_a_provider_whose_address_names_the_account_needs_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--backend", name, "--yes") == 2
    assert "give it with --url, such as https://" in capsys.readouterr().err
    assert run("--backend", name, "--url", "https://mine.example/v1", "--yes") == 0
    ((_, entry),) = json.loads(Path("settings.json").read_text())["backends"].items()
    assert (entry["base_url"], entry["profile"]) == ("https://mine.example/v1", name)


def test_a_missing_variable_of_a_provider_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    assert run("--backend", "deepseek", "--yes") == 0
    assert "the environment variable DEEPSEEK_API_KEY is not set" in capsys.readouterr().out


@pytest.mark.parametrize(("said", "status"), [("", 0), ("y", 0), ("no", 1)])
def test_it_asks_at_a_terminal(said: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: said)
    assert run("--backend", "openai") == status
    assert Path("settings.json").exists() is (status == 0)


def test_the_end_of_the_input_is_no_yes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def ends(_: str) -> str:
        raise EOFError

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", ends)
    assert run("--backend", "openai") == 1
    assert not Path("settings.json").exists() and capsys.readouterr().err == ""


def test_a_port_that_the_backend_takes_is_not_that_of_the_gateway() -> None:
    assert run("--backend", "vllm", "--url", "http://localhost:8000", "--yes") == 0
    assert load_settings(Path("settings.json")).server.port >= 8010


def test_another_kind_at_the_address_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with server(OLLAMA) as url:
        assert run("--backend", "llama-cpp", "--url", url, "--yes") == 2
        assert f"{url} is Ollama, not llama.cpp" in capsys.readouterr().err
        assert run("--backend", "openai-compatible", "--url", f"{url}/v1/", "--yes") == 0
    assert "llama3.2" in load_settings(Path("settings.json")).models


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "olama", "--yes"], "there is no kind 'olama'; did you mean 'ollama'?"),
        (["--backend", "tgi", "--yes"], "has no port of its own"),
        (["--url", "http://127.0.0.1:9", "--yes"], "nothing answers at http://127.0.0.1:9"),
        (["--url", "https://127.0.0.1:9", "--yes"], "https://127.0.0.1:9, or its certificate is not trusted"),
        (["--url", "host", "--yes"], "is no address"),
        (["--backend", "openai"], "give --yes"),
        (["--backend", "openai", "--yes", "--out", "none/settings.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert run(*arguments) == 2
    assert words in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_what_does_not_tell_its_kind_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    with server(PAGE) as url:
        assert run("--url", url, "--yes") == 2
        assert "say with --backend what it is" in capsys.readouterr().err
        assert run("--url", url, "--backend", "llama-cpp", "--yes") == 0


def test_a_model_that_makes_more_calls_over_the_text_wire_gets_it(capsys: pytest.CaptureFixture[str]) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    serving = faulty_backend(llama(chat_calls=False, text_calls=True))
    try:
        backend = asyncio.run_coroutine_threadsafe(serving.__aenter__(), loop).result(10)
        assert run("--url", backend.base_url, "--yes") == 0
    finally:
        asyncio.run_coroutine_threadsafe(serving.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
    assert "llama-cpp: 0 of 3 calls over chat completions, 3 over the text wire" in capsys.readouterr().out
    settings = load_settings(Path("settings.json"))
    assert settings.models["inner"].backend == "llama-cpp-text"
    assert {name: entry.adapter for name, entry in settings.backends.items()} == {
        "llama-cpp": "openai_chat",
        "llama-cpp-text": "text",
    }


def test_a_server_that_wants_a_key_is_not_asked_for_calls(capsys: pytest.CaptureFixture[str]) -> None:
    refused = reply({"error": {}}, 401, server="llama.cpp")
    with server({"/props": refused, "/v1/models": refused}) as url:
        assert run("--url", url, "--backend", "llama-cpp", "--yes") in (0, 1)
    assert "tool calls" not in capsys.readouterr().out and "text" not in load_settings(Path("settings.json")).backends
