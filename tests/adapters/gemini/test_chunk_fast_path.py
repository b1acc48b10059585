"""A plain chunk tells the same events as its full form."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.gemini.chunk import ChunkReader
from adapters.gemini.decoder import GeminiDecoder
from adapters.gemini.plain_chunk import read_plain
from gateway.core.events import Event
from gateway.testing.case import MAX_EVENT
from gateway.testing.replay import replay
from tests.adapters.gemini.wires import chunk, sse, text, usage

PARTS = st.builds(text, st.text(max_size=4)) | st.builds(lambda said: text(said, thought=True), st.text(max_size=4))
EXTRA = st.sampled_from([{}, usage(), usage(thoughts=2), {"createTime": "now"}])
CHUNKS = st.lists(
    st.builds(lambda parts, extra: chunk(*parts, **extra), st.lists(PARTS, max_size=2), EXTRA), max_size=6
)


@settings(max_examples=100, deadline=None, database=None)
@given(CHUNKS, st.booleans())
def test_both_tell_the_same(chunks: list[dict[str, Any]], passes: bool) -> None:
    wire = [*chunks, chunk(text(""), finish="STOP")]
    reader = ChunkReader(1, passes=passes)
    expected: list[Event] = [event for made in wire for event in reader.chunk(made)]
    assert replay(GeminiDecoder(MAX_EVENT, 1, passes=passes), [sse(*wire)]) == expected


def test_a_chunk_of_one_text_takes_it() -> None:
    found = read_plain(json.dumps(chunk(text("a"), **usage())).encode())
    assert found is not None and found.text == "a" and json.loads(bytes(found.usage_metadata))["promptTokenCount"] == 3
    assert read_plain(json.dumps(chunk(text("a", thought=True))).encode()) is None
    assert read_plain(json.dumps(chunk(text("a"), finish="STOP")).encode()) is None
