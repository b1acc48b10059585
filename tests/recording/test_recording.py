import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.notices import Notice
from gateway.recording import lines as kinds
from gateway.recording.line_format import decode_line, encode_line
from gateway.recording.lines import (
    BytesLine,
    CloseLine,
    EndLine,
    HeaderLine,
    HeadLine,
    Line,
    NoticeLine,
    RecordingError,
    RequestLine,
    RouteLine,
    SentLine,
    UnknownLine,
    data_of,
)
from gateway.recording.recording import Recording, read_recording, write_recording
from tests.recording.samples import golden_recordings

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
X = st.integers(1, 9)
T = st.floats(0, 1e6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=6,
)
HEADERS = st.dictionaries(TEXT, TEXT, max_size=3)
DATA = st.binary(max_size=40).map(data_of)
SIDE = st.sampled_from(["backend", "client"])
NAMES = frozenset(
    {"kind", "unknown"}.union(
        *(getattr(kinds, name).__struct_fields__ for name in dir(kinds) if name[:-4] and name.endswith("Line"))
    )
)
UNKNOWN = st.dictionaries(TEXT.filter(lambda name: name not in NAMES), JSON, max_size=3)
LINES = st.one_of(
    st.builds(RequestLine, X, TEXT, TEXT, TEXT, TEXT, HEADERS, DATA, unknown=UNKNOWN),
    st.builds(RouteLine, X, TEXT, TEXT, TEXT, options=UNKNOWN, policy=UNKNOWN, unknown=UNKNOWN),
    st.builds(SentLine, X, TEXT, TEXT, T, HEADERS, DATA, st.booleans(), unknown=UNKNOWN),
    st.builds(HeadLine, X, SIDE, T, st.integers(200, 599), HEADERS, st.booleans(), unknown=UNKNOWN),
    st.builds(BytesLine, X, SIDE, T, DATA, st.booleans(), unknown=UNKNOWN),
    st.builds(CloseLine, X, T, HEADERS, unknown=UNKNOWN),
    st.builds(NoticeLine, X, T, st.builds(Notice, st.just("repair"), st.just("added"), TEXT, TEXT), unknown=UNKNOWN),
    st.builds(EndLine, X, st.integers(0, 599), TEXT, TEXT, unknown=UNKNOWN),
    st.builds(UnknownLine, st.just("later"), st.just(0), UNKNOWN),
)
RECORDINGS = st.builds(
    Recording, st.builds(HeaderLine, gateway=TEXT, note=TEXT, unknown=UNKNOWN), st.lists(LINES, max_size=6).map(tuple)
)


@given(RECORDINGS)
def test_what_is_written_is_read(recording: Recording) -> None:
    written = write_recording(recording)
    assert read_recording(written) == recording
    assert write_recording(read_recording(written)) == written


@given(st.binary(max_size=200))
def test_bytes_come_back(data: bytes) -> None:
    line = BytesLine(1, "backend", 0.5, data_of(data))
    read = decode_line(encode_line(line).rstrip(b"\n"))
    assert isinstance(read, BytesLine) and read.data.content == data


def test_half_a_character_in_words_is_written_as_a_question_mark() -> None:
    notice = Notice("repair", "changed", "TOOL_ID_UNKNOWN", "the id 'a\ud800é' is unknown")
    written = encode_line(NoticeLine(1, 0, notice, unknown={"more": "\udfff"}))
    line = decode_line(written.strip())
    assert isinstance(line, NoticeLine) and line.notice.detail == "the id 'a?é' is unknown"
    assert line.unknown == {"more": "?"}


def test_unknown_kinds_and_fields_survive() -> None:
    written = (
        b'{"kind":"recording","format":1,"gateway":"9","made":"","later":[1]}\n'
        b'{"kind":"request","x":1,"id":"r","dialect":"openai_chat","method":"POST","path":"/","unknown":{"a":1}}\n'
        b'{"kind":"mood","x":1,"value":"good"}\n'
    )
    recording = read_recording(written)
    again = read_recording(write_recording(recording))
    assert again == recording
    assert again.header.unknown == {"later": [1]}
    (interaction,) = again.interactions()
    assert interaction.request.unknown == {"unknown": {"a": 1}}
    assert [line.kind for line in interaction.others] == ["mood"]
    assert b'"value":"good"' in write_recording(again.with_interactions([interaction]))


@pytest.mark.parametrize("recording", golden_recordings()[::9])
def test_the_lines_of_a_request_are_gathered(recording: Recording) -> None:
    (interaction,) = recording.interactions()
    assert recording.with_interactions([interaction]).interactions() == (interaction,)
    assert read_recording(write_recording(recording)).interactions() == (interaction,)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no recording"),
        (b"{}\n", "Line 1 of the recording cannot be read: it has no kind"),
        (b'{"kind":"request","x":1,"id":"","dialect":"","method":"","path":""}\n', "must have the kind recording"),
        (b'{"kind":"recording"}\nno\n', "Line 2"),
        (b'{"kind":"recording"}\n{"kind":"bytes","x":1}\n', "Line 2 .* bytes: .*side"),
        (b'{"kind":"recording"}\n{"kind":"bytes","x":1,"side":"client","t":1,"data":{"base64":"?"}}\n', "Line 2"),
        (b'{"kind":"recording","format":2}\n{"kind":"bytes"}\n', "format 2; this version reads 1"),
        (b'{"kind":"recording"}\n{"kind":"mood"}\n{"kind":"recording"}\n', "second recording begins in line 3"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(data: bytes, said: str) -> None:
    with pytest.raises(RecordingError, match=said):
        read_recording(data)


def test_a_line_of_no_request_is_refused() -> None:
    recording = Recording(HeaderLine(), (BytesLine(3, "client", 1, data_of(b"x")),))
    with pytest.raises(RecordingError, match="request 3"):
        recording.interactions()


def test_two_requests_of_one_number_are_refused() -> None:
    (recording,) = golden_recordings()[:1]
    with pytest.raises(RecordingError, match="Two requests have the number 1"):
        msgspec.structs.replace(recording, lines=recording.lines * 2).interactions()


def test_what_a_killed_writer_left_is_dropped() -> None:
    (recording,) = golden_recordings()[:1]
    written = write_recording(recording)
    for end in range(written.index(b"\n") + 1, len(written), 211):
        whole = written[:end].count(b"\n") - 1  # the first is the header's
        assert read_recording(written[:end]).lines == recording.lines[:whole]


def test_the_caps_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    line: Line = BytesLine(1, "client", 1, data_of(b"x" * 300))
    monkeypatch.setattr("gateway.recording.line_format.MAX_LINE", 200)
    with pytest.raises(RecordingError, match="longer than the 200"):
        encode_line(line)
    with pytest.raises(RecordingError, match="longer than 200"):
        decode_line(msgspec.json.encode({"kind": "x" * 300}))
    monkeypatch.setattr("gateway.recording.recording.MAX_FILE", 10)
    with pytest.raises(RecordingError, match="more than the 10"):
        write_recording(Recording())
    with pytest.raises(RecordingError, match="more than the 10"):
        read_recording(b"x" * 11)
