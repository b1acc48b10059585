"""Settings by the paths of their keys."""

import json
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.settings import read_settings
from gateway.settings.flat_values import flat_values, is_below
from tests.paths import ROOT

BACKEND: Final[dict[str, Json]] = {
    "adapter": "openai_chat",
    "base_url": "https://user:pass@host/v1?key=secret",
    "headers": {"x-key": "secret"},
    "max_tool_results": 3,
    "timeouts": {"idle": 7},
}


def test_every_part_has_its_paths() -> None:
    profile: Json = {"base": "openai", "max_tools": 4}
    found = flat_values(
        read_settings(
            {
                "repair": "strict",
                "server": {"allowed_hosts": ["a", "b"]},
                "keys": {"alice": {"requests_per_minute": 5}},
                "profiles": {"mine": profile},
                "backends": {"b": BACKEND},
                "models": {"m.1": {"backend": "b", "profile": "mine", "compress": {"sightings": 3}}},
            }
        )
    )
    assert found["repair"] == "strict" and found["profile"] == "none"
    assert found["server.allowed_hosts"] == ["a", "b"]
    assert found["keys.alice.requests_per_minute"] == 5
    assert found["profiles.mine.max_tools"] == 4 and "profiles.openai.max_tools" not in found
    assert (found["backends.b.timeouts.idle"], found["backends.b.timeouts.total"]) == (7, 600)
    assert (found["models.m.1.profile"], found["models.m.1.max_tool_results"]) == ("mine", 3)
    assert found["models.m.1.compress.sightings"] == 3
    assert found["tracing"] is None


def test_a_profile_has_the_name_that_the_file_says_also_where_another_one_is_equal() -> None:
    found = flat_values(
        read_settings(
            {
                "profiles": {"one": {"base": "openai"}, "two": {"base": "openai"}},
                "backends": {"b": BACKEND},
                "models": {"m": {"backend": "b", "profile": "two"}},
            }
        )
    )
    assert found["models.m.profile"] == "two"


def test_a_model_has_the_limits_that_apply_to_its_backend_and_a_pattern_no_name() -> None:
    raw: Json = {"backends": {"b": BACKEND}, "models": {"m": {"backend": "b"}, "x-*": {"backend": "b"}}}
    settings = read_settings(raw)
    found = flat_values(settings.on(frozenset({"b"})))
    assert (found["models.m.max_tool_results"], found["models.m.max_history_messages"]) == (3, None)
    assert flat_values(settings)["models.m.max_history_messages"] == 50
    assert (found["models.m.name"], found["models.x-*.name"]) == ("m", None)


def test_a_name_with_a_dot_is_not_below_one_without() -> None:
    models: Json = {name: {"backend": "b"} for name in ("gpt-4", "gpt-4.1", "qwen3.5")}
    settings = read_settings({"backends": {"b": BACKEND}, "models": models})
    paths = flat_values(settings)

    def below(parent: str | None) -> set[str]:
        names = ("gpt-4.1", "gpt-4", "qwen3.5")
        found = [path for path in paths if is_below(path, parent, settings)]
        return {next((name for name in names if path.startswith(f"models.{name}.")), "") for path in found}

    assert (below("models.gpt-4"), below("models.gpt-4.1")) == ({"gpt-4"}, {"gpt-4.1"})
    assert below("models.qwen3.5.flatten") == {"qwen3.5"}
    assert below("models") == {"gpt-4", "gpt-4.1", "qwen3.5"} and below("mod") == set()
    assert below(None) == below("") == {"gpt-4", "gpt-4.1", "qwen3.5", ""}


def test_secrets_are_hidden() -> None:
    found = flat_values(read_settings({"backends": {"b": BACKEND}}))
    assert found["backends.b.headers"] == {"x-key": "(hidden)"}
    assert found["backends.b.base_url"] == "https://(hidden)@host/v1?(hidden)"
    assert "secret" not in json.dumps(found)


def test_the_shipped_settings_pass_through_json() -> None:
    found = flat_values(read_settings(json.loads((ROOT / "settings.json").read_bytes())))
    assert msgspec.json.decode(msgspec.json.encode(found)) == found
