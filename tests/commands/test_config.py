"""`dragoman config check` and `config show`: what they print, and their exit status."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli import main
from gateway.commands.config_check import check
from gateway.commands.config_show import differences
from gateway.core.conversation import Json
from gateway.settings import read_settings
from gateway.settings.flat_values import flat_values
from gateway.testing.gateway import gateway_command, python_process, running_gateway
from tests.certificates import DAY, Authority
from tests.paths import ROOT

BROKEN = """{
  "repiar": "strict",
  "server": {"port": "8000"},
  "backends": {
    "local": {"adapter": "text", "base_url": "ftp://127.0.0.1", "wire": "olama"},
    "paid": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9", "api_key_env": "PAID_KEY"}
  },
  "models": {
    "m": {"backend": "locl"}
  }
}"""

BACKENDS: dict[str, Any] = {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}}  # JSON


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["config", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture
def broken(tmp_path: Path) -> str:
    path = tmp_path / "settings.json"
    path.write_text(BROKEN)
    return str(path)


def sound(tmp_path: Path, **more: Any) -> str:
    """A file without a fault, and with what `more` says. (Any: JSON.)"""
    path = tmp_path / "settings.json"
    backend = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9"}
    path.write_text(json.dumps({"backends": {"b": backend}, "models": {"m": {"backend": "b"}}, **more}, indent=1))
    return str(path)


def test_every_error_is_reported_with_its_line(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", broken) == 1
    lines = capsys.readouterr().out.replace(broken, "FILE").splitlines()
    assert [line.split(";")[0] for line in lines if "error:" in line] == [
        "FILE:2: error: unknown setting 'repiar'",
        "FILE:3: error: server.port must be a whole number",
        "FILE:5: error: backends.local.base_url must begin with http:// or https:// and name a host",
        "FILE:5: error: backends.local: there is no wire 'olama'",
        "FILE:9: error: models.m.backend: there is no backend 'locl'",
    ]
    assert lines[-1] == "FILE: 5 errors, 2 warnings"


def test_the_report_as_json_has_path_line_and_nearest_key(broken: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", broken, "--json") == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["file"], len(report["errors"])) == (1, broken, 5)
    assert report["errors"][0] == {
        "message": "unknown setting 'repiar'; did you mean 'repair'?",
        "path": "repiar",
        "line": 2,
        "nearest": "repair",
    }


def test_a_missing_variable_is_a_warning_and_a_set_one_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9", "api_key_env": "PAID_KEY"}
    path = sound(tmp_path, backends={"b": backend})
    monkeypatch.delenv("PAID_KEY", raising=False)
    assert (run("check", path), run("check", path, "--strict")) == (0, 1)
    assert "warning: backends.b.api_key_env: the environment variable PAID_KEY is not set" in capsys.readouterr().out
    monkeypatch.setenv("PAID_KEY", "a-secret-value")
    assert run("check", path, "--strict", "--json") == 0
    assert "a-secret-value" not in capsys.readouterr().out


def test_a_key_that_does_not_fit_its_scheme_is_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = {
        "adapter": "openai_chat",
        "base_url": "http://127.0.0.1:9",
        "api_key_env": "PAID_KEY",
        "api_key_scheme": "Basic",
    }
    path = sound(tmp_path, backends={"b": backend})
    monkeypatch.setenv("PAID_KEY", "a-secret-value")
    assert (run("check", path), run("check", path, "--strict")) == (0, 1)
    said = capsys.readouterr().out
    assert "backends.b.api_key_env: the environment variable PAID_KEY cannot be sent as a header: the scheme" in said
    assert "a-secret-value" not in said
    monkeypatch.setenv("PAID_KEY", "user:a-secret-value")
    assert run("check", path, "--strict") == 0


def secure(**tls: str) -> dict[str, Any]:
    return {"b": {"adapter": "openai_chat", "base_url": "https://127.0.0.1:9", "tls": tls}}


def test_every_wrong_file_of_tls_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority = Authority()
    certificate, key = authority.sign("one").write(tmp_path, "one")
    _, other = authority.sign("two").write(tmp_path, "two")
    path = sound(tmp_path, backends=secure(ca_file="none.pem", cert_file=certificate, key_file=other))
    assert run("check", path) == 1
    said = capsys.readouterr().out
    assert "error: backends.b.tls.ca_file: 'none.pem' cannot be read: No such file or directory" in said
    assert f"error: backends.b.tls.key_file: the key in {other!r} does not fit the certificate in" in said
    missing = {"ca_file": "a.pem", "cert_file": "b.pem", "key_file": "c.pem"}
    assert run("check", sound(tmp_path, backends=secure(**missing))) == 1
    said = capsys.readouterr().out
    for setting, file in missing.items():
        assert said.count(f"backends.b.tls.{setting}: {file!r} cannot be read: No such file or directory") == 1
    assert "3 errors" in said
    assert run("check", "--strict", sound(tmp_path, backends=secure(cert_file=certificate, key_file=key))) == 0
    http = {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9", "tls": {"cert_file": certificate}}}
    assert run("check", sound(tmp_path, backends=http)) == 1
    assert capsys.readouterr().out.count("backends.b.tls: base_url must begin with https://") == 1


def test_a_certificate_outside_of_its_time_is_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    authority = Authority()
    past, past_key = authority.sign("past", until=-DAY, since=-9 * DAY).write(tmp_path, "past")
    future, future_key = authority.sign("future", until=30_000 * DAY, since=DAY).write(tmp_path, "future")
    sound_one, key = authority.sign("sound", until=30_000 * DAY).write(tmp_path, "sound")
    yesterday, tomorrow = ((datetime.now(UTC) + days).strftime("%Y-%m-%d") for days in (-DAY, DAY))
    chain = tmp_path / "chain.pem"
    chain.write_bytes(Path(sound_one).read_bytes() + Path(past).read_bytes())
    for files, warning in (
        (
            secure(cert_file=past, key_file=past_key),
            f"tls.cert_file: a certificate in {past!r} has expired on {yesterday}",
        ),
        (secure(cert_file=str(chain), key_file=key), f"in {str(chain)!r} has expired on {yesterday}"),
        (secure(ca_file=past), f"backends.b.tls.ca_file: a certificate in {past!r} has expired on {yesterday}"),
        (secure(cert_file=future, key_file=future_key), f"in {future!r} is not valid before {tomorrow}"),
    ):
        path = sound(tmp_path, backends=files)
        assert (run("check", path), run("check", path, "--strict")) == (0, 1)
        assert warning in capsys.readouterr().out
    # A time beyond 2049 is written in another form (RFC 5280, section 4.1.2.5).
    assert run("check", "--strict", sound(tmp_path, backends=secure(cert_file=sound_one, key_file=key))) == 0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("more", "warning"),
    [
        ({"models": {}}, "backends.b: no model uses this backend"),
        (
            {"backends": {"b": {"adapter": "adapters.openai_chat:OpenAIChatAdapter", "base_url": "http://h.example"}}},
            "backends.b.adapter: adapters.openai_chat:OpenAIChatAdapter is adapters.openai_chat.backend:OpenAI",
        ),
        ({"profiles": {"openai": {}}}, "profiles.openai: it replaces the built-in profile of this name"),
        ({"state": {"password_env": "NOT_SET_HERE"}}, "the environment variable NOT_SET_HERE is not set"),
    ],
)
def test_what_is_suspicious_is_a_warning(
    more: dict[str, Any], warning: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound(tmp_path, **more)
    assert (run("check", path), run("check", "--strict", path)) == (0, 1)
    assert warning in capsys.readouterr().out


@pytest.mark.parametrize(("adapter", "status"), [("openai_chat", 0), ("text", 1)])
def test_a_limit_is_suspicious_only_where_it_applies(adapter: str, status: int, tmp_path: Path) -> None:
    path = sound(
        tmp_path,
        max_history_messages=40,
        backends={"b": {"adapter": adapter, "base_url": "http://127.0.0.1:9"}},
        models={"m": {"backend": "b", "context_length": 32000, "compress": {"enabled": True}}},
    )
    assert run("check", path, "--strict") == status


@pytest.mark.parametrize("key", ["sk-CANARY-0123456789abcdef", "gsk_" + "CANARYcanary" * 4])
def test_a_key_in_the_place_of_its_variable_is_not_shown(
    key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backend = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9", "api_key_env": key}
    assert run("check", "--strict", sound(tmp_path, backends={"b": backend})) == 1
    shown = capsys.readouterr().out
    assert "backends.b.api_key_env" in shown and "CANARY" not in shown


def test_every_fault_of_an_entry_is_reported_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refresh = {"token_url": "issuer/token", "refresh_token_env": "R"}
    backends = {
        "a": {
            "adapter": "openai-chat",
            "base_url": "http://127.0.0.1:9",
            "api_key": "x",
            "path": 5,
            "refresh": refresh,
        },
        "b": {"adapter": "gemini", "baseUrl": "http://127.0.0.1:9", "unheard": 1, "thinking": "hard"},
        "c": {
            "adapter": "warp",
            "base_url": "http://h",
            "prompted": ["tool_choise"],
            "rollback": "x",
            "reasoning": "y",
        },
    }
    path = sound(tmp_path, backends=backends, models={name: {"backend": name} for name in backends})
    assert run("check", path) == 1
    found = [line.partition("error: ")[2].partition(";")[0] for line in capsys.readouterr().out.splitlines()[:-1]]
    assert sorted(found) == [
        "backends.a.adapter: there is no adapter 'openai-chat' (a class is written module:Class)",
        "backends.a.path must be text",
        "backends.a.refresh.token_url must begin with http:// or https:// and name a host",
        "backends.b.thinking must be one of 'level', 'budget'",
        "backends.c.prompted[0] must be one of 'tool_choice', 'response_format'",
        "backends.c.reasoning must be true or false",
        "backends.c.rollback must be one of 'buffer', 'stream'",
        "unknown setting 'backends.a.api_key'",
        "unknown setting 'backends.b.baseUrl'",
        "unknown setting 'backends.b.unheard'",
    ]


def test_keys_that_cannot_be_read_are_an_error_as_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound(tmp_path, server={"api_keys_file": str(tmp_path / "none")})
    assert run("check", path) == 1
    assert "server.api_keys_file" in capsys.readouterr().out


def test_the_file_of_the_project_has_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    path = ROOT / "settings.json"
    assert run("check", "--strict", str(path)) == 0
    assert capsys.readouterr().out == f"{path}: 0 errors, 0 warnings\n"


@pytest.mark.parametrize("text", ["{", '{"server": {}, "server": {}}', None])
def test_a_file_that_is_no_json_is_told_as_by_the_start(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "settings.json"
    if text is not None:
        path.write_text(text)
    assert run("check", str(path)) == 2
    assert f"dragoman: {path}" in capsys.readouterr().err


def test_a_value_is_shown_with_its_origin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_WORKERS", "3")
    path = sound(tmp_path, server={"port": 9000})
    assert run("show", "server.port", "--settings", path, "--port", "8010") == 0
    assert capsys.readouterr().out.split() == [
        *["server.port", "8010", "--port", "over", "9000", "(settings.json:14),", "8000", "(default)"]
    ]
    assert run("show", "server", "--settings", path, "--json") == 0
    values = {one["path"]: one for one in json.loads(capsys.readouterr().out)}
    assert (values["server.workers"]["value"], values["server.workers"]["origin"]) == (3, "DRAGOMAN_WORKERS")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["server.prot"], "there is no setting 'server.prot'; did you mean 'server.port'?"),
        (["--port", "70000"], "server.port"),
    ],
)
def test_what_cannot_be_shown_is_an_error(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", *arguments, "--settings", sound(tmp_path)) == 2
    assert message in capsys.readouterr().err


def settings(**more: Any) -> dict[str, Any]:
    """Settings with one model. (Any: JSON.)"""
    base = {"server": {"api_keys_env": None}, "log": {"file": None}}
    return {**base, "backends": BACKENDS, "models": {"m": {"backend": "b"}}, **more}


async def shown(folder: Path, *arguments: str, **environ: str) -> tuple[int | None, str]:
    """The exit status and what is printed."""
    command = ("-m", "gateway", "config", "show", "--running", *arguments)
    async with python_process(folder, *command, environ=environ) as process:
        out, err = await asyncio.wait_for(process.communicate(), 40)
    return process.returncode, (out + err).decode()


async def test_what_waits_for_a_restart_is_told_and_what_was_reloaded_is_not(tmp_path: Path) -> None:
    async with running_gateway(settings()) as gateway:
        changed = settings(repair="strict", limits={"max_response_mb": 7})
        await gateway.app.gateway_state.change(read_settings(changed))
        found = (await gateway.client.get("/inspect/api/running-settings")).json()
    file = read_settings(changed).on(BACKENDS.keys())
    different = {one.path: one for one in differences(found, flat_values(file))}
    assert set(different) == {"limits.max_response_mb", "server.port"}
    waits = different["limits.max_response_mb"]
    assert (waits.running, waits.file, waits.reason) == (64, 7, "waits for a restart")


@pytest.mark.parametrize(("reload", "reason"), [(True, "the log of the gateway says why"), (False, "send SIGHUP")])
def test_what_was_not_read_has_its_reason(reload: bool, reason: str) -> None:
    found = {"values": {"repair": "off", "keys": {}}, "waiting": ["limits"], "reloads": reload}
    (one,) = differences(found, {"repair": "strict", "keys": {}})
    assert one.text().startswith('repair  "off"  the file: "strict"  not read') and one.text().endswith(reason)


@pytest.mark.full
async def test_the_command_asks_the_gateway_that_runs(tmp_path: Path) -> None:
    async with gateway_command(tmp_path, settings(), "serve", "--port", "0") as gateway:
        await gateway.wait_ready()
        assert await shown(tmp_path, "server", "--url", gateway.base_url) == (
            1,
            "server.port  0  the file: 8000  set by an option or a variable of the gateway, or waits for a restart\n",
        )
        status, said = await shown(tmp_path, "models", "--url", gateway.base_url)
        assert (status, said) == (0, f"{gateway.base_url} uses the values of settings.json.\n")
        status, said = await shown(tmp_path, "modles", "--url", gateway.base_url)
        assert (status, "there is no setting 'modles'" in said) == (2, True)
        (tmp_path / "other.json").write_text(json.dumps(settings(repair="off")))
        status, said = await shown(tmp_path, "repair", "--json", "--settings", "other.json", "--url", gateway.base_url)
        assert (status, json.loads(said)[0]["running"], json.loads(said)[0]["file"]) == (1, "repair", "off")


async def test_only_the_operator_may_ask(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings()))
    async with gateway_command(tmp_path, settings(), "serve", "--port", "0", DRAGOMAN_ADMIN_KEY="k" * 20) as gateway:
        await gateway.wait_ready()
        status, said = await shown(tmp_path, "--url", gateway.base_url)
        assert (status, "admin key is required" in said) == (2, True)
        status, said = await shown(tmp_path, "models", "--url", gateway.base_url, DRAGOMAN_ADMIN_KEY="k" * 20)
        assert status == 0, said


async def test_no_gateway_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps(settings()))
    status, said = await shown(tmp_path, "--url", "http://127.0.0.1:9")
    assert status == 2 and said.startswith("dragoman: http://127.0.0.1:9") and "no gateway answers there" in said


@pytest.mark.parametrize("key", ["", "a" * 64])
def test_machines_that_share_a_store_need_a_key_for_what_clients_keep(key: str) -> None:
    raw: dict[str, Json] = {"state": {"store": "valkey://127.0.0.1:1", "encrypt": False}}
    report = check("settings.json", json.dumps(raw), raw, {"DRAGOMAN_STATE_KEY": key})
    told = [finding.message for finding in report.warnings if "DRAGOMAN_STATE_KEY" in finding.message]
    assert len(told) == (0 if key else 1) and all("each machine seals" in line for line in told)


def state_key_findings(raw: dict[str, Json], environ: dict[str, str]) -> tuple[list[str], list[str]]:
    """Returns the errors, and the warnings of the key that seals what clients keep."""
    report = check("settings.json", json.dumps(raw), raw, environ)
    warnings = [finding.message for finding in report.warnings if "DRAGOMAN_STATE_KEY" in finding.message]
    return [finding.message for finding in report.errors], warnings


DEPLOYED: Final[list[dict[str, Json]]] = [{"server": {"workers": 2}}, {"server": {"host": "0.0.0.0"}}]


@pytest.mark.parametrize("raw", DEPLOYED)
def test_a_deployment_needs_a_key_or_a_folder_that_lasts(raw: dict[str, Json], tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "DRAGOMAN_API_KEYS": "a:secret-of-a"}
    errors, warnings = state_key_findings(raw, home)
    assert not errors and len(warnings) == 1 and "state.folder" in warnings[0] and str(tmp_path) in warnings[0]
    assert not list(tmp_path.iterdir())
    for given in (
        {**home, "DRAGOMAN_STATE_KEY": "a" * 64},
        {**home, "STATE_DIRECTORY": str(tmp_path / "lasts")},
    ):
        assert state_key_findings(raw, given) == ([], [])
    named: dict[str, Json] = {**raw, "state": {"folder": str(tmp_path / "lasts")}}
    assert state_key_findings(named, home) == ([], [])


def test_one_process_on_this_machine_needs_neither(tmp_path: Path) -> None:
    assert state_key_findings({}, {"HOME": str(tmp_path)}) == ([], [])


def test_a_folder_in_which_no_key_can_be_kept_is_a_warning_or_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    place = str(tmp_path / "file" / "state")
    errors, warnings = state_key_findings({}, {"STATE_DIRECTORY": place})
    assert not errors and len(warnings) == 1 and place in warnings[0] and "restart" in warnings[0]
    errors, warnings = state_key_findings({"state": {"folder": place}}, {})
    assert len(errors) == 1 and "state.folder" in errors[0] and place in errors[0] and not warnings


def test_a_key_that_the_start_refuses_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state.key").write_text("cut off")
    (tmp_path / "state.key").chmod(0o600)
    errors, warnings = state_key_findings({}, {"STATE_DIRECTORY": str(tmp_path)})
    assert len(errors) == 1 and "64 hexadecimal digits" in errors[0] and not warnings
    errors, _ = state_key_findings({}, {"DRAGOMAN_STATE_KEY": "short"})
    assert len(errors) == 1 and "32 characters" in errors[0]


HERE: Final = "is not set where this command runs"
PUBLIC: Final[dict[str, Json]] = {"server": {"host": "0.0.0.0"}}
SEALED: Final[dict[str, Json]] = {"state": {"store": "sqlite:state.db", "encrypt": True}}
OPERATED: Final[dict[str, Json]] = {"inspector": {"enabled": "on"}}


@pytest.mark.full
@pytest.mark.parametrize(
    ("raw", "variable", "words"),
    [
        (PUBLIC, "DRAGOMAN_API_KEYS", "serving 0.0.0.0 without client keys would accept every client"),
        (SEALED, "DRAGOMAN_STATE_KEY", "state.store keeps contents where others may read them"),
        (OPERATED, "DRAGOMAN_ADMIN_KEY", "inspector.enabled is on, which needs an admin key"),
    ],
)
async def test_what_only_the_environment_has_is_refused_as_by_serve_and_says_whose_it_was(
    raw: dict[str, Json], variable: str, words: str, tmp_path: Path
) -> None:
    text = json.dumps(settings(**raw) if raw is not PUBLIC else {**settings(), "server": {"host": "0.0.0.0"}})
    (tmp_path / "settings.json").write_text(text)
    async with python_process(tmp_path, "-m", "gateway", "serve", "--port", "0", environ={}) as process:
        out, err = await asyncio.wait_for(process.communicate(), 40)
    assert process.returncode == 2 and words in err.decode(), out
    raw = json.loads(text)
    kept = {"STATE_DIRECTORY": str(tmp_path / "state")}
    (error,) = check("settings.json", text, raw, kept).errors
    assert words in error.message and f"{variable} {HERE}" in error.message
    given = check("settings.json", text, raw, {**kept, variable: "a" * 64})
    assert given.errors == ()


def test_a_gateway_that_shall_serve_without_keys_is_checked_as_it_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "lasts"))
    path = sound(tmp_path, server={"host": "0.0.0.0", "api_keys_env": None})
    assert run("check", path) == 1
    said = capsys.readouterr().out
    # There is no variable that the gateway could have.
    assert "set DRAGOMAN_API_KEYS or server.api_keys_file" in said and HERE not in said
    assert run("check", "--insecure-no-key", "--strict", path) == 0


def test_a_variable_that_is_not_set_here_may_be_set_for_the_gateway(tmp_path: Path) -> None:
    raw = json.loads(Path(sound(tmp_path, backends={"b": {**BACKENDS["b"], "api_key_env": "PAID_KEY"}})).read_text())
    (warning,) = check("settings.json", "", raw, {"STATE_DIRECTORY": str(tmp_path)}).warnings
    assert warning.message.endswith(f"the environment variable PAID_KEY {HERE}")


@pytest.mark.parametrize(
    ("adapter", "url", "meant"),
    [
        ("openai_chat", "http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1"),
        ("openai_chat", "https://gw.internal/openai/chat/completions/", "https://gw.internal/openai"),
        ("openai_responses", "http://127.0.0.1:9/v1/responses", "http://127.0.0.1:9/v1"),
        ("anthropic_messages", "http://127.0.0.1:9/v1/messages", "http://127.0.0.1:9/v1"),
        ("openai_chat", "http://127.0.0.1:9/v1", None),
        ("openai_chat", "http://127.0.0.1:9/my-messages", None),
    ],
)
def test_the_path_of_a_request_in_a_base_url_is_a_warning(
    adapter: str, url: str, meant: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound(tmp_path, backends={"b": {"adapter": adapter, "base_url": url}})
    assert run("check", "--strict", path) == (0 if meant is None else 1)
    said = capsys.readouterr().out
    assert (
        meant is None
        or f"warning: backends.b.base_url: the adapter adds the path of a request: write {meant}\n" in said
    )


@pytest.mark.parametrize(
    ("entry", "place"),
    [
        ({"base_url": "https://host/v1"}, "base_url"),
        ({"base_url": "https://example.com/v1"}, "base_url"),
        ({"base_url": "https://models.example/v1"}, "base_url"),
        ({"base_url": "https://RESOURCE.openai.azure.com/openai/v1"}, "base_url"),
        ({"base_url": "https://your-resource.openai.azure.com/openai/v1"}, "base_url"),
        ({"base_url": "https://gw.internal/<account>/v1"}, "base_url"),
        ({"base_url": "https://gw.internal/{account}/v1"}, "base_url"),
        ({"headers": {"x-project": "YOUR_PROJECT"}}, "headers.x-project"),
        ({"headers": {"x-project": "${PROJECT}"}}, "headers.x-project"),
        ({"headers": {"x-project": "project-7", "x-title": "Yours truly"}}, None),
        ({"base_url": "https://hosted.internal/v1"}, None),
        ({"base_url": "https://api.x.ai/v1"}, None),
    ],
)
def test_what_stands_for_a_value_of_ones_own_is_a_warning(
    entry: dict[str, Json], place: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sound(tmp_path, backends={"b": {**BACKENDS["b"], "profile": "openai", **entry}})
    assert run("check", "--strict", path) == (0 if place is None else 1)
    said = capsys.readouterr().out
    assert place is None or f"warning: backends.b.{place} looks like a placeholder: put your own value there" in said


@pytest.mark.parametrize("value", ["YOUR_API_KEY", "sk-...", "<key>", "changeme", "sk-your-key-here"])
def test_a_key_that_stands_for_one_is_a_warning_and_is_not_shown(value: str, tmp_path: Path) -> None:
    raw = json.loads(Path(sound(tmp_path, backends={"b": {**BACKENDS["b"], "api_key_env": "PAID_KEY"}})).read_text())
    environ = {"PAID_KEY": value, "STATE_DIRECTORY": str(tmp_path)}
    (warning,) = check("settings.json", "", raw, environ).warnings
    assert (
        warning.message == "backends.b.api_key_env: the value of PAID_KEY looks like a placeholder: put your own there"
    )
    assert not check("settings.json", "", raw, {**environ, "PAID_KEY": "sk-proj-0123456789abcdef"}).warnings


def test_a_place_where_nothing_can_be_written_is_a_warning_or_what_the_start_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "lasts"))
    (tmp_path / "file").write_text("no folder")
    below = str(tmp_path / "file" / "deep")
    refresh = {"token_url": "http://127.0.0.1:9/token", "refresh_token_env": "R", "store": f"{below}/token.json"}
    monkeypatch.setenv("R", "token-0123456789")
    path = sound(
        tmp_path,
        log={"file": f"{below}/gateway.log"},
        state={"store": f"sqlite:{below}/state.db"},
        backends={"b": {**BACKENDS["b"], "refresh": refresh}},
    )
    run("check", path)
    said = capsys.readouterr().out
    for place in ("log.file", "state.store", "backends.b.refresh.store"):
        assert f"{place}: {below}" in said and "is no folder" in said, (place, said)
    recorded = sound(tmp_path, inspector={"record": below}, log={"file": None})
    assert run("check", recorded) == 1
    assert (
        f"error: inspector.record: {below} cannot be made: {tmp_path / 'file'} is no folder" in capsys.readouterr().out
    )
    assert not (tmp_path / "lasts").exists()
