import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.provider_state import state_label
from gateway.recording.lines import RedactionLevel
from gateway.recording.redact.words import VOCABULARY, Words, is_identifier


@given(st.text(st.characters(codec="utf-8"), max_size=60), st.binary(min_size=4, max_size=4))
def test_a_text_keeps_its_shape(text: str, seed: bytes) -> None:
    new = Words("shape", seed).text(text)
    assert len(new) == len(text) and len(new.encode()) == len(text.encode())
    for old, now in zip(text, new, strict=True):
        if unicodedata.category(old)[0] not in "LN":
            assert now == old
        elif len(text) < 60:
            assert old.isalpha() == now.isalpha() and old.isdecimal() == now.isdecimal()


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_the_full_level_keeps_lengths(text: str) -> None:
    new = Words("full", b"seed").text(text)
    assert len(new.encode()) == len(text.encode())
    assert [len(line) for line in new.split("\n")] == [len(line) for line in text.split("\n")]


@given(st.lists(st.text("abcdefghij", min_size=4, max_size=8), max_size=30))
def test_different_words_stay_different_and_the_same_the_same(texts: list[str]) -> None:
    words = Words("shape", b"seed")
    new = [words.text(text) for text in texts]
    assert len(set(new)) == len(set(texts))
    assert [words.text(text) for text in texts] == new
    assert not any(now == old for now, old in zip(new, texts, strict=True) if old not in VOCABULARY)


def test_the_ids_of_parallel_calls_stay_different() -> None:
    words = Words("shape", b"seed")
    assert len({words.text(f"call_{number}") for number in range(10)}) == 10


@pytest.mark.parametrize("seed", [b"seed", b"another", b"third"])
@pytest.mark.parametrize("level", ["shape", "full"])
def test_the_ids_of_many_calls_stay_different(level: RedactionLevel, seed: bytes) -> None:
    words = Words(level, seed)
    ids = [f"call_{number}" for number in range(1000)] + [f"call_{number:02}" for number in range(100)]
    ids += [f"call_{number:03}" for number in range(100)]
    assert len({words.text(one) for one in ids}) == len(set(ids))
    # Which others there are makes no difference.
    assert Words(level, seed).text("call_87") == words.text("call_87") != "call_87"


def test_case_numbers_and_marks_stay_what_they_were() -> None:
    new = Words("shape", b"seed", {"city"}).text(
        'Paris PARIS paris {"city": 120, "n": 0.5, "ok": true} 3e10 \\u00e9\\n'
    )
    first, *_ = new.split()
    assert re.fullmatch(r"[A-Z][a-z]{4}", first)
    assert new.split()[1:3] == [first.upper(), first.lower()]
    assert re.search(r'\{"city": [1-9]\d\d, "[a-z]": 0\.\d, "[a-z]{2}": true\} \de10 \\u00e9\\n$', new)


def test_labels_tags_and_kept_words_stay() -> None:
    text = "User: Assistant: Tool result (x): <tool_call> ```json"
    new = Words("shape", b"seed").text(text)
    assert re.fullmatch(r"User: Assistant: Tool result \([a-z]\): <tool_call> ```json", new)


def test_an_image_becomes_a_stub_of_its_size() -> None:
    content = "iVBORw0KGgo" * 40
    new = Words("shape", b"seed").text(f"data:image/png;base64,{content}==")
    assert re.fullmatch(r"data:image/png;base64,iVBORw0KGgoi[0-9a-f]{8}A{420}==", new)


def test_letters_of_other_scripts_stay_in_them() -> None:
    new = Words("shape", b"seed").text("Привет мир 漢字 ελληνικά")
    assert new != "Привет мир 漢字 ελληνικά"
    for old, now in zip("Привет мир 漢字 ελληνικά", new, strict=True):
        if old.isalpha():
            assert unicodedata.name(old).split()[0] == unicodedata.name(now).split()[0]


def test_what_is_an_id() -> None:
    assert is_identifier("call_9f") and is_identifier("functions.get:0")
    assert not is_identifier("call") and not is_identifier("a 1")


def test_a_long_text_that_is_no_id_is_told_in_one_look() -> None:
    """With a second look for each digit this test would not end."""
    assert not is_identifier("a1" * 500_000 + " ")


def test_a_long_text_becomes_what_its_parts_become() -> None:
    text = "".join(f"word{number},other{number} " for number in range(9000))
    new = Words("shape", b"seed").text(text)
    words = Words("shape", b"seed")
    assert "".join(f"{words.text(word)} " for word in text.split()) == new


@pytest.mark.parametrize("level", ["shape", "full"])
@pytest.mark.parametrize("state", ["Eqd1f0c3", "gAAAABcd" * 30, "a.b"])
def test_the_label_of_a_state_stays_and_the_state_is_the_same_behind_it(level: RedactionLevel, state: str) -> None:
    words, label = Words(level, b"seed"), state_label("adapter", "host", "KEY")
    for replaced in (words.text, words.stub):
        assert replaced(label + state) == label + replaced(state)
        assert replaced(state) != state
