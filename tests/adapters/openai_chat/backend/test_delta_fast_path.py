import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.openai_chat.backend.chunk import ChunkReader
from adapters.openai_chat.backend.decoder import ChatDecoder
from adapters.openai_chat.backend.delta_fast_path import DeltaFastPath
from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, TextDelta, ToolCallDelta
from gateway.framing.json_text import decode_json
from gateway.testing.replay import replay
from tests.adapters.openai_chat.backend.wires import call, chunk, entry, sse


def learned(first: bytes, *begun: bytes) -> DeltaFastPath:
    """A template that has seen a chunk, after others have begun the answer."""
    reader = ChunkReader(1)
    template = DeltaFastPath(reader.more)
    for data in (json.dumps(chunk({"role": "assistant"})).encode(), *begun):
        reader.event(decode_json(data))
    document = decode_json(first, lenient=True)
    template.learn(first, document, reader.event(document))
    return template


def read(template: DeltaFastPath, chunk: bytes) -> list[Event] | None:
    """The events of a chunk that fits."""
    events: list[Event] = []
    return events if template.read(iter([chunk]), events) is None else None


def written(delta: Json, finish: str | None = None, **fields: Json) -> bytes:
    return json.dumps(chunk(delta, finish, **fields)).encode()


BEGUN = written(call(0, "a", "f", ""))


@pytest.mark.parametrize(
    ("first", "second", "events"),
    [
        (written({"content": "a"}), written({"content": 'é"\n'}), [TextDelta('é"\n')]),
        (written({"reasoning": "a"}), written({"reasoning": "b"}), [ReasoningDelta("b", "reasoning")]),
        (written({"content": "", "reasoning_content": "a"}), written({"content": "", "reasoning_content": "b"}),
         [ReasoningDelta("b")]),
        (written(call(0, arguments="{")), written(call(0, arguments="}")), [ToolCallDelta(0, "}")]),
        (written(call(0, "a", None, "{")), written(call(0, "a", None, "}")), [ToolCallDelta(0, "}")]),
        (written({"content": "a"}, fp=1), written({"content": "b"}, fp=1),
         [PassthroughFields("response", {"fp": 1}), TextDelta("b")]),
        (written({"content": "é"}), written({"content": "ü"}), [TextDelta("ü")]),
        (json.dumps(chunk({"content": "é"}), ensure_ascii=False).encode(),
         json.dumps(chunk({"content": "ü"}), ensure_ascii=False).encode(), [TextDelta("ü")]),
        (b'{"choices":[{"delta":{"content" : "a"}}]}', b'{"choices":[{"delta":{"content" : "b"}}]}', [TextDelta("b")]),
    ],
)  # fmt: skip
def test_a_chunk_that_fits_is_read_at_once(first: bytes, second: bytes, events: list[Event]) -> None:
    assert read(learned(first, BEGUN), second) == events


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (written({"content": "a"}), written({"content": ""})),
        (written({"content": "a"}), written({"content": None})),
        (written({"content": "a"}), written({"content": "b"}, finish="stop")),
        (written({"content": "a"}), written({"content": "b"}, usage={})),
        (written({"content": "a"}), written({"content": 'b"'}).replace(b'\\"', b'"')),
        (written({"content": "a"}), written({"content": "?"}).replace(b"?", b"\\ud83d")),
        (written({"content": "a"}), written({"content": "?"}).replace(b"?", b"\xff")),
        (written({"content": "a"}), written({"content": 'b","x":"'}).replace(b'\\"', b'"')),
        (written({"content": "a"}, fp=1), written({"content": "b"}, fp=2)),
        (written(call(0, arguments="{")), written(call(1, arguments="}"))),
        (written({"content": "a"}), b""),
    ],
)
def test_a_chunk_that_differs_elsewhere_is_not(first: bytes, second: bytes) -> None:
    assert read(learned(first, BEGUN), second) is None


def test_chunks_are_read_up_to_the_first_that_does_not_fit() -> None:
    fitting, odd = written({"content": "b"}), written({"content": "b"}, finish="stop")
    events: list[Event] = []
    chunks = iter([fitting, fitting, odd, fitting])
    assert learned(written({"content": "a"})).read(chunks, events) is odd
    assert events == [TextDelta("b"), TextDelta("b")]
    assert list(chunks) == [fitting]


@pytest.mark.parametrize(
    "first",
    [
        written({"content": "a"}, finish="stop"),
        written({"content": "a"}, odd="\U0001f600").replace(b"\\ude00", b""),
        written({"content": "a"}).replace(b'{"content"', b'{"reasoning": "\\ud83d", "content"'),
        written({"content": "a", "reasoning": "b"}),
        written({"content": "a"}, mirror={"content": "a"}),
        written({"content": [{"type": "text", "text": "a", "content": "a"}]}),
        written({"content": [{"type": "text", "text": "a"}]}, mirror={"content": "a"}),
        written(call(0, None, "f", '{"n":1}')),
        written({"content": "a", "function_call": {"name": "g"}}),
        written({"content": "a", "tool_calls": [entry(1, name="g")]}),
        written({**call(0, arguments="a"), "function_call": {"name": "g"}}),
        written({"tool_calls": [entry(0, arguments="a"), entry(0, arguments="b")]}),
        b'{"choices":[{"delta":{"content":"a","content":"a"}}]}',
        b'{"choices":[{"delta":{"content":"b","content":"a"}}]}'.replace(b"b", b"a", 1),
    ],
)
def test_what_could_mean_something_else_is_not_learned(first: bytes) -> None:
    assert read(learned(first, BEGUN), first) is None


def test_a_backend_that_changes_more_is_given_up() -> None:
    template = DeltaFastPath(ChunkReader(1).more)
    for number in range(20):
        document = chunk({"content": "a"}, noise=number)
        written = json.dumps(document).encode()
        assert read(template, written) is None
        template.learn(written, document, [TextDelta("a")])
    data = json.dumps(chunk({"content": "a"}))
    template.learn(data.encode(), json.loads(data), [TextDelta("a")])
    assert read(template, data.encode()) is None


WORDS = st.sampled_from(["", "a", "{", "}", "{}", '"', "é", "\u2028", '"content":"a"'])
PIECES = st.builds(call, st.integers(0, 1), st.none() | st.just("a"), st.none() | st.just("f"), st.none() | WORDS)
DELTAS = st.one_of(
    st.builds(lambda text: {"content": text}, WORDS),
    st.builds(lambda text: {"reasoning_content": text}, WORDS),
    st.builds(lambda text, more: {"content": text, "reasoning": more}, WORDS, WORDS),
    PIECES,
    st.builds(lambda text, piece: {"content": text, **piece}, WORDS, PIECES),
    st.builds(lambda name, piece: {"function_call": {"name": name}, **piece}, WORDS, PIECES),
)
FIELDS = st.sampled_from([{}, {}, {}, {"fp": 1}, {"content": "a"}])


@settings(max_examples=2 * settings().max_examples, deadline=None)
@given(st.lists(st.tuples(DELTAS, FIELDS), max_size=10))
def test_what_is_learned_changes_nothing(pieces: list[tuple[Json, dict[str, Json]]]) -> None:
    wire = sse(*(chunk(delta, None, **fields) for delta, fields in pieces), chunk(finish="stop"))
    assert outcome(wire, learning=True) == outcome(wire, learning=False)


def outcome(wire: bytes, *, learning: bool) -> list[Event] | str:
    with pytest.MonkeyPatch.context() as patched:
        if not learning:
            patched.setattr(DeltaFastPath, "read", lambda self, chunks, events: next(chunks, None))
        try:
            return replay(ChatDecoder(1 << 20, 1), [wire])
        except BackendError as error:
            return error.message
