"""Law: any text is Settings or a SettingsError of one readable line; and no value in it is ever run or opened."""

import gzip
import json
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.providers.registry import PROFILES
from gateway.settings import Settings, load_settings, override_policy, parse_settings, read_settings
from tests.fuzz.strategies import TEXTS, WILD, spoiled
from tests.paths import ROOT

SHIPPED: Final = (ROOT / "settings.json").read_bytes()
BACKEND: Final[dict[str, Json]] = {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": "http://x"}
KEYS: Final = sorted(
    {*Policy.__struct_fields__, *Settings.__struct_fields__, "name", "backend", "api_key_env", "refresh", "timeouts"}
)


def _objects(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    return st.dictionaries(st.sampled_from(KEYS) | TEXTS, inner, max_size=4)


TREES: Final = _objects(WILD | _objects(WILD | _objects(WILD)))


def _check(text: str) -> None:
    try:
        settings = parse_settings(text)
    except SettingsError as error:
        assert error.message
    else:
        assert msgspec.to_builtins(settings)


@given(document=st.just(SHIPPED).flatmap(spoiled))
def test_any_damage_to_the_shipped_file_is_told(document: bytes) -> None:
    _check(document.decode(errors="replace"))


@given(text=TREES.map(json.dumps) | WILD.map(json.dumps) | st.text(max_size=40))
def test_any_text_is_settings_or_an_error(text: str) -> None:
    _check(text)


@given(changes=TREES, place=st.sampled_from(["", "backends", "models", "server", "profiles"]))
def test_any_change_to_sound_settings_is_taken_or_told(changes: dict[str, Json], place: str) -> None:
    raw: dict[str, Json] = {"backends": {"b": dict(BACKEND)}, "models": {"m": {"backend": "b"}}}
    match place:
        case "":
            raw |= changes
        case "backends":
            raw["backends"] = {"b": {**BACKEND, **changes}}
        case "models":
            raw["models"] = {"m": {"backend": "b", **changes}}
        case _:
            raw[place] = changes if place == "server" else {"own": changes}
    try:
        settings = read_settings(raw)
    except SettingsError as error:
        assert error.message
    else:
        assert settings.models.keys() >= {"m"} or place == ""


@given(changes=TREES)
def test_any_override_of_a_policy_is_taken_or_told(changes: dict[str, Json]) -> None:
    try:
        override_policy(Policy(), changes, PROFILES)
    except SettingsError as error:
        assert error.message


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    for data in (b"\xff\xfe{}", b"\x00" * 9, b"[" * 100_000, b'{"a": ' * 5000, b"1" * 5000, gzip.compress(SHIPPED)):
        file.write_bytes(data)
        with pytest.raises(SettingsError, match=r"settings\.json: "):
            load_settings(file)
