import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.framing.json_text import NotJson, decode_json, repair_surrogates, repair_utf8


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"a\ud83d\ud83d\ude00\ude00b"', "a\ufffd\U0001f600\ufffdb"),
        (rb'"\\ud83d"', "\\ud83d"),
        (rb'"\\\ud83d"', "\\\ufffd"),
        (rb'{"\ude00": 1}', {"\ufffd": 1}),
        (rb'"\uD83D\uDE00"', "\U0001f600"),
    ],
)
def test_half_a_character_is_replaced(data: bytes, value: object) -> None:
    assert decode_json(data, lenient=True) == value


def test_a_byte_order_mark_is_ignored() -> None:
    assert decode_json(b"\xef\xbb\xbf[1]") == [1]


def test_half_a_character_is_replaced_only_where_that_is_asked_for() -> None:
    with pytest.raises(NotJson):
        decode_json(rb'"a\ud83d b c d e"')
    assert decode_json(b'"a\xf0\x9fb"', lenient=True) == "a\ufffdb"
    with pytest.raises(NotJson) as caught:
        decode_json(b'{"x": "a\xf0\x9fb"}')
    assert caught.value.reason == "it is not UTF-8 (byte 8)"


@pytest.mark.parametrize("depth", [64, 65, 3000, 100_000])
@pytest.mark.parametrize("opened", [b"[", b'{"a":'])
@pytest.mark.parametrize("padding", [b"", b" " * 5000])
def test_depth_is_limited(depth: int, opened: bytes, padding: bytes) -> None:
    closed = b"]" if opened == b"[" else b"}"
    inner = b"0" if closed == b"}" else b""
    document = padding + opened * depth + inner + closed * depth
    if depth <= 64:
        decode_json(document)
    else:
        with pytest.raises(NotJson, match="nested"):
            decode_json(document)


@pytest.mark.parametrize(("data", "truncated"), [(b'{"a":', True), (b"", True), (b"{a}", False), (b"1e999", False)])
def test_what_ended_early_is_told_apart(data: bytes, truncated: bool) -> None:
    with pytest.raises(NotJson) as caught:
        decode_json(data)
    assert caught.value.truncated == truncated


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(VALUES)
def test_whatever_python_writes_can_be_read(value: object) -> None:
    assert decode_json(json.dumps(value).encode(), lenient=True) == _without_surrogates(value)


def _without_surrogates(value: object) -> object:
    """Pairs make a character, halves U+FFFD."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case list():
            return [_without_surrogates(item) for item in value]
        case dict():
            return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
        case _:
            return value


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.binary(max_size=80) | st.text("\\ud8cDef0\"'", max_size=40).map(str.encode))
def test_any_bytes_are_a_value_or_not_json(data: bytes) -> None:
    for lenient in (False, True):
        try:
            decode_json(data, lenient=lenient)
        except NotJson as error:
            assert error.reason


@given(st.binary(max_size=80))
def test_mending_is_done_once(data: bytes) -> None:
    mended = repair_surrogates(repair_utf8(data))
    assert repair_surrogates(repair_utf8(mended)) == mended
    mended.decode()


@pytest.mark.parametrize(
    ("unit", "mended"), [(rb"\ud83d", rb"\ufffd"), (rb"\\", rb"\\"), (rb"\ud83d\ude00", rb"\ud83d\ude00")]
)
def test_a_long_text_of_nothing_but_escapes_is_mended(unit: bytes, mended: bytes) -> None:
    assert repair_surrogates(unit * 200_000 + rb"\ud8") == mended * 200_000 + rb"\ud8"
