"""A preset gives the defaults of an entry, whose own keys win."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from gateway.core.errors import SettingsError
from gateway.registry import load_adapter
from gateway.settings import BackendSettings, check_options
from tests.adapters.proto.backend.mappings import PARTS, TALK
from tests.paths import ROOT

FILES = [Path(file.name) for file in files(ProtoOptions.presets).iterdir()]
NAMES = sorted(file.stem for file in FILES if file.suffix == ".json")


@pytest.mark.parametrize("name", NAMES)
def test_a_preset_and_an_address_are_a_backend(name: str) -> None:
    assert isinstance(load(preset=name), ProtoAdapter)


def test_the_page_lists_every_preset() -> None:
    page = (ROOT / "docs" / "proto-backends.md").read_text(encoding="utf-8")
    section = page.partition("## Presets\n")[2].partition("\n## ")[0]
    assert [name for name in NAMES if f"| `{name}` |" not in section] == []


def test_the_keys_of_the_entry_win() -> None:
    options = check_options({"preset": "demo", "carrier": "grpc_web", "max_tokens": 7}, ProtoOptions, "backends.b")
    assert (options.preset, options.carrier, options.max_tokens) == ("demo", "grpc_web", 7)
    assert options.method == "dragoman.demo.v1.Generation/Generate" and options.schema.data


def test_a_schema_of_the_entry_replaces_that_of_the_preset() -> None:
    options = check_options({"preset": "demo", "schema": TALK["schema"]}, ProtoOptions, "backends.b")
    assert options.schema == check_options(TALK, ProtoOptions, "backends.b").schema
    with pytest.raises(SettingsError, match=r"backends.b.method: the schema has no service 'dragoman"):
        load(preset="demo", schema=TALK["schema"])


@pytest.mark.parametrize(
    ("preset", "said"),
    [("dmo", "there is no preset 'dmo'; did you mean 'demo'?"), (7, "there is no preset 7")],
)
def test_a_preset_that_does_not_exist_is_named(preset: object, said: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**PARTS, preset=preset)
    assert refused.value.message == f"backends.b.preset: {said}"


def test_an_adapter_without_presets_knows_no_such_key() -> None:
    with pytest.raises(SettingsError, match=r"unknown setting 'backends.b.preset'"):
        load("openai_chat", preset="demo")


def load(adapter: str = "proto", **options: Any) -> object:
    """The adapter of an entry. (Any: keys of settings.json.)"""
    return load_adapter("b", BackendSettings(adapter, "http://host", options=options), 1 << 20)
