import json
from typing import Final

import pytest

from gateway.recording.beginning import closed_json, whole_words

DOCUMENT: Final = {
    "model": "m",
    "messages": [
        {"role": "user", "content": 'Er sagt: "Ja\\\\", [und] {geht}, é \\u00e9 \n'},
        {"role": "tool", "n": [1.5, -2, None]},
    ],
    "stream": True,
    "tools": [],
}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_every_beginning_of_a_document_is_closed_or_is_none(ascii_only: bool) -> None:
    text = json.dumps(DOCUMENT, ensure_ascii=ascii_only).encode()
    whole = json.loads(text)
    for size in range(1, len(text) + 1):
        closed = closed_json(text[:size])
        if closed is None:
            # Before its first element.
            assert size <= len('{"model": ')
            continue
        found = json.loads(closed)
        assert list(found) == list(whole)[: len(found)]
        # Only the last element may be cut.
        for name in list(found)[:-1]:
            assert found[name] == whole[name]


def test_what_is_no_json_is_not_closed() -> None:
    for text in (b"", b"Hallo", b"]", b'{"a": 1}}', b"\xff{", b"[" * 5000):
        assert closed_json(text) is None


def test_words_at_a_cut_are_left_out() -> None:
    data = b'secret-1 and "more" of secret-2'
    assert whole_words(data) == data
    assert whole_words(data, to_end=False) == b'secret-1 and "more" of '
    assert whole_words(data, from_start=False) == b' and "more" of secret-2'
    assert whole_words(data, from_start=False, to_end=False) == b' and "more" of '
    assert whole_words(b"secret", to_end=False) == whole_words(b"secret", from_start=False) == b""
