"""A key is set in the text of a settings file, and every other character stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings.edit import with_keys

FILE = """{
    "$schema": "x",
    "backends": {
        "a.b": {"adapter": "text", "base_url": "http://h"},

        "mine":   {
            "adapter": "openai_chat" , "profile": "none",
            "list": [{"profile": "no"}]
        },
        "empty": {}
    }
}
"""


def set_in(document: Any, path: tuple[str, ...], value: Any) -> Any:
    """The same on decoded JSON. (Any: JSON.)"""
    name, *below = path
    inner = set_in(document.get(name, {}), tuple(below), value) if below else value
    return {**document, name: inner}


@pytest.mark.parametrize(
    "path",
    [
        ("backends", "mine", "profile"),
        ("backends", "a.b", "profile"),
        ("backends", "empty", "profile"),
        ("profiles", "mine"),
        ("profiles", "deep", "er"),
        ("$schema",),
    ],
)
def test_the_key_is_set_and_nothing_else(path: tuple[str, ...]) -> None:
    value: Json = {"base": "none", "developer": 'a "quoted" ünicode'}
    changed = with_keys(FILE, {path: value})
    assert json.loads(changed) == set_in(json.loads(FILE), path, value)
    lost = [line for line in FILE.splitlines() if line not in changed.splitlines()]
    assert len(lost) <= 1


def test_the_form_of_the_object_is_kept() -> None:
    changed = with_keys(FILE, {("backends", "mine", "max_concurrent"): 4})
    assert '        "mine":   {\n            "max_concurrent": 4,\n            "adapter": "openai_chat" ,' in changed


def test_a_new_key_of_an_empty_file_stands_on_its_own_line() -> None:
    assert with_keys("{}\n", {("profiles", "a"): {}}) == '{\n  "profiles": {"a": {}}\n}\n'


def test_a_value_on_the_way_must_be_an_object() -> None:
    with pytest.raises(SettingsError, match=r"backends\.mine\.profile must be an object"):
        with_keys(FILE, {("backends", "mine", "profile", "base"): "none"})


KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), KEYS, KEYS, VALUES, st.booleans())
def test_any_document_reads_as_with_the_key(
    document: dict[str, dict[str, Any]], first: str, second: str, value: Any, indented: bool
) -> None:
    text = json.dumps(document, indent=2 if indented else None, ensure_ascii=indented)
    assert json.loads(with_keys(text, {(first, second): value})) == set_in(document, (first, second), value)
