"""What may be a secret is hidden in values and in the text of a file, and nothing else is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.settings.hidden import shown_text, shown_value

CANARY = "hunter2"
FILE = """{
  "backends": {"a" : {"base_url": "https://u:hunter2@h/v1?k=hunter2",
    "headers":{"x\\"y": "hunter2\\u00e9\\"", "headers": "hunter2"}, "profile": "none"},
    "b": {"metadata": {"k": ["hunter2", {"n": "hunter2"}]}}},
  "text": "headers: none",	"number": 1.50
}"""


def test_secrets_of_a_text_are_hidden_and_the_rest_stays() -> None:
    shown = shown_text(FILE)
    assert CANARY not in shown
    assert shown == FILE.replace('"hunter2\\u00e9\\""', '"(hidden)"').replace('"hunter2"', '"(hidden)"').replace(
        "u:hunter2@h/v1?k=hunter2", "(hidden)@h/v1?(hidden)"
    )


@pytest.mark.parametrize("address", ["demo:chat", "http://h:80/v1", "a b", "sqlite:state.db"])
def test_an_address_without_a_secret_is_shown(address: str) -> None:
    assert shown_value("backends.x.base_url", address) == address


NAMES = st.sampled_from(["headers", "a", 'q"', "metadata"])
VALUES = st.recursive(
    st.none() | st.integers(-9, 9) | st.sampled_from(["one", "two", 'a"b', "http://u:p@h/?q", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


def secrets_of(value: Any, within: bool = False) -> set[str]:
    """The texts below header fields. (Any: JSON.)"""
    if isinstance(value, dict):
        return {
            one for key, below in value.items() for one in secrets_of(below, within or key in ("headers", "metadata"))
        }
    if isinstance(value, list):
        return {one for item in value for one in secrets_of(item, within)}
    return {value} if within and isinstance(value, str) else set()


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.booleans())
def test_any_text_without_secrets_stays_and_any_other_loses_them(document: Any, indented: bool) -> None:
    text = json.dumps(document, indent=2 if indented else None, ensure_ascii=indented)
    shown = shown_text(text)
    assert secrets_of(json.loads(shown)) <= {"(hidden)"} and "u:p@" not in shown
    if not secrets_of(document) and "u:p@" not in text:
        assert shown == text
