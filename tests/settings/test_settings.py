"""Tests the content of settings.json, and the error of every mistake."""

from pathlib import Path

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.settings import (
    Settings,
    load_settings,
    override_server,
    parse_settings,
    read_settings,
    secret,
)
from tests.paths import ROOT

SHIPPED = ROOT / "settings.json"
BACKEND: Json = {"adapter": "a:B", "base_url": "http://x"}


def test_the_shipped_file_is_valid_and_names_the_documented_limits() -> None:
    settings = load_settings(SHIPPED)
    policy = settings.policy
    assert (policy.max_tool_results, policy.max_history_messages, policy.disable_warp_tools) == (10, 50, False)
    assert all(entry.base_url.startswith("demo:") for entry in settings.backends.values())
    assert settings.models


def test_nothing_at_all_is_valid() -> None:
    assert parse_settings("{}") == Settings()


MISTAKES: dict[str, str] = {
    "[1]": "settings must be an object",
    "{": "line 1, column 2",
    '{\n "max_tool_results": 10,\n}': "line ",
    '{"max_histroy": 5}': "unknown setting 'max_histroy'; did you mean 'max_history_messages'?",
    '{"server": {"prot": 5}}': "unknown setting 'server.prot'; did you mean 'port'?",
    '{"flatten": {"styl": "json"}}': "unknown setting 'flatten.styl'; did you mean 'style'?",
    '{"flatten": {"labels": {"usr": "x"}}}': "unknown setting 'flatten.labels.usr'; did you mean 'user'?",
    '{"wrapper_tools": {"x": {"name_key": ["a"]}}}': "wrapper_tools",
    '{"max_tool_results": -1}': "max_tool_results must be a whole number of 0 or more",
    '{"max_tool_results": 1.0}': "max_tool_results must be a whole number",
    '{"max_tool_results": "10"}': "max_tool_results",
    '{"max_tool_results": true}': "max_tool_results",
    '{"max_tool_results": 1, "max_tool_results": 2}': "is set twice",
    '{"max_history": 1, "max_history_messages": 2}': "set twice",
    '{"repair": "maybe"}': "repair",
    '{"server": {"port": 70000}}': "server.port",
    '{"server": {"port": "80"}}': "server.port",
    '{"server": {"graceful_shutdown_timeout_s": -1}}': "server.graceful_shutdown_timeout_s",
    '{"server": {"sse_ping_s": 0}}': "server.sse_ping_s",
    '{"limits": {"max_event_mb": NaN}}': "NaN is not a number",
    '{"limits": {"max_event_mb": 1e999}}': "1e999 is not a number",
    '{"log": {"level": "loud"}}': "log.level",
    '{"server": 1}': "server must be an object",
    '{"backends": []}': "backends must be an object",
    '{"backends": {"b": {"adapter": "a:B"}}}': "backends.b.base_url is missing",
    '{"backends": {"b": {"adapter": "a:B", "base_url": "x", "timeouts": {"idl": 1}}}}': "'backends.b.timeouts.idl'",
    '{"backends": {"b": {"adapter": "a:B", "base_url": "x", "refresh": {"token_ulr": "x"}}}}': "'token_url'?",
    '{"backends": {"b": {"adapter": "a:B", "base_url": "x", "refresh": {}}}}': "backends.b.refresh",
    '{"backends": {"b": {"adapter": 1, "base_url": "x"}}}': "backends.b.adapter",
    '{"models": {"m": {}}}': "models.m.backend must name one of the backends",
    '{"models": {"m": {"backend": "b"}}}': "there is no backend 'b'",
    '{"models": {"m": 1}}': "models.m must be an object",
    "[" * 100_000: "nested too deep",
    '{"max_tool_results": ' + "9" * 5000 + "}": "",
}


@pytest.mark.parametrize("text", MISTAKES, ids=[text[:60] for text in MISTAKES])
def test_mistakes_are_named(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_settings(text)
    assert MISTAKES[text] in caught.value.message
    assert "\n" not in caught.value.message


def test_every_part_of_the_policy_can_be_set() -> None:
    policy = read_settings(
        {
            "wrapper_tools": {"run_tool": {"name_keys": ["tool"], "args_keys": ["input"]}},
            "flatten": {"style": "json", "labels": {"user": "Human"}},
            "images": "placeholder",
        }
    ).policy
    assert policy.wrapper_tools["run_tool"].name_keys == ("tool",)
    assert (policy.flatten.labels.user, policy.flatten.labels.assistant) == ("Human", "Assistant")


def test_the_nearest_backend_is_named() -> None:
    with pytest.raises(SettingsError, match="did you mean 'local'"):
        read_settings({"backends": {"local": BACKEND}, "models": {"m": {"backend": "locl"}}})


@pytest.mark.parametrize(
    ("alias", "name"), [("max_history", "max_history_messages"), ("disable_builtin_tools", "disable_warp_tools")]
)
def test_aliases(alias: str, name: str) -> None:
    value = 7 if alias == "max_history" else True
    assert getattr(read_settings({alias: value}).policy, name) == value
    models: Json = {"m": {"backend": "b", alias: value}}
    assert getattr(read_settings({"backends": {"b": BACKEND}, "models": models}).models["m"].policy, name) == value


def test_a_model_overrides_single_keys_of_the_policy() -> None:
    settings = read_settings(
        {
            "max_tool_results": 3,
            "repair": "strict",
            "backends": {"b": BACKEND},
            "models": {"m": {"backend": "b", "max_tool_results": None, "name": "inner"}, "*": {"backend": "b"}},
        }
    )
    route = settings.route("m")
    assert route is not None
    assert (route.name, route.policy) == ("inner", Policy(max_tool_results=None, repair="strict"))
    other = settings.route("anything")
    assert other is not None
    assert (other.name, other.policy.max_tool_results) == (None, 3)
    assert read_settings({}).route("m") is None


def test_the_adapters_own_keys_are_kept_apart() -> None:
    entry: Json = {"adapter": "a:B", "base_url": "http://x", "encoding": "flatten", "timeouts": {"idle": 5}}
    backend = read_settings({"backends": {"b": entry}}).backends["b"]
    assert backend.options == {"encoding": "flatten"}
    assert (backend.timeouts.idle, backend.timeouts.connect) == (5, 2)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "none.json", "there is no such file"), (tmp_path, "cannot be read")):
        with pytest.raises(SettingsError, match=reason):
            load_settings(path)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(binary)
    wrong = tmp_path / "wrong.json"
    wrong.write_text("{,}")
    with pytest.raises(SettingsError, match=r"wrong\.json: line 1"):
        load_settings(wrong)


def test_a_file_that_begins_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(b'\xef\xbb\xbf{"max_tool_results": 4}')
    assert load_settings(path).policy.max_tool_results == 4


def test_the_address_from_outside_wins() -> None:
    settings = override_server(Settings(), "::1", "81")
    assert (settings.server.host, settings.server.port) == ("::1", 81)
    assert override_server(Settings(), None, None) == Settings()
    for port in ("", "x", "-1", "70000", "٣", "1" * 5000):
        with pytest.raises(SettingsError):
            override_server(Settings(), None, port)


def test_secrets_come_from_the_environment() -> None:
    assert secret(None, {}) is None
    assert secret("KEY", {"KEY": " value\n"}) == "value"
    for environ in ({}, {"KEY": " "}):
        with pytest.raises(SettingsError, match="KEY"):
            secret("KEY", environ)


def test_a_key_may_name_a_model_that_fits_a_pattern() -> None:
    backend = {"adapter": "text", "base_url": "http://localhost"}
    settings: dict[str, Json] = {"backends": {"b": {**backend}}, "models": {"claude-*": {"backend": "b"}}}
    assert read_settings({**settings, "keys": {"k": {"models": ["claude-opus"]}}}).route("claude-opus") is not None
    with pytest.raises(SettingsError, match=r"keys\.k\.models: there is no model 'gpt'"):
        read_settings({**settings, "keys": {"k": {"models": ["gpt"]}}})


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"keys": {"*": {"require": ["speed"]}}}, r"keys\.\*\.require\[0\] must be one of 'tools', .*'speed'"),
        ({"models": {"m": {"backend": "b", "require": ["tool"]}}}, r"models\.m\.require\[0\] must be one of 'tools'"),
        ({"models": {"m": {"backend": "b", "require": "tools"}}}, r"models\.m\.require must be a list"),
    ],
)
def test_a_requirement_is_one_of_the_known_words(part: dict[str, Json], said: str) -> None:
    settings: dict[str, Json] = {"backends": {"b": {"adapter": "text", "base_url": "http://localhost"}}}
    model: Json = {"m": {"backend": "b", "require": ["tools", "ids"]}}
    assert read_settings({**settings, "models": model}).models["m"].require == ("tools", "ids")
    with pytest.raises(SettingsError, match=said):
        read_settings({**settings, **part})
