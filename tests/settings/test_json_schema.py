"""Tests the JSON Schema of settings.json: it is up to date, and judges files as the gateway does."""

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator, ValidationError

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.upstream.backends import Backends
from gateway.settings import parse_settings
from tests.paths import ROOT
from tests.settings.schema_source import INTRODUCTIONS, made
from tests.settings.test_mistakes import PLACES, STRUCTS, WORDS, settings_with
from tests.settings.test_settings import MISTAKES

FILE: Final = ROOT / "gateway" / "settings" / "settings.schema.json"
SCHEMA: Final = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
VALIDATOR: Final = Draft202012Validator(SCHEMA)

# What a schema cannot say: 1.0 for a whole number, a number that is too large, names of other entries, a key twice.
BEYOND_A_SCHEMA: Final = (
    '{"max_tool_results": 1.0}',
    '{"limits": {"max_event_mb": 1e999}}',
    '{"models": {"m": {"backend": "b"}}}',
    '{"max_tool_results": 1, "max_tool_results": 2}',
)


def whole_files() -> Iterator[Any]:
    """Every settings file, and every one that is shown on a page."""
    for path in (ROOT / "settings.json", ROOT / "deploy" / "settings.json"):
        yield pytest.param(path.read_text(encoding="utf-8"), id=str(path.relative_to(ROOT)))
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for number, text in enumerate(re.findall(r"```json\n(.*?)```", page.read_text(encoding="utf-8"), re.S)):
            if re.search(r'^\s*\{\s*"(?:backends|models|adapter)"', text):
                shown = json.loads(text)
                whole = {"backends": {"shown": shown}} if "adapter" in shown else shown
                yield pytest.param(json.dumps(whole), id=f"{page.relative_to(ROOT)}-{number}")


def errors(text: str) -> list[ValidationError]:
    return list(VALIDATOR.iter_errors(json.loads(text)))


def leaves(error: ValidationError) -> Iterator[ValidationError]:
    if not error.context:
        yield error
    for below in error.context or ():
        yield from leaves(below)


def places(text: str) -> set[str]:
    """The paths of everything that the schema refuses; of a key that is too much, its own."""
    found = set()
    for error in (leaf for top in errors(text) for leaf in leaves(top)):
        path = [str(part) for part in error.absolute_path if isinstance(part, str)]
        names = re.findall(r"'([^']+)'", error.message) if error.validator == "additionalProperties" else [""]
        found |= {".".join(filter(None, [*path, name])) for name in names}
    return found


def test_the_file_is_that_of_the_types_and_the_page(pytestconfig: pytest.Config) -> None:
    text = json.dumps(made(), indent=1, ensure_ascii=False) + "\n"
    if pytestconfig.getoption("--rewrite-golden"):
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "run `make golden`"
    Draft202012Validator.check_schema(json.loads(text))


def test_the_command_prints_the_file_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["config", "schema"])
    assert left.value.code == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert files("gateway.settings").joinpath("settings.schema.json").is_file()


@pytest.mark.parametrize("text", [*whole_files()])
def test_files_that_are_shown_are_valid(text: str) -> None:
    assert [error.message for error in errors(text)] == []


@pytest.mark.parametrize("place", PLACES)
def test_sound_entries_of_every_adapter_are_valid(place: str) -> None:
    assert errors(json.dumps(PLACES[place][1])) == []


def test_the_files_that_are_shown_are_many() -> None:
    assert len(list(whole_files())) > 15


def _refuse(word: str) -> None:
    raise ValueError(word)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


@pytest.mark.parametrize("text", [text for text in MISTAKES if is_json(text) and text not in BEYOND_A_SCHEMA])
def test_mistakes_of_a_file_are_refused(text: str) -> None:
    assert errors(text) != []


@pytest.mark.parametrize("text", BEYOND_A_SCHEMA)
def test_what_a_schema_cannot_say_is_still_refused_by_the_gateway(text: str) -> None:
    assert errors(text) == []
    with pytest.raises(SettingsError):
        parse_settings(text)


@pytest.mark.parametrize(("place", "path", "kind"), STRUCTS, ids=[path or "top" for _, path, _ in STRUCTS])
def test_an_unknown_key_is_refused_at_its_place(place: str, path: str, kind: type) -> None:
    strange = f"{path}.{'x' * 40}".lstrip(".")
    text = settings_with(place, strange, 1)
    with pytest.raises(SettingsError, match=re.escape(f"unknown setting '{strange}'")):
        Backends(parse_settings(text))
    assert strange in places(text)


@pytest.mark.parametrize(("place", "path", "kind"), WORDS, ids=[path for _, path, _ in WORDS])
@pytest.mark.parametrize("value", ["nonsense", 7])
def test_a_wrong_word_is_refused_at_its_place(place: str, path: str, kind: object, value: Json) -> None:
    assert path in places(settings_with(place, path, value))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"$schema": 1}', "$schema"),
        ('{"trim_step": 0}', "trim_step"),
        ('{"loop_guard": {"repeats": -1}}', "loop_guard.repeats"),
        ('{"state": {"store": "nowhere"}}', "state.store"),
        ('{"models": {"m": {"backend": "b", "compress": {"max_running": 3}}}}', "models.m.compress.max_running"),
        ('{"models": {"m": {"backend": "b", "context_length": 0}}}', "models.m.context_length"),
        ('{"backends": {"b": {"adapter": "warp", "base_url": "http://x", "wire": "ollama"}}}', "backends.b.wire"),
        (
            '{"backends": {"b": {"adapter": "text", "base_url": "http://x", "max_concurrent": 0}}}',
            "backends.b.max_concurrent",
        ),
        ('{"backends": {"b": {"adapter": "proto", "base_url": "http://x"}}}', "backends.b"),
    ],
)
def test_both_judges_refuse_the_same_place(text: str, place: str) -> None:
    assert place in places(text)
    backends = json.loads(text).get("backends", {"b": {"adapter": "openai_chat", "base_url": "http://x"}})
    with pytest.raises(SettingsError, match=re.escape(place)):
        Backends(parse_settings(json.dumps({**json.loads(text), "backends": backends})))


def test_the_key_of_the_schema_changes_nothing() -> None:
    assert parse_settings('{"$schema": "https://dragoman.example/schema.json"}') == parse_settings("{}")


def test_aliases_are_valid_and_marked() -> None:
    model = SCHEMA["$defs"]["Model"]["properties"]
    assert model["max_history"]["deprecated"] and SCHEMA["properties"]["disable_builtin_tools"]["deprecated"]
    assert errors('{"max_history": 3, "disable_builtin_tools": true}') == []
    assert errors('{"max_history": 3, "max_history_messages": 3}') != []


def test_keys_have_the_sentences_of_the_page() -> None:
    server = SCHEMA["$defs"]["ServerSettings"]["properties"]
    assert server["write_timeout_s"]["description"].startswith("the maximum time that a client may read nothing")
    bare = [
        f"{name}.{key}"
        for name in ("ServerSettings", "StateSettings", "LogSettings", "CompressSettings", "KeySettings")
        for key, schema in SCHEMA["$defs"][name]["properties"].items()
        if not schema.get("description")
    ]
    assert bare == []
    assert len(INTRODUCTIONS) == len([key for key in SCHEMA["$defs"]["Backend"]["allOf"] if "if" in key])
