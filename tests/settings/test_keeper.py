"""The settings of the keeper, and the state that a profile of one's own names."""

from typing import Any

import pytest

from gateway.core.errors import SettingsError
from gateway.core.state_rule import StateRule
from gateway.providers.registry import PROFILES
from gateway.settings import KeeperSettings, Settings, read_settings


def read(model: dict[str, Any] | None = None, **top: Any) -> Settings:
    backends: dict[str, Any] = {"b": {"adapter": "openai_chat", "base_url": "http://x"}}
    return read_settings({"backends": backends, "models": {"m": {"backend": "b", **(model or {})}}, **top})


def test_it_is_off() -> None:
    assert read().models["m"].keeper == KeeperSettings(enabled=False)


def test_a_model_changes_what_the_file_says_for_all() -> None:
    told = read({"keeper": {"enabled": False}}, keeper={"enabled": True, "ttl_s": 60})
    assert told.keeper == KeeperSettings(enabled=True, ttl_s=60)
    assert told.models["m"].keeper == KeeperSettings(enabled=False, ttl_s=60)
    assert read(keeper={"enabled": True}).models["m"].keeper.enabled


@pytest.mark.parametrize(
    ("model", "top", "words"),
    [
        ({"keeper": {"max_mb": 1}}, {}, r"models\.m\.keeper\.max_mb"),
        ({}, {"keeper": {"ttl_s": 0}}, r"keeper\.ttl_s"),
        ({}, {"keeper": {"on": True}}, r"keeper\.on"),
        ({}, {"profiles": {"p": {"state": {"turns": "some"}}}}, r"profiles\.p\.state\.turns"),
        ({}, {"profiles": {"p": {"state": {"calls": True}}}}, "provider is missing"),
    ],
)
def test_a_mistake_is_named(model: dict[str, Any], top: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        read(model, **top)


def test_a_profile_of_ones_own_has_the_state_of_its_base_or_its_own() -> None:
    profiles: dict[str, Any] = {
        "same": {"base": "deepseek-thinking"},
        "none": {"base": "deepseek-thinking", "state": None},
        "own": {"state": {"provider": "p", "reasoning": "signed", "turns": "all"}},
    }
    told = read(profiles=profiles).profiles
    assert told["same"].state == PROFILES["deepseek-thinking"].state
    assert told["none"].state is None
    assert told["own"].state == StateRule(provider="p", reasoning="signed", turns="all")
