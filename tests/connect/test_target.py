"""What the settings say of a gateway to its clients."""

import json
import shlex
import tomllib

import pytest

from gateway.connect.client import client_names, load_client
from gateway.connect.config_file import text_of
from gateway.connect.instructions import variables
from gateway.connect.target import Target, read_address, settings_target
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import Settings, read_settings

BACKENDS: Json = {"b": {"adapter": "openai_chat", "base_url": "http://host"}}


def settings(*models: str, **server: object) -> Settings:
    entries = {name: {"backend": "b"} for name in models}
    return read_settings({"backends": BACKENDS, "models": entries, "server": server})  # type: ignore[dict-item]


def test_the_first_whole_name_is_the_model_and_all_are_listed() -> None:
    target = settings_target(settings("gpt-*", "a", "b", "*"), None, None, {})
    assert (target.url, target.model, target.models) == ("http://127.0.0.1:8000", "a", ("a", "b"))


def test_a_chosen_model_comes_first_and_may_be_one_of_a_pattern() -> None:
    target = settings_target(settings("a", "gpt-*"), "gpt-x", None, {})
    assert (target.model, target.models) == ("gpt-x", ("gpt-x", "a"))


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:9"), ("::", "http://[::1]:9"), ("[::1]", "http://[::1]:9"), ("gw", "http://gw:9")],
)
def test_the_address_is_one_that_this_machine_reaches(host: str, url: str) -> None:
    assert settings_target(settings("a", host=host, port=9), None, None, {}).url == url


@pytest.mark.parametrize(
    ("environ", "file", "word"),
    [({}, None, "unused"), ({"DRAGOMAN_API_KEYS": "s3cret,b"}, None, '"${DRAGOMAN_API_KEYS%%,*}"'), ({}, "f", "KEY")],
)
def test_a_key_is_named_and_never_shown(environ: dict[str, str], file: str | None, word: str) -> None:
    target = settings_target(settings("a", api_keys_file=file), None, None, environ)
    assert target.key == word
    assert variables(load_client("openai"), target).endswith(f"OPENAI_API_KEY={word}")


@pytest.mark.parametrize(
    ("model", "words"),
    [("agnet", "there is no model 'agnet'; did you mean 'agent'?"), ("a\nb", "cannot hold")],
)
def test_a_model_that_cannot_be_is_refused(model: str, words: str) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_target(settings("agent", "a\nb"), model, None, {})
    assert words in refused.value.message


def test_settings_without_a_whole_name_need_a_model() -> None:
    with pytest.raises(SettingsError, match="choose one with --model"):
        settings_target(settings("*"), None, None, {})
    with pytest.raises(SettingsError, match="dragoman init"):
        settings_target(Settings(), None, None, {}, known=False)
    assert settings_target(Settings(), "any", "http://gw", {}, known=False).models == ("any",)


@pytest.mark.parametrize(
    "url", ["https://gw.example", "https://gw.example/", "https://gw.example/v1", "https://gw.example/v1/"]
)
def test_an_address_is_taken_with_and_without_the_version(url: str) -> None:
    assert read_address(url) == "https://gw.example"


@pytest.mark.parametrize(
    "url",
    [
        "gw:8000",
        "ftp://gw",
        "http://",
        "http://gw:99999",
        "http://u:p@gw",
        "http://gw?q=1",
        "http://g'w",
        "http://[x]",
        "",
    ],
)
def test_text_that_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="is no address"):
        read_address(url)


@pytest.mark.parametrize("name", client_names())
def test_a_name_that_a_shell_takes_apart_enters_no_command(name: str) -> None:
    target = Target("http://127.0.0.1:8000", "a'; rm -rf $HOME #", ("a'; rm -rf $HOME #",))
    filled = target.fill_commands(load_client(name).commands)
    assert "rm" not in [word for line in filled.splitlines() for word in shlex.split(line)]


@pytest.mark.parametrize(
    ("length", "output"), [(200_000, 32_000), (128_000, 32_000), (60_000, 15_000), (8_192, 2_048), (2, 1)]
)
def test_a_known_window_is_passed_on(length: int, output: int) -> None:
    """Claude Code counts a window of a million tokens for a name that it does not know, and an answer of 32,000: with
    these two variables it compacts in time. Codex counts 272,000."""
    entries: dict[str, Json] = {"a": {"backend": "b", "context_length": length}, "other": {"backend": "b"}}
    target = settings_target(read_settings({"backends": BACKENDS, "models": entries}), None, None, {})
    (claude,), (codex,) = load_client("claude-code").files, load_client("codex").files
    env = json.loads(text_of(claude, target))["env"]
    assert env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] == str(length)
    assert env["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == str(output)
    assert tomllib.loads(text_of(codex, target))["model_context_window"] == length


def test_a_known_length_of_an_answer_is_kept_free() -> None:
    facts: Json = {"max_output": 4096}
    entries: dict[str, Json] = {"a": {"backend": "b", "context_length": 200_000, "facts": facts}}
    target = settings_target(read_settings({"backends": BACKENDS, "models": entries}), None, None, {})
    (claude,) = load_client("claude-code").files
    assert json.loads(text_of(claude, target))["env"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "4096"


def test_codex_has_a_command_for_its_key_so_that_it_asks_for_the_models() -> None:
    """Codex 0.169 asks a provider with `env_key` for no list, and refuses both together."""
    target = settings_target(read_settings({"backends": BACKENDS, "models": {"a": {"backend": "b"}}}), None, None, {})
    (codex,) = load_client("codex").files
    provider = tomllib.loads(text_of(codex, target))["model_providers"]["dragoman"]
    assert provider["auth"] == {"command": "printenv", "args": ["DRAGOMAN_KEY"]} and "env_key" not in provider


def test_a_window_that_is_not_known_is_not_written() -> None:
    entries: dict[str, Json] = {"a": {"backend": "b"}, "b": {"backend": "b", "context_length": 9}}
    target = settings_target(read_settings({"backends": BACKENDS, "models": entries}), None, None, {})
    for name in ("claude-code", "codex"):
        (file,) = load_client(name).files
        text = text_of(file, target)
        assert "CONTEXT_TOKENS" not in text and "OUTPUT_TOKENS" not in text and "context_window" not in text


def test_the_window_of_a_pattern_is_that_of_its_models() -> None:
    entries: dict[str, Json] = {"gpt-*": {"backend": "b", "context_length": 400_000}}
    target = settings_target(read_settings({"backends": BACKENDS, "models": entries}), "gpt-x", None, {})
    (codex,) = load_client("codex").files
    assert tomllib.loads(text_of(codex, target))["model_context_window"] == 400_000
