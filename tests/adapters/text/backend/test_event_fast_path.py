from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.backend.event_fast_path import EventFastPath
from adapters.text.backend.event_reader import Piece, Reader
from adapters.text.backend.presets import PRESETS
from adapters.text.backend.wire import UsagePaths, Wire
from gateway.core.conversation import Json
from gateway.framing.json_text import decode_json
from tests.adapters.text.backend import answers

STREAMED = {name: Reader(wire) for name, wire in PRESETS.items() if wire.framing in ("sse", "ndjson")}


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        ("llama_cpp", answers.llama(("a",)).split(b"\n\n")),
        ("completions", answers.completions(("a",)).split(b"\n\n")),
        ("tgi", answers.tgi(("a",)).split(b"\n\n")),
        ("koboldcpp", answers.koboldcpp(("a",)).replace(b"event: message\n", b"").split(b"\n\n")),
        ("ollama", answers.ollama(("a",)).split(b"\n")),
        ("ollama_chat", answers.ollama_chat(("a",)).split(b"\n")),
        ("plain_ndjson", answers.plain_ndjson(("a",)).split(b"\n")),
    ],
)
def test_an_event_with_text_alone_is_plain_and_the_last_one_is_not(wire: str, events: list[bytes]) -> None:
    said, last = (event.removeprefix(b"data: ") for event in events[:2])
    assert STREAMED[wire].plain.read(iter([said, last, said])) == (["a"], last)
    assert STREAMED[wire].plain.read(iter([last, said])) == ([], last)
    assert STREAMED[wire].plain.read(iter([said])) == (["a"], None)


@pytest.mark.parametrize(
    "event",
    [
        b"",
        b"{",
        b"[]",
        b'"a"',
        b"[DONE]",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [{"text": 1}]}',
        b'{"choices": [{"text": "\xff"}]}',
        b'{"choices": [{"text": "a", "finish_reason": "stop"}]}',
        b'{"choices": [{"text": "a", "finish_reason": 1}]}',
        b'{"choices": [{"text": "a"}], "error": "broken"}',
        b'{"choices": [{"text": "a"}], "error": {}}',
        b'{"choices": [{"text": "a"}], "usage": {"prompt_tokens": 1}}',
    ],
)
def test_what_may_say_more_is_read_in_full(event: bytes) -> None:
    assert STREAMED["completions"].plain.read(iter([event])) == ([], event)


@pytest.mark.parametrize("depth", [5_000, 500_000])
def test_a_deep_value_beside_the_text_is_skipped_or_left_to_the_full_reader(depth: int) -> None:
    """How deep the decoder skips what it does not read depends on the version of Python: 5,000 levels from 3.12 on."""
    event = b'{"choices": [{"text": "a"}], "other": ' + depth * b"[" + b"]" * depth + b"}"
    assert STREAMED["completions"].plain.read(iter([event])) in ((["a"], None), ([], event))


@pytest.mark.parametrize(
    "wire",
    [
        {"framing": "json", "text": ("a",)},
        {"framing": "text", "ends": "close"},
        {"text": ("",)},
        {"text": ("[0]",)},
        {"text": ("a[1]",)},
        {"text": ("a.b",), "reasoning": ("a",)},
        {"text": ("a",), "reasoning": ("a.b",)},
        {"text": ("a",), "reasoning": ("b.c", "b[0]")},
        {"text": ("a",), "error": ("",)},
    ],
)
def test_a_wire_whose_places_overlap_or_are_no_fields_has_no_plain_events(wire: dict[str, Any]) -> None:
    plain = EventFastPath(Wire(**{"path": "", "request": {"prompt": "$prompt"}, "final": "last", **wire}))
    for event in (b'{"a": "x", "last": false}', b'"x"'):
        assert plain.read(iter([event])) == ([], event)


def test_names_of_fields_may_be_anything() -> None:
    wire = Wire("", {"prompt": "$prompt"}, text=("class.a-b[0].0",), final="_.é", usage=UsagePaths("0"))

    def read(event: bytes) -> list[str]:
        return EventFastPath(wire).read(iter([event]))[0]

    assert read('{"class": {"a-b": [{"0": "x"}, 1]}, "_": {"é": false}}'.encode()) == ["x"]
    assert read('{"class": {"a-b": [{"0": "x"}]}, "_": {"é": true}}'.encode()) == []
    assert read(b'{"class": {"a-b": [{"0": "x"}]}, "_": null}') == []


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(("", "stop")),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from(("text", "eval_count")), below),
    max_leaves=3,
)
PLACED = st.fixed_dictionaries(
    {},
    optional={
        **{key: JSON for key in ("error", "stop", "done", "text", "content", "token", "usage", "details")},
        "content": st.text(),
        "response": st.text() | JSON,
        "choices": st.lists(st.fixed_dictionaries({}, optional={"text": st.text(), "finish_reason": JSON})),
        "token": st.fixed_dictionaries({"text": st.text()}, optional={"special": st.booleans() | st.none()}),
        "message": st.fixed_dictionaries({"content": st.text()}, optional={"thinking": JSON}),
        "stop": st.booleans(),
        "done": st.booleans(),
    },
)


@given(st.sampled_from(sorted(STREAMED)), PLACED)
def test_a_plain_event_says_the_same_when_it_is_read_in_full(name: str, event: dict[str, Json]) -> None:
    reader = STREAMED[name]
    for text in reader.plain.read(iter([msgspec.json.encode(event)]))[0]:
        assert reader.read(event) == Piece(text)


@given(st.sampled_from(sorted(STREAMED)), st.binary(max_size=8), st.integers(0, 60), st.integers(0, 8))
def test_bytes_that_are_plain_are_json_in_full(name: str, put: bytes, at: int, over: int) -> None:
    event = b'{"content":"a","choices":[{"text":"b"}],"response":"c","token":{"text":"d"},"message":{"content":"e"}}'
    event = event[:at] + put + event[at + over :]
    reader = STREAMED[name]
    for text in reader.plain.read(iter([event]))[0]:
        assert reader.read(decode_json(event, lenient=True)) == Piece(text)
