"""Tests that every fault of a settings file is found at once, and none that only follows from another one."""

import json
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import Settings, parse_settings, read_settings, similar
from gateway.settings.faults import MOST, settings_faults
from tests.paths import ROOT
from tests.settings.test_mistakes import STRUCTS, WORDS, settings_with
from tests.settings.test_settings import MISTAKES

WARP: Final[Json] = {"adapter": "warp", "base_url": "http://host"}


def messages(raw: Json) -> list[str]:
    return [error.message for error in settings_faults(raw).errors]


def first_fault(raw: Json) -> str | None:
    try:
        read_settings(raw)
    except SettingsError as error:
        return error.message
    return None


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@pytest.mark.parametrize("text", [text for text in MISTAKES if is_json(text)])
def test_the_first_fault_is_the_one_that_reading_reports(text: str) -> None:
    raw = json.loads(text)
    assert messages(raw)[:1] == [found for found in [first_fault(raw)] if found is not None]


@pytest.mark.parametrize("place", ["", "server", "keys.k", "models.m", "backends.b"])
def test_two_faults_of_different_objects_are_both_found(place: str) -> None:
    raw = json.loads(settings_with(place, f"{place}.nonsense".lstrip("."), 1))
    raw["log"] = {"level": "loud"}
    found = messages(raw)
    if place != "backends.b":  # an adapter's own keys are checked by the adapter
        assert any("nonsense" in message for message in found)
    assert any(message.startswith("log.level must be one of") for message in found)


@pytest.mark.parametrize(("place", "path", "kind"), [*STRUCTS, *WORDS], ids=lambda value: str(value)[:40])
def test_every_mistake_leaves_settings_that_can_be_read(place: str, path: str, kind: object) -> None:
    raw = json.loads(settings_with(place, path, {"nonsense" * 4: 7}))
    first = first_fault(raw)
    assert messages(raw)[:1] == ([] if first is None else [first])


def test_all_faults_of_a_file_are_found_in_one_run() -> None:
    assert messages(
        {
            "max_histroy_messages": 5,
            "repair": "maybe",
            "trim_step": 0,
            "server": {"prot": 1, "workers": 0},
            "compress": {"tail": 0.9},
            "backends": {
                "a": WARP,
                "b": {"adapter": "warp"},
                "c": {"adapter": "warp", "base_url": "http://host", "profile": "opnai"},
            },
            "models": {
                "x": {"backend": "d", "repair": "perhaps"},
                "y": {"backend": "a", "images": "no", "compress": {"enabled": True}},
            },
            "keys": {"k": {"models": ["x", "z"], "state": "on"}},
        }
    ) == [
        "unknown setting 'max_histroy_messages'; did you mean 'max_history_messages'?",
        "repair must be one of 'repair', 'strict', 'off'; it is 'maybe'",
        "trim_step must be a whole number of 1 or more; it is 0",
        "backends.b.base_url is missing",
        "backends.c.profile: there is no profile 'opnai'; did you mean 'openai'?",
        "compress: tail, target and trigger must grow in this order; they are 0.9, 0.3, 0.6",
        "models.x.backend: there is no backend 'd'; there are 'a', 'b', 'c'",
        "models.x.repair must be one of 'repair', 'strict', 'off'; it is 'perhaps'",
        "models.y.images must be one of 'refuse', 'placeholder', 'describe'; it is 'no'",
        "models.y.context_length is missing: compress is enabled for this model",
        "unknown setting 'server.prot'; did you mean 'port'?",
        "server.workers must be a whole number of 1 or more; it is 0",
        "keys.k.state must be one of 'off', 'memory', 'shared'; it is 'on'",
        "keys.k.models: there is no model 'z'; there are 'x', 'y'",
    ]


def test_what_follows_from_a_fault_is_not_reported() -> None:
    assert messages({"backends": [], "models": {"m": {"backend": "b"}}, "keys": {"k": {"models": ["m"]}}}) == [
        "backends must be an object"
    ]
    backends: Json = {"b": 1}
    assert messages({"backends": backends, "models": {"m": {"backend": "b"}}}) == ["backends.b must be an object"]


def test_a_sound_file_has_no_fault() -> None:
    text = (ROOT / "settings.json").read_text(encoding="utf-8")
    faults = settings_faults(json.loads(text))
    assert (faults.errors, faults.settings) == ((), parse_settings(text))


def test_the_number_of_faults_is_bounded() -> None:
    faults = settings_faults({f"nonsense{number}": 1 for number in range(3 * MOST)})
    assert (len(faults.errors), faults.settings) == (MOST + 1, Settings())


def test_a_file_that_is_no_object_has_one_fault() -> None:
    assert messages([1]) == ["settings must be an object"]


@pytest.mark.parametrize(
    ("written", "near"),
    [("gemni", "gemini"), ("qwen", "qwen3"), ("port", None), ("gpt-4o", None), ("qwen2.5-coder", None)],
)
def test_only_a_name_that_is_near_is_suggested(written: str, near: str | None) -> None:
    assert similar(written, ["gemini", "qwen3", "host", "demo-chat", "deepseek-coder"]) == near
