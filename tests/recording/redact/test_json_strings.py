import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.escapes import JSON
from gateway.recording.redact.json_strings import JsonReader, NoJson, said

KEYS = st.sampled_from(["index", "type", "content", "a b", "é"])
# Half characters stay apart, so that others than these are two.
_TEXTS = st.text(st.characters(max_codepoint=0xFFFF, codec="utf-8"), max_size=6)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _TEXTS
VALUES = st.recursive(SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3))


def _strings(value: object) -> list[str]:
    """The values of a document that are strings, in order."""
    if isinstance(value, dict):
        return [text for below in value.values() for text in _strings(below)]
    if isinstance(value, list):
        return [text for below in value for text in _strings(below)]
    return [value] if isinstance(value, str) else []


def _found(reader: JsonReader, text: str) -> list[tuple[str, str, tuple[str, ...]]]:
    pieces, shape = reader.read(text)
    return [(JSON.decoded(pieces[at][1:-1]), place.field, said(pieces, spots)) for at, place, spots in shape.strings]


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_the_pieces_are_the_text_and_the_strings_its_values(value: object, escaped: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=escaped, indent=indent)
    pieces, shape = JsonReader().read(text)
    assert "".join(pieces) == text
    assert [text for text, _, _ in _found(JsonReader(), text)] == _strings(value)
    assert {JSON.decoded(key[1:-1]) for key in shape.keys.values()} == _names(value)


def _names(value: object) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_names, value.values()))
    return set[str]().union(*map(_names, value)) if isinstance(value, list) else set()


@given(st.lists(VALUES, max_size=8))
def test_what_was_read_before_changes_nothing(values: list[object]) -> None:
    texts = [json.dumps(value) for value in values]
    reader = JsonReader()
    assert [_found(reader, text) for text in texts] == [_found(JsonReader(), text) for text in texts]


def test_events_that_differ_in_keys_or_places_alone_are_told_apart() -> None:
    reader = JsonReader()
    assert _found(reader, '{"index": 1, "content": "x"}') == [("x", "content", ("index1",))]
    assert _found(reader, '{"index": 2, "content": "x"}') == [("x", "content", ("index2",))]
    assert _found(reader, '{"count": 2, "content": "x"}') == [("x", "content", ())]


@pytest.mark.parametrize(
    "text",
    ["", "no", '"', '{"a"}', '{"a":}', "[1 2]", '["a" "b"]', "[,]", "[1}", "{1}", '"a" "b"', "[" * 200, '{"a":1'],
)
def test_what_is_no_json_is_told(text: str) -> None:
    with pytest.raises(NoJson):
        JsonReader().read(text)


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_a_text_is_written_as_long_as_its_source(text: str) -> None:
    for escaped in (True, False):
        source = json.dumps(text, ensure_ascii=escaped)[1:-1]
        meant = JSON.decoded(source)
        assert JSON.written(source, meant) == source
        other = "".join("z" if char.isalpha() else char for char in meant)
        assert len(JSON.written(source, other)) == len(source)
        assert JSON.decoded(JSON.written(source, other)) == other
