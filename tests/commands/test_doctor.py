"""`dragoman doctor`: what it prints, asks and writes, and its exit status."""

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.commands.doctor_report import report_text
from gateway.demo.settings import DEMO_SETTINGS
from tests.paths import ROOT
from tests.server.backend import Connection, answer, faulty_backend

CANARY = "CANARY-key-5d0e"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["doctor", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def port() -> Iterator[int]:
    """A port that is free."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
    yield number


def file(folder: Path, port: int = 0, **more: Any) -> str:
    """A settings file with one demo backend, and what `more` says. (Any: JSON.)"""
    path = folder / "settings.json"
    settings = {
        "server": {"port": port or 8000},
        "log": {"file": None},
        "backends": {"chat": {"adapter": "openai_chat", "base_url": "demo:chat"}},
        "models": {"demo-chat": {"backend": "chat"}},
        **more,
    }
    path.write_text(json.dumps(settings, indent=2))
    return str(path)


def test_a_healthy_machine_takes_one_line_a_section(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--settings", file(tmp_path, port), "--strict") == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "settings.json  ok       1 backend, 1 model, 0 keys: 8 ok, 1 skipped"
    assert second.startswith("chat           ok       demo:chat, openai_chat, model demo-chat: ")


SHIPPED: Any = json.loads((ROOT / "settings.json").read_text())


@pytest.mark.parametrize("settings", [DEMO_SETTINGS, SHIPPED], ids=["demo", "shipped"])
def test_the_settings_of_the_gateway_are_in_order_on_every_wire(
    settings: Any, tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({**settings, "server": {"port": port}, "log": {"file": None}}))
    assert run("--settings", str(path), "--strict") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[name, "ok"] for name in ("settings.json", *settings["backends"])]


def test_the_report_is_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--settings", file(tmp_path), "--only", "D22", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["format"] == 1
    assert [section["name"] for section in report["sections"]] == ["chat"]


def test_verbose_lists_every_check(tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--settings", file(tmp_path, port), "--verbose", "--only", "D22") == 0
    shown = capsys.readouterr().out
    assert "  D224 end                ok      [DONE]" in shown
    assert "  can     token counts" in shown
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  D")]
    assert listed == sorted(listed) and len(listed) > 5


def test_offline_asks_no_backend(tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    backends = {"b": {"adapter": "openai_chat", "base_url": "https://host.invalid/v1"}}
    path = file(tmp_path, port, backends=backends, models={"m": {"backend": "b"}})
    assert run("--settings", path, "--offline") == 0
    assert capsys.readouterr().out.count("\n") == 1


AZURE: Final = {"adapter": "openai_chat", "base_url": "https://x.openai.azure.com/openai/v1", "profile": "azure"}


@pytest.mark.parametrize("model", [{"base_model": "gpt-5"}, {"name": "gpt-5.2-mini"}])
def test_a_deployment_whose_model_is_known_is_in_order(
    tmp_path: Path, port: int, model: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    more: dict[str, Any] = {"backends": {"chat": AZURE}, "models": {"mine": {"backend": "chat", **model}}}
    assert run("--settings", file(tmp_path, port, **more), "--offline", "--strict", "--only", "D109") == 0
    assert "todo" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "check", "verdict"),
    [
        ({"repiar": "off"}, "D101", "broken"),
        (
            {"backends": {"chat": {"adapter": "openai_chat", "base_url": "demo:chat", "api_key_env": "NO_KEY"}}},
            "D102",
            "broken",
        ),
        ({"log": {"file": f"{__file__}/gateway.log"}}, "D106", "todo"),
        ({"models": {}}, "D107", "todo"),
        ({"backends": {"chat": {"adapter": "openai_chat", "base_url": "https://api.deepseek.com"}}}, "D108", "todo"),
        ({"backends": {"chat": AZURE}, "models": {"mine": {"backend": "chat"}}}, "D109", "todo"),
    ],
)
def test_each_fault_of_the_settings_turns_its_check_alone(
    tmp_path: Path, port: int, more: dict[str, Any], check: str, verdict: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run("--settings", file(tmp_path, port, **more), "--offline", "--json")
    (section,) = json.loads(capsys.readouterr().out)["sections"]
    found = {one["id"]: one["finding"]["verdict"] for one in section["findings"]}
    assert {name: said for name, said in found.items() if said not in ("ok", "skipped")} == {check: verdict}
    assert status == (verdict == "broken")


def test_a_file_with_secrets_that_others_can_read_is_found(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"alice:{CANARY}\n")
    keys.chmod(0o644)
    path = file(tmp_path, port, server={"port": port, "api_keys_file": str(keys)})
    assert run("--settings", path, "--offline") == 0
    shown = capsys.readouterr().out
    assert f"D103 modes              todo    others can read {keys}" in shown
    assert CANARY not in shown
    keys.chmod(0o600)
    assert run("--settings", path, "--offline", "--strict") == 0


def test_a_port_that_another_program_holds_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        path = file(tmp_path, held.getsockname()[1])
        assert run("--settings", path, "--offline", "--only", "D104", "--strict") == 1
    assert "D104 port               todo    cannot listen on 127.0.0.1:" in capsys.readouterr().out


def test_the_price_is_told_and_nothing_is_sent_without_a_yes(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    backends = {"paid": {"adapter": "openai_chat", "base_url": "https://host.invalid/v1"}}
    path = file(tmp_path, port, backends=backends, models={"m": {"backend": "paid"}})
    assert run("--settings", path) == 2
    error = capsys.readouterr().err
    assert "paid: at most " in error
    assert "Without a terminal this needs --yes." in error
    assert run("--settings", path, "--yes", "--only", "D20") == 1
    assert "D201 address            broken  the name host.invalid has no address" in capsys.readouterr().out


def test_a_check_of_this_machine_asks_no_backend(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--settings", file(tmp_path), "--only", "D105") == 0
    assert capsys.readouterr().out.splitlines() == ["settings.json  ok       1 backend, 1 model, 0 keys: 1 ok"]


def test_an_unknown_backend_is_an_error_with_the_nearest_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("cht", "--settings", file(tmp_path)) == 2
    assert "there is no backend 'cht'; did you mean 'chat'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--model", "demo-chta"], "there is no model 'demo-chta'; did you mean 'demo-chat'?"),
        (["other", "--model", "demo-chat"], "the model 'demo-chat' is of the backend 'chat', not of 'other'"),
    ],
)
def test_a_model_must_be_one_of_the_backend(
    arguments: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments, "--settings", file(tmp_path)) == 2
    assert error in capsys.readouterr().err


def test_a_model_chooses_its_backend(tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    chat = {"adapter": "openai_chat", "base_url": "demo:chat"}
    path = file(
        tmp_path, port, backends={"chat": chat, "two": chat}, models={"a": {"backend": "chat"}, "b": {"backend": "two"}}
    )
    assert run("--settings", path, "--model", "b", "--only", "D221") == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["two"]


@pytest.mark.parametrize("wanted", ["X9", "D199"])
def test_an_unknown_check_is_an_error(wanted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--settings", file(tmp_path), "--only", "D22", "--only", wanted) == 2
    assert f"there is no check whose id begins with {wanted}" in capsys.readouterr().err


def test_write_changes_the_file_so_that_the_finding_is_gone(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file(
        tmp_path,
        port,
        backends={"claude": {"adapter": "anthropic_messages", "base_url": "demo:messages"}},
        models={"demo-messages": {"backend": "claude"}},
    )
    Path(path).chmod(0o600)
    before = Path(path).read_text()
    assert run("--settings", path, "--strict") == 1
    assert '+      "profile": "claude",' in capsys.readouterr().out
    assert Path(path).read_text() == before
    assert run("--settings", path, "--write") == 0
    assert Path(f"{path}.bak").read_text() == before
    assert Path(f"{path}.bak").stat().st_mode == Path(path).stat().st_mode
    assert run("--settings", path, "--strict") == 0


REFUSING: Any = {"adapter": "openai_chat", "base_url": "demo:chat?defect=refuses_two_system"}


@pytest.mark.parametrize("form", ["\n", "\r\n", "\ufeff"], ids=["lf", "crlf", "bom"])
def test_write_changes_no_other_byte_of_the_file_and_replaces_no_copy(form: str, tmp_path: Path) -> None:
    path = Path(file(tmp_path, backends={"b": REFUSING}, models={"m": {"backend": "b", "name": "demo-chat"}}))
    before = path.read_text().replace("\n", "\r\n" if form == "\r\n" else "\n").encode()
    before = before if form != "\ufeff" else form.encode() + before
    path.write_bytes(before)
    (tmp_path / "settings.json.bak").write_text("mine")
    assert run("--settings", str(path), "--write", "--only", "D25") == 0
    kept = [line for line in path.read_bytes().splitlines(keepends=True) if b'"profile' not in line]
    assert b"".join(kept) == before
    assert (tmp_path / "settings.json.bak").read_text() == "mine"
    assert (tmp_path / "settings.json.bak.1").read_bytes() == before


def test_a_file_that_was_changed_meanwhile_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(file(tmp_path, backends={"b": REFUSING}, models={"m": {"backend": "b", "name": "demo-chat"}}))

    def edit(*arguments: Any, **options: Any) -> str:
        path.write_text(f"{path.read_text()}\n")
        return report_text(*arguments, **options)

    monkeypatch.setattr("gateway.commands.doctor_report.report_text", edit)
    before = path.read_text()
    assert run("--settings", str(path), "--write", "--only", "D25") == 2
    assert "was changed while the backends were asked" in capsys.readouterr().err
    assert path.read_text() == f"{before}\n"
    assert [each.name for each in tmp_path.iterdir()] == ["settings.json"]


def test_no_credential_is_in_a_suggestion_or_in_the_title_of_a_backend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = f"{CANARY}\u00e9"
    entry = {**REFUSING, "headers": {"x-account": secret}}
    wrong = {"adapter": "openai_chat", "base_url": f"http://user:{CANARY}@127.0.0.1:9/v1?key={CANARY}"}
    path = Path(
        file(tmp_path, backends={"b": entry, "wrong": wrong}, models={"m": {"backend": "b", "name": "demo-chat"}})
    )
    path.write_text(json.dumps(json.loads(path.read_text())))  # on one line
    run("--settings", str(path))
    run("--settings", str(path), "--json")
    shown = "".join(capsys.readouterr())
    assert '+{"profiles": {"b": ' in shown and '"x-account": "(hidden)"' in shown
    assert "http://(hidden)@127.0.0.1:9/v1?(hidden), openai_chat" in shown
    assert CANARY not in shown


@pytest.mark.parametrize("answered", ["", "n", EOFError])
def test_whoever_does_not_say_yes_is_asked_for_nothing_more(
    answered: "str | type[EOFError]",
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def reply(question: str) -> str:
        asked.append(question)
        if answered is EOFError:
            raise EOFError
        return str(answered)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("builtins.input", reply)
    backends = {"paid": {"adapter": "openai_chat", "base_url": "https://host.invalid/v1"}}
    assert run("--settings", file(tmp_path, backends=backends, models={"m": {"backend": "paid"}})) == 2
    shown = capsys.readouterr()
    assert [question.endswith("Go on? [y/N] ") for question in asked] == [True]
    assert (shown.out.strip(), shown.err) == ("", "")


def test_what_a_terminal_shows_while_it_waits_is_gone_before_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert run("--settings", file(tmp_path), "--only", "d221") == 0
    shown = capsys.readouterr()
    assert "chat: D221 answer" in shown.err and shown.err.endswith("\r\033[K")
    assert shown.out.startswith("chat  ok")


def test_no_credential_is_in_what_is_printed_or_saved(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAID_KEY", CANARY)
    header = "CANARY-header-91ab"
    entry = {
        "adapter": "openai_chat",
        "base_url": "demo:chat",
        "api_key_env": "PAID_KEY",
        "headers": {"x-account": header},
    }
    path = file(tmp_path, port, backends={"chat": entry})
    saved = tmp_path / "report.dragoman.jsonl"
    run("--settings", path, "--verbose", "--slow", "--report", str(saved))
    run("--settings", path, "--json")
    shown = "".join(capsys.readouterr()) + saved.read_text()
    assert saved.stat().st_mode & 0o077 == 0
    assert CANARY not in shown
    assert header not in shown
    assert '"kind":"request"' in shown


def test_a_report_is_made_again_by_this_version(tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "report.dragoman.jsonl"
    run("--settings", file(tmp_path, port), "--only", "D22", "--report", str(saved))
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["replay", str(saved)])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "sent: " in said and "outcome: 200, same." in said and "answer: " not in said, "a report has no client"


def test_a_recording_that_exists_is_told_before_anything_is_asked(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "report.dragoman.jsonl"
    saved.write_text("mine")
    assert run("--settings", file(tmp_path, port), "--report", str(saved)) == 2
    shown = capsys.readouterr()
    assert (shown.out, "exists: nothing was asked" in shown.err) == ("", True)
    assert saved.read_text() == "mine"


def test_without_a_request_there_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "report.dragoman.jsonl"
    assert run("--settings", file(tmp_path), "--only", "D105", "--report", str(saved)) == 0
    assert "No request was sent" in capsys.readouterr().err and not saved.exists()


def test_a_recording_that_cannot_be_written_is_told_before_anything_is_asked(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--settings", file(tmp_path, port), "--report", str(tmp_path / "none" / "report.jsonl")) == 2
    shown = capsys.readouterr()
    assert (shown.out, "cannot be written: nothing was asked" in shown.err) == ("", True)


async def test_a_backend_that_repeats_the_credential_cannot_bring_it_into_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAID_KEY", CANARY)
    header = "CANARY-header-91ab"
    saved = tmp_path / "report.dragoman.jsonl"
    heads: list[str] = []

    async def echo(connection: Connection) -> None:
        """Refuses every request with its own head in the error, as some servers do for debugging."""
        heads.append(connection.head.decode())
        words = json.dumps({"error": {"message": f"cannot serve {heads[-1]}"}}).encode()
        await connection.send(answer("400 Bad Request", words))

    async with faulty_backend(echo) as backend:
        entry = {
            "adapter": "openai_chat",
            "base_url": backend.base_url,
            "api_key_env": "PAID_KEY",
            "headers": {"x-account": header},
        }
        path = file(tmp_path, 1, backends={"chat": entry})
        status = await asyncio.to_thread(run, "--settings", path, "--verbose", "--report", str(saved), "--only", "D2")
    shown = "".join(capsys.readouterr()) + saved.read_text()
    assert status == 1
    assert any(CANARY in head and header in head for head in heads)
    assert "cannot serve" in shown
    assert CANARY not in shown
    assert header not in shown
