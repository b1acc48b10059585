"""What was found necessary becomes the keys of a settings file that reads as the same profile."""

import msgspec
import pytest

from gateway.diagnostics.doctor.finding import Suggestion
from gateway.diagnostics.doctor.suggestion import merged, suggested, with_changes
from gateway.providers.profile import NEUTRAL, Alphabet, Profile
from gateway.providers.registry import PROFILES
from gateway.settings import read_settings

PLACE = ("backends", "mine")


def test_nothing_necessary_suggests_nothing() -> None:
    assert suggested(PLACE, NEUTRAL, {}, PROFILES) == ()


def test_a_profile_that_is_just_that_is_named() -> None:
    own = Profile(developer="system", last_turn="user")
    changes = {"developer": "system", "last_turn": "user"}
    assert suggested(PLACE, NEUTRAL, changes, {**PROFILES, "own": own}) == (Suggestion((*PLACE, "profile"), "own"),)


def test_alphabets_are_merged_field_by_field() -> None:
    changes = merged({"call_id": {"longest": 40}}, {"call_id": {"characters": "A-Za-z0-9"}, "system": "first"})
    assert with_changes(NEUTRAL, changes) == Profile(
        call_id=Alphabet(characters="A-Za-z0-9", longest=40), system="first"
    )


@pytest.mark.parametrize("base", ["none", "openai", "mistral"])
def test_the_suggested_keys_read_as_the_profile_that_was_tried(base: str) -> None:
    changes = {"call_id": {"longest": 24}, "developer": "system", "tool_names": {"characters": "A-Za-z0-9_"}}
    wanted = with_changes(PROFILES[base], changes)
    profile, name = suggested(PLACE, PROFILES[base], changes, PROFILES)
    settings = read_settings({"profiles": {profile.path[1]: msgspec.to_builtins(profile.value)}})
    assert settings.profiles[name.value] == wanted
    assert (name.path, name.value) == (("backends", "mine", "profile"), "mine")


@pytest.mark.parametrize("base", ["none", "openai", "glm"])
def test_the_rules_of_a_request_are_written_without_their_defaults(base: str) -> None:
    changes = {"request_rules": {"limit": "max_completion_tokens"}}
    wanted = with_changes(PROFILES[base], changes)
    if base == "openai":
        assert wanted == PROFILES[base]
        return
    profile, _ = suggested(PLACE, PROFILES[base], changes, PROFILES)
    text = msgspec.json.encode(profile.value)
    assert b"null" not in text and (base != "none" or profile.value == {"base": "none", **changes})
    settings = read_settings({"profiles": {"mine": msgspec.json.decode(text)}})
    assert settings.profiles["mine"] == wanted


def test_a_new_profile_takes_no_name_that_is_taken() -> None:
    profile, _ = suggested(("backends", "openai"), NEUTRAL, {"system": "first"}, PROFILES)
    assert profile.path == ("profiles", "openai-doctor")
