"""Tests provider profiles in settings.json: selection by name, derivation, and rejected definitions."""

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.providers.profile import Alphabet
from gateway.providers.registry import PROFILES
from gateway.providers.request_rules import ModelRules, RequestRules
from gateway.settings import Settings, read_settings

BACKEND: dict[str, Json] = {"adapter": "a:B", "base_url": "http://127.0.0.1:1"}


def read(
    top: dict[str, Json], *, backend: dict[str, Json] | None = None, model: dict[str, Json] | None = None
) -> Settings:
    return read_settings(
        {**top, "backends": {"b": {**BACKEND, **(backend or {})}}, "models": {"m": {"backend": "b", **(model or {})}}}
    )


def test_the_backend_names_it_and_the_model_overrides_it() -> None:
    assert read({}).models["m"].policy.profile == PROFILES["none"]
    assert read({}, backend={"profile": "groq"}).models["m"].policy.profile == PROFILES["groq"]
    over = read({}, backend={"profile": "groq"}, model={"profile": "ollama"})
    assert over.models["m"].policy.profile == PROFILES["ollama"]


def test_a_profile_of_ones_own_starts_from_its_base() -> None:
    own: dict[str, Json] = {"base": "openai", "call_id": {"characters": "a-z0-9", "longest": 9}}
    profile = read({"profiles": {"own": own}}, backend={"profile": "own"}).models["m"].policy.profile
    assert profile.call_id == Alphabet(characters="a-z0-9", longest=9)
    assert profile.max_tools == PROFILES["openai"].max_tools


def test_the_rules_for_a_request_are_written_whole() -> None:
    rules: dict[str, Json] = {"limit": "max_tokens", "models": [{"models": "m-.*", "refused": ["top_p"]}]}
    top: dict[str, Json] = {"profiles": {"own": {"base": "openai", "request_rules": rules}}}
    profile = read(top, backend={"profile": "own"}).models["m"].policy.profile
    assert profile.request_rules == RequestRules("max_tokens", models=(ModelRules("m-.*", refused=("top_p",)),))
    assert profile.max_tools == PROFILES["openai"].max_tools


def test_a_model_says_which_one_a_deployment_hides() -> None:
    settings = read({}, backend={"profile": "azure"}, model={"name": "my-deployment", "base_model": "gpt-5"})
    assert settings.models["m"].policy.base_model == "gpt-5"
    assert read({}).models["m"].policy.base_model is None


@pytest.mark.parametrize(
    ("top", "backend", "told"),
    [
        ({}, {"profile": "grok"}, "backends.b.profile: there is no profile 'grok'; did you mean 'groq'?"),
        ({"profiles": {"x": {"base": "opnai"}}}, {}, "profiles.x.base: there is no profile 'opnai'"),
        ({"profiles": {"x": {"max_tool": 1}}}, {}, "unknown setting 'profiles.x.max_tool'; did you mean 'max_tools'?"),
        ({"profiles": {"x": {"call_id": {"characters": "z-a"}}}}, {}, "profiles.x.call_id"),
        ({"profiles": {"x": {"call_id": {"characters": "0-9"}}}}, {}, "profiles.x.call_id: [0-9] must be"),
        ({"profiles": {"x": {"call_id": {"first": "0-9"}}}}, {}, "profiles.x.call_id: [0-9] must be"),
        ({"profiles": {"x": {"call_id": {"longest": 1}}}}, {}, "profiles.x.call_id: longest must be"),
        (
            {"profiles": {"x": {"request_rules": {"models": [{"models": "("}]}}}},
            {},
            "profiles.x.request_rules.models[0]: models must be a regular expression",
        ),
        ({"profiles": {"x": {"request_rules": {"limit": "max"}}}}, {}, "profiles.x.request_rules.limit"),
        ({"profiles": {"x": {"tool_names": {"shortest": 65}}}}, {}, "profiles.x.tool_names: shortest must be"),
        (
            {"recent_tool_results": {"redact": ["("]}},
            {},
            "recent_tool_results.redact: '(' cannot be read as a regular expression from character 1 on",
        ),
        (
            {"recent_tool_results": {"redact": ["ab)"]}},
            {},
            "'ab)' cannot be read as a regular expression from character 3",
        ),
        ({"recent_tool_results": {"redact": ["a{99999999999}"]}}, {}, "has a repetition that is too large"),
        ({"recent_tool_results": {"lookback_count": -1}}, {}, "recent_tool_results.lookback_count must be"),
        ({"loop_guard": {"repeats": 3.0}}, {}, "loop_guard.repeats must be a whole number; it is 3.0"),
        ({"loop_guard": {"action": "shout"}}, {}, "loop_guard.action"),
    ],
)
def test_a_mistake_is_named(top: dict[str, Json], backend: dict[str, Json], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(top, backend=backend)
    assert told in caught.value.message
