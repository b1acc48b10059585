from hypothesis import given
from hypothesis import strategies as st

from gateway.demo.scripted_model.words import count, pieces


@given(st.text())
def test_the_pieces_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text
    assert all(pieces(text))


def test_pieces_are_words() -> None:
    assert pieces("Hello, wide world.\n") == ["Hello,", " wide", " world.", "\n"]
    assert count("one two") == 2
