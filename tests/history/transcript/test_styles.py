"""The exact text of each style."""

from typing import get_args

import msgspec
import pytest

from gateway.core.policy import FlattenOptions, Policy, StyleName
from gateway.history.transcript.render import flatten
from gateway.history.transcript.sections import Called, Section
from gateway.history.transcript.styles import STYLES, one_line
from tests.history.strategies import calling, conversation, result, system, user
from tests.history.transcript.parse import PARSERS, parse

TOLD = (
    Section("system", "Be brief."),
    Section("user", "one\ntwo"),
    Section("assistant", "", (Called("read", '{"n": 0}', "a"), Called("read", '{"n": 1}', "b"))),
    Section("tool", 'say "配置"', (), "a"),
)


def test_labels() -> None:
    assert STYLES["labels"].render(TOLD, FlattenOptions()) == (
        "System: Be brief.\n\nUser: one\ntwo\n\n"
        'Assistant: \nTool calls: Called read with args: {"n": 0}; Called read with args: {"n": 1}\n\n'
        'Tool result (a): say "配置"'
    )


def test_json_is_one_object_a_line() -> None:
    assert STYLES["json"].render(TOLD, FlattenOptions(style="json")).split("\n") == [
        '{"role":"system","content":"Be brief."}',
        '{"role":"user","content":"one\\ntwo"}',
        '{"role":"assistant","content":"","tool_calls":[{"id":"a","name":"read","arguments":"{\\"n\\": 0}"},'
        '{"id":"b","name":"read","arguments":"{\\"n\\": 1}"}]}',
        '{"role":"tool","tool_call_id":"a","content":"say \\"配置\\""}',
    ]


def test_fences_leave_every_body_as_it_is() -> None:
    lines = STYLES["fenced"].render(TOLD, FlattenOptions(style="fenced")).split("\n")
    fence = lines[0].split(" ")[0]
    assert lines == [
        f"{fence} system>>",
        "Be brief.",
        f"{fence} user>>",
        "one",
        "two",
        f"{fence} assistant>>",
        "",
        f'{fence} call id="a" name="read">>',
        '{"n": 0}',
        f'{fence} call id="b" name="read">>',
        '{"n": 1}',
        f'{fence} tool id="a">>',
        'say "配置"',
        f"{fence} end>>",
    ]


def test_every_style_is_read_back_and_may_be_set() -> None:
    assert STYLES.keys() == PARSERS.keys() == set(get_args(StyleName))


@pytest.mark.parametrize("style", STYLES)
def test_every_style_ends_with_the_continuation(style: str) -> None:
    policy = Policy(flatten=msgspec.convert({"style": style, "continuation": "Go on."}, FlattenOptions))
    flattened = flatten(conversation(system(), user("q"), calling("a"), result("a")), policy)
    assert parse(flattened.text, policy.flatten)[-1] == Section("user", "Go on.")
    assert flattened.text.endswith(flattened.transcript)
    assert "Be brief." not in flattened.transcript


@pytest.mark.parametrize("character", [*"\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\x00\x7f\x9f\ud800"])
def test_one_line_is_one_line_and_unseen_characters_are_escaped(character: str) -> None:
    written = one_line(f"a{character}b")
    assert len(written.splitlines()) == 1
    assert character not in written
    written.encode()
