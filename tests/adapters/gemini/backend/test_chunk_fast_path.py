import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.gemini.backend import decoder
from adapters.gemini.backend.chunk_fast_path import read_own, read_plain
from adapters.gemini.backend.decoder import GeminiDecoder
from adapters.gemini.own_chunk import without_parts
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.testing.replay import replay
from tests.adapters.gemini.backend.wires import chunk, text, usage

COUNTS = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")


def written(made: Json) -> bytes:
    return json.dumps(made).encode()


def counted(counts: Json) -> dict[str, Any]:
    return {"usageMetadata": counts}


@pytest.mark.parametrize(
    "data",
    [
        written(chunk(text("a"))),
        written(chunk(text("a\n\u2028"), **usage())),
        written(chunk(text("a"), **usage(thoughts=2))),
        written(chunk(text("a"), **counted({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}]}))),
        b'{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}',
    ],
)
def test_a_chunk_of_one_text_is_read_at_once(data: bytes) -> None:
    found = read_plain(data)
    assert found is not None and found.text[0] == "a"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        written({"error": {"code": 500}}),
        written(chunk()),
        written(chunk(text(""))),
        written(chunk(text("a"), text("b"))),
        written(chunk(text("a", thought=True))),
        written(chunk(text("a", thoughtSignature="s"))),
        written(chunk(text("a"), finish="STOP")),
        written(chunk(text("a"), createTime="now")),
        written(chunk(text("a"), **counted([]))),
        written(chunk(text("a"), **counted({"promptTokenCount": "3"}))),
        written(chunk(text("a"), **counted({"trafficType": "ON_DEMAND"}))),
        written(chunk(text("?"))).replace(b"?", b"\\ud83d"),
        written(chunk(text("?"))).replace(b"?", b"\xff"),
        written(chunk(text("a"), **counted({"?": 1}))).replace(b"?", b"\xff"),
        written(chunk(text("a"), **counted({"promptTokenCount": 1}))).replace(b": 1}", b": " + b"[" * 9999),
    ],
)
def test_any_other_chunk_is_read_in_full(data: bytes) -> None:
    assert read_plain(data) is None


@pytest.mark.parametrize(
    "made",
    [
        chunk(text("a")),
        chunk(text("a"), createTime="now", **usage(thoughts=2)),
        chunk(
            text("a"), **counted({"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}], "trafficType": "x"})
        ),
        {"candidates": [{"content": {"parts": [{"text": "a"}]}}]},
    ],
)
def test_a_client_of_the_same_dialect_gets_each_field_as_it_was_written(made: dict[str, Any]) -> None:
    own = read_own(written(made))
    assert own is not None and (own.fields, own.text) == (without_parts(made), "a")


@pytest.mark.parametrize(
    "more", [counted({"promptTokenCount": None}), counted(None), {"x": 1}, {"modelVersion": None}, {"candidates": []}]
)
def test_a_chunk_with_any_other_field_is_read_in_full_for_such_a_client(more: dict[str, Any]) -> None:
    assert read_own(written(chunk(text("a")) | more)) is None


PARTS = st.one_of(
    st.builds(text, st.sampled_from(["", "a", "é", "\u2028", '"', "\ud83d"])),
    st.just(text("a", thought=True)),
    st.just(text("a", x=1)),
    st.just({"functionCall": {"name": "f", "args": {}}}),
)
NUMBERS: st.SearchStrategy[Json] = st.sampled_from([0, 1, 7, 7.0, 7.5, -1, None, True, "7", 2**70])
DETAILS: st.SearchStrategy[Json] = st.sampled_from([[], None, [{"modality": "TEXT", "tokenCount": 3}], [{}], "x"])
USAGES: st.SearchStrategy[Json] = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(COUNTS, NUMBERS), "promptTokensDetails": DETAILS, "trafficType": st.just("x")}
).map(lambda made: {**made}) | st.sampled_from([None, [], 1])
MORE: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}),
    USAGES.map(counted),
    st.sampled_from([{"createTime": "now"}, {"candidates": []}, {"modelVersion": None}]),
)
CHUNKS = st.builds(
    lambda parts, finish, more: written(chunk(*parts, finish=finish, **more) | more),
    st.lists(PARTS, min_size=1, max_size=2),
    st.sampled_from([None, None, None, None, "STOP", "OTHER"]),
    MORE,
) | st.sampled_from([b"{", b"\xff", b"[]", b"{}"])


@settings(max_examples=3 * settings().max_examples, deadline=None)
@given(st.lists(CHUNKS, max_size=6), st.booleans())
@example([written(chunk(text("\ud83d"))), written(chunk(text("a")))], True)
def test_a_chunk_means_what_it_means_when_read_in_full(odd: list[bytes], passes: bool) -> None:
    wire = [written(chunk(text("a"))), *odd, written(chunk(text(""), finish="STOP"))]
    assert outcome(wire, passes, fast=True) == outcome(wire, passes, fast=False)


def outcome(chunks: Sequence[bytes], passes: bool, *, fast: bool) -> tuple[list[Event], str]:
    wire = b"".join(b"data: %s\r\n\r\n" % data for data in chunks)
    with pytest.MonkeyPatch.context() as patched:
        if not fast:
            patched.setattr(decoder, "read_plain", lambda data: None)
            patched.setattr(decoder, "read_own", lambda data: None)
        try:
            return replay(GeminiDecoder(1 << 20, 1, passes=passes), [wire]), ""
        except BackendError as error:
            return [*error.events], error.message
