from pathlib import Path

import msgspec
import pytest

from gateway.core.errors import InvalidRequest
from gateway.core.session import Session
from gateway.inspector.filter import FIELDS, Word, read_filter
from gateway.inspector.summary import CacheLoss, Summary

SUMMARY = Summary(
    7, "req_ab", 1.0, "POST", "/v1/chat/completions", "openai_chat", "alice", "gpt-x", "mine", False, 2500.0, 502,
    "upstream_timeout", True, "repair=2; trim=1", ("TOOL_ORPHAN", "HISTORY_LIMITED"), 100, 20, conversation="c0ffee",
    cache=CacheLoss("client_tools", "", "The client changed tools[0].", 1, 2, None),
    session=Session("codex", "s-1", "a-1"), client="Codex 0.169.0", first_ms=900.5,
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "",
        "model:gpt-* status:5xx",
        "status:502 -status:4xx",
        "code:UPSTREAM_* rule:tool_*",
        "ms:>2000 ms:<3000 tok:120",
        "stage:trim changed:yes failed:yes live:no stream:yes",
        "cache:client_* -cache:rule",
        "session:s-* agent:a-1 -session:s-2",
        "client:codex* -client:curl first:>800 first:<1000",
        "conv:c0* id:req_ab key:ali* backend:mine dialect:openai_*",
    ],
)
def test_every_term_must_hold(text: str) -> None:
    assert read_filter(text).matches(SUMMARY)


@pytest.mark.parametrize(
    "text",
    ["model:qwen", "status:200", "-model:gpt-*", "ms:<100", "tok:>120", "stage:flatten", "live:yes", "key:bob"],
)
def test_one_that_does_not_is_enough(text: str) -> None:
    assert not read_filter(text).matches(SUMMARY)


def test_any_cause_is_one() -> None:
    assert read_filter("cache:*").matches(SUMMARY)
    assert not read_filter("cache:*").matches(msgspec.structs.replace(SUMMARY, cache=None))


@pytest.mark.parametrize(
    ("text", "said"),
    [("col:our", "FIELD:VALUE"), ("colour:red", "fields"), ("ms:x", "number"), ("status:9", "5xx"), ("live:x", "yes")],
)
def test_a_wrong_term_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said) as caught:
        read_filter(text)
    assert repr(text) in caught.value.message and caught.value.param == "filter"


def test_a_long_term_is_cut() -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_filter("x:" + "x" * 5000)
    assert len(caught.value.message) < 400


def test_every_field_has_a_test_here() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    assert [field for field in FIELDS if f"{field}:" not in source] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("model:gpt-* Baikonur", (Word("Baikonur"),)),
        ('"no such file" -error', (Word("no such file"), Word("error", True))),
        ('-"a: b" "http://x"', (Word("a: b", True), Word("http://x"))),
        ('" -', (Word('"'), Word("-"))),
    ],
)
def test_what_names_no_field_is_a_word(text: str, words: tuple[Word, ...]) -> None:
    assert read_filter(text).words == words
