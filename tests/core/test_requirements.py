"""Every rule of a notice breaks a word or none, and the page says which."""

import ast
from collections.abc import Iterator
from typing import Final

import pytest

from gateway.core.notices import Notice, NoticeRule
from gateway.core.requirements import (
    BREACHES,
    BY_FIELD,
    FIELDS,
    HARMLESS,
    LEVELS,
    OBSERVED,
    REQUIREMENTS,
    Requirement,
    breaches,
    broken,
)
from tests.paths import ROOT

PAGE: Final = ROOT / "docs" / "requirements.md"
JUDGED: Final = (frozenset(BREACHES), BY_FIELD, HARMLESS)


def known_rules() -> frozenset[str]:
    """Returns the rules of the closed union, which exists for the type checker alone."""
    tree = ast.parse((ROOT / "gateway" / "core" / "notices.py").read_text(encoding="utf-8"))
    (union,) = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == "NoticeRule"
    ]
    assert isinstance(union, ast.Subscript) and isinstance(union.slice, ast.Tuple)
    return frozenset(entry.value for entry in union.slice.elts if isinstance(entry, ast.Constant))  # type: ignore[misc]  # typeshed: any constant


def test_each_rule_is_judged_once() -> None:
    rules = known_rules()
    assert len(rules) > 200
    assert frozenset[str]().union(*JUDGED) == rules, "judge a new rule in gateway/core/requirements.py"
    assert sum(len(judged) for judged in JUDGED) == len(rules)


def test_what_depends_on_more_than_its_rule_has_a_word() -> None:
    assert frozenset(BREACHES) >= OBSERVED | LEVELS.keys()
    assert set(BREACHES.values()) == set(REQUIREMENTS) >= set(FIELDS.values())


@pytest.mark.parametrize(
    ("notice", "words"),
    [
        (Notice("encode", "dropped", "TOOL_NOT_SENT", ""), ("tools",)),
        (Notice("repair", "moved", "TOOL_ORPHAN", ""), ()),
        (Notice("validate", "failed", "TOOL_ORPHAN", ""), ()),
        (Notice("repair", "changed", "TOOL_ORPHAN", ""), ("tools",)),
        (Notice("backend", "seen", "TOOL_CHOICE_IGNORED", ""), ("tools",)),
        (Notice("trim", "seen", "PREFIX_CHANGED", ""), ("cache",)),
        (Notice("encode", "seen", "IMAGE_DESCRIBED", ""), ("images",)),
        (Notice("profile", "dropped", "TOOL_REPEATED", "", level="info"), ()),
        (Notice("profile", "dropped", "TOOL_REPEATED", "", level="warning"), ("tools",)),
        (Notice("backend", "added", "CALL_ID_ADDED", "", level="debug"), ()),
        (Notice("backend", "dropped", "REASONING_NOT_SHOWN", ""), ("reasoning",)),
        (Notice("backend", "dropped", "REASONING_NOT_SHOWN", "", level="debug"), ()),
        (Notice("encode", "changed", "CACHE_MARKS_CHANGED", ""), ()),
        (Notice("encode", "changed", "CACHE_MARKS_CHANGED", "", fields=("cache_control",)), ("cache",)),
        (Notice("encode", "dropped", "FIELD_NOT_SENT", ""), ()),
        (Notice("encode", "dropped", "FIELD_NOT_SENT", "", fields=("temperature",)), ()),
        (Notice("encode", "dropped", "FIELD_NOT_SENT", "", fields=("cache_control",)), ("cache",)),
        (Notice("encode", "dropped", "FIELD_NOT_SENT", "", fields=("extra_content.google",)), ("reasoning",)),
        (Notice("encode", "dropped", "FIELD_NOT_SENT", "", fields=("name", "strict", "x")), ("tools", "ids")),
        (Notice("encode", "dropped", "EFFORT_NOT_SENT", "", fields=("name",)), ("effort",)),
    ],
)
def test_a_notice_breaks_the_words_of_its_rule_or_its_fields(notice: Notice, words: tuple[Requirement, ...]) -> None:
    assert broken(notice) == words


def test_the_broken_words_come_in_their_order_with_their_notices() -> None:
    ids, first, second = (
        Notice("profile", "changed", "CALL_ID_RENAMED", "an id"),
        Notice("encode", "dropped", "TOOL_NOT_SENT", "one"),
        Notice("encode", "dropped", "TOOL_NOT_SENT", "two"),
    )
    found = breaches([ids, first, Notice("repair", "added", "CALLS_UNANSWERED", ""), second])
    assert [*found.items()] == [("tools", (first, second)), ("ids", (ids,))]
    assert not breaches([])


def test_a_rule_of_another_package_breaks_no_word() -> None:
    assert broken(Notice("backend", "dropped", "THEIR_OWN", "")) == ()  # type: ignore[arg-type]  # no rule of this project


def _when(rule: NoticeRule) -> str:
    said = [f"level {' or '.join(sorted(LEVELS[rule]))}"] if rule in LEVELS else []
    return ", ".join([*said, *(["also where it is only seen"] if rule in OBSERVED else [])])


def _rules() -> Iterator[str]:
    yield "| word | rule | only |"
    yield "| --- | --- | --- |"
    for word in REQUIREMENTS:
        for rule in sorted(rule for rule, broken_word in BREACHES.items() if broken_word == word):
            yield f"| `{word}` | `{rule}` | {_when(rule)} |"


def _fields() -> Iterator[str]:
    yield "| word | fields |"
    yield "| --- | --- |"
    for word in REQUIREMENTS:
        names = ", ".join(f"`{field}`" for field in sorted(FIELDS) if FIELDS[field] == word)
        if names:
            yield f"| `{word}` | {names} |"


@pytest.mark.parametrize(("table", "lines"), [("rules", tuple(_rules())), ("fields", tuple(_fields()))])
def test_the_tables_of_the_page_are_made_of_the_rules(
    table: str, lines: tuple[str, ...], *, rewrite_golden: bool
) -> None:
    page = PAGE.read_text(encoding="utf-8")
    before, mark, rest = page.partition(f"<!-- {table} -->\n")
    _, end, after = rest.partition(f"<!-- /{table} -->\n")
    assert mark and end
    made = "".join([before, mark, *(f"{line}\n" for line in lines), end, after])
    if rewrite_golden:
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "make golden writes it"
