"""Tests the origin of every effective setting, and that nothing secret is shown."""

import json
from typing import Any, Final

import msgspec
import pytest

from gateway.core.policy import Policy
from gateway.settings import parse_settings
from gateway.settings.flat_values import flat_values
from gateway.settings.origins import EffectiveValue, Origin, OriginalFile, effective_values
from tests.paths import ROOT

TEXT: Final = """{
  "max_tool_results": 10,
  "max_history": 40,
  "flatten": {"style": "json", "labels": {"user": "Human"}},
  "server": {
    "port": 9000
  },
  "state": {"store": "valkey://user:hunter2@cache:6379/0"},
  "keys": {"k": {"requests_per_minute": 5}},
  "backends": {
    "local": {"adapter": "text", "base_url": "http://host", "profile": "openai", "max_tool_results": 7,
      "headers": {"x-key": "hunter2"}},
    "native": {"adapter": "openai_chat", "base_url": "http://host", "timeouts": {"idle": 5},
      "refresh": {"token_url": "https://issuer/token?key=hunter2", "refresh_token_env": "R"}}
  },
  "models": {
    "qwen": {"backend": "local",
      "max_tool_results": 5},
    "a.b": {"backend": "native", "context_length": 1000, "flatten": {"style": "fenced"},
      "compress": {"trigger": 0.7}},
    "long": {"backend": "local", "context_length": 1000, "compress": {"enabled": true}}
  }
}"""


def shown(**overrides: Origin) -> dict[str, EffectiveValue]:
    file = OriginalFile("settings.json", TEXT, json.loads(TEXT))
    outside = {path.replace("__", "."): origin for path, origin in overrides.items()}
    return {one.path: one for one in effective_values(file, parse_settings(TEXT), outside, frozenset({"native"}))}


VALUES: Final = shown()


@pytest.mark.parametrize(
    ("path", "value", "origin"),
    [
        ("max_tool_results", 10, "settings.json:2"),
        ("max_history_messages", 40, "settings.json:3 (max_history)"),
        ("trim_step", 10, "default"),
        ("flatten.labels.user", "Human", "settings.json:4"),
        ("flatten.labels.system", "System", "default"),
        ("keys.k.requests_per_minute", 5, "settings.json:9"),
        ("backends.native.timeouts.idle", 5, "settings.json:13"),
        ("backends.native.timeouts.total", 600, "default"),
        ("models.qwen.profile", "openai", "settings.json:11"),
        ("models.qwen.name", "qwen", "default"),
        ("models.qwen.flatten.style", "json", "settings.json:4"),
        ("models.a.b.max_tool_results", None, "native backend"),
        ("models.a.b.flatten.style", "fenced", "settings.json:19"),
        ("models.a.b.flatten.labels.user", "User", "default"),
        ("models.a.b.compress.trigger", 0.7, "settings.json:20"),
    ],
)
def test_a_value_has_its_origin(path: str, value: Any, origin: str) -> None:
    found = VALUES[path]
    assert (found.value, found.origin) == (value, origin)


def test_what_is_overridden_is_listed_from_the_next_one_on() -> None:
    assert VALUES["models.qwen.max_tool_results"] == EffectiveValue(
        "models.qwen.max_tool_results",
        5,
        "settings.json:18",
        (Origin(7, "settings.json:11"), Origin(10, "settings.json:2"), Origin(10, "default")),
    )
    found = shown(server__port=Origin(8010, "--port"))["server.port"]
    assert found == EffectiveValue(
        "server.port", 8010, "--port", (Origin(9000, "settings.json:6"), Origin(8000, "default"))
    )


def test_the_policy_of_every_model_is_the_one_that_is_used() -> None:
    settings = parse_settings(TEXT)
    for name, entry in settings.models.items():
        policy = entry.on(entry.backend == "native").policy
        used = json.loads(msgspec.json.encode(policy))
        for key in Policy.__struct_fields__:
            if key != "profile" and f"models.{name}.{key}" in VALUES:
                assert VALUES[f"models.{name}.{key}"].value == used[key], (name, key)
        assert VALUES[f"models.{name}.flatten.style"].value == policy.flatten.style
        assert VALUES[f"models.{name}.flatten.labels.user"].value == policy.flatten.labels.user


OWN_PROFILES: Final = """{
  "tracing": {"sample": 0.5},
  "profiles": {
    "openai": {"base": "openai", "max_tools": 7, "call_id": {"characters": "a-z0-9"}},
    "mine": {"base": "openai", "system": "first"}
  },
  "backends": {"b": {"adapter": "openai_chat", "base_url": "http://h",
    "refresh": {"token_url": "https://h", "refresh_token_env": "R"}, "headers": {"x-a": "1"}}},
  "models": {"*": {"backend": "b", "profile": "mine", "price": {"input": 1, "output": 2},
    "facts": {"images": false, "efforts": []}, "longer": "n", "candidates": ["n", {"model": "o", "weight": 2}],
    "wrapper_tools": {"w": {}}, "keeper": {"enabled": true}}, "n": {"backend": "b"}, "o": {"backend": "b"}}
}"""


@pytest.mark.parametrize(
    "text",
    [TEXT, OWN_PROFILES, "{}", *(path.read_text() for path in (ROOT / "settings.json", ROOT / "deploy/settings.json"))],
)
def test_the_values_with_an_origin_are_the_values_in_use(text: str) -> None:
    settings = parse_settings(text)
    native = frozenset(name for name, entry in settings.backends.items() if entry.adapter != "text")
    found = effective_values(OriginalFile("settings.json", text, json.loads(text)), settings, {}, native)
    assert {one.path: one.value for one in found} == flat_values(settings.on(native))


def test_what_a_profile_does_not_set_comes_from_its_base() -> None:
    file = OriginalFile("settings.json", OWN_PROFILES, json.loads(OWN_PROFILES))
    found = {one.path: one for one in effective_values(file, parse_settings(OWN_PROFILES), {}, frozenset())}
    system = EffectiveValue("profiles.mine.system", "first", "settings.json:5", (Origin("anywhere", "profile openai"),))
    assert found["profiles.mine.system"] == system
    assert (found["profiles.mine.max_tools"].value, found["profiles.mine.max_tools"].origin) == (7, "profile openai")
    own = found["profiles.openai.max_tools"]
    assert (own.value, own.origin, own.over) == (7, "settings.json:4", (Origin(128, "profile openai"),))
    assert (found["profiles.openai.call_id.longest"].value, found["profiles.mine.call_id.longest"].value) == (
        None,
        None,
    )


def test_nothing_secret_is_shown() -> None:
    text = msgspec.json.encode([*VALUES.values()]).decode()
    assert "hunter2" not in text
    assert VALUES["backends.local.headers"].value == {"x-key": "(hidden)"}
    assert VALUES["state.store"].value == "valkey://(hidden)@cache:6379/0"


def test_a_key_that_is_written_with_escapes_has_no_line() -> None:
    text = '{"keys": {"\\u00e9": {"requests_per_minute": 5}}}'
    file = OriginalFile("settings.json", text, json.loads(text))
    found = {one.path: one for one in effective_values(file, parse_settings(text), {}, frozenset())}
    assert found["keys.é.requests_per_minute"] == EffectiveValue(
        "keys.é.requests_per_minute", 5, "settings.json", (Origin(None, "default"),)
    )
