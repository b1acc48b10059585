"""The text of a custom tool, read out of the JSON of its arguments piece by piece."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.call_arguments import custom_arguments
from gateway.dialects.custom_input import CustomInput, custom_input

# What the arguments are read as; what is no object with one text stands as it was written.
READ: Final[dict[str, str]] = {
    '{"input":"a"}': "a",
    ' {\n"input" :\t"a" } \n': "a",
    '{"input":""}': "",
    '{"input":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e4\\uD83D\\ude00"}': '"\\/\b\f\n\r\tä\U0001f600',
    '{"input":"a\nb"}': "a\nb",
    '{"input":"a\\ud83dbcdefghijk"}': 'a\\ud83dbcdefghijk"}',
    '{"input":"a\\ud83d"}': 'a\\ud83d"}',
    '{"input":"a\\xbc"}': 'a\\xbc"}',
    '{"input":"a","b":1}': 'a","b":1}',
    '{"input":"a"}}': 'a"}}',
    '{"input":"a"': "a",
    '{"input":"a': "a",
    '{"input":"': "",
    '{"inp': '{"inp',
    '{"in put":"a"}': '{"in put":"a"}',
    '{"input":1}': '{"input":1}',
    '{"b":1,"input":"a"}': '{"b":1,"input":"a"}',
    "{}": "{}",
    "*** Begin": "*** Begin",
    " ": " ",
    "": "",
}


def in_pieces(arguments: str, size: int) -> str:
    read = CustomInput()
    pieces = [read.add(arguments[at : at + size]) for at in range(0, len(arguments), size)]
    return "".join(pieces) + read.close()


@pytest.mark.parametrize("size", [1, 2, 5, 100])
@pytest.mark.parametrize("arguments", READ)
def test_the_text_is_the_same_in_any_pieces(arguments: str, size: int) -> None:
    assert in_pieces(arguments, size) == READ[arguments] == custom_input(arguments)


@given(st.text(), st.integers(1, 9), st.booleans())
def test_any_text_comes_back(text: str, size: int, escaped: bool) -> None:
    arguments = json.dumps({"input": text}, ensure_ascii=escaped)
    assert in_pieces(arguments, size) == text == custom_input(custom_arguments(text))


@given(st.text('{}"input: \\ud83den/'), st.integers(1, 9))
def test_any_arguments_are_the_same_text_in_any_pieces(arguments: str, size: int) -> None:
    assert in_pieces(arguments, size) == custom_input(arguments)


def test_the_text_does_not_wait_for_its_end() -> None:
    read = CustomInput()
    assert [read.add(piece) for piece in ('{"in', 'put":"', "a", "b\\", "n", "c")] == ["", "", "a", "b", "\n", "c"]
