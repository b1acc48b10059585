"""Checks how an adapter decodes responses: every cut, truncation, damaged bytes, errors, and the order of events."""

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapter import Decoder
from gateway.core.errors import BackendError
from gateway.core.events import Event, PassthroughFields, ReasoningDelta, TextDelta
from gateway.core.grammar import Grammar
from gateway.core.provider_state import STATE_FIELD
from gateway.testing.adapter_case import Case
from gateway.testing.events import content, fold, join
from gateway.testing.replay import cut, cuttings, replay
from gateway.testing.strategies import damaged, pieces

LAW: Final = settings(max_examples=60, deadline=None, database=None, report_multiple_bugs=False)
SMALL_EVENT: Final = 1024
# A large length in the forms that wires have: four bytes in either order, and a number of variable length (protobuf).
_LENGTHS: Final = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff\x07")
_LONGEST_PREFIX: Final = 8

# Error bodies that have crashed gateways when they searched for the error's message.
BODIES: Final = (
    *(b"", b"{}", b"[]", b"null", b'"text"', b"7", b'{"error": null}', b'{"error": "text"}', b'{"error": []}'),
    *(b'{"error": {"message": 7, "type": [], "code": {}}}', b'{"error": {"message": "sentence", "code": "code"}}'),
    *(b"<html><body>Bad Gateway</body></html>", b"\xff\xfe\x00", b'{"error": {"message": "\\ud800"}}'),
    *(b"[" * 100_000, b'{"a":' * 100_000, b"9" * 10_000, b'{"error":{"message":"' + b"x" * 100_000 + b'"}}'),
)
HEADERS: Final[tuple[dict[str, str], ...]] = ({}, {"retry-after": "7", "content-type": "text/html; charset=latin-1"})


def answer_is_read(case: Case) -> None:
    """The response decodes without error, in the order that the grammar allows, to the events that the case expects."""
    events = _replay(case, [case.wire])
    assert not case.expected or join(events) == join(case.expected)


def cuts_change_nothing(case: Case) -> None:
    """The response decodes to the same events whole, byte by byte, and cut at random."""
    whole = join(_replay(case, [case.wire]))
    for cutting in cuttings(case.wire):
        assert join(_replay(case, cutting)) == whole
    adapter, conversation = case.shared, case.prepared()

    @LAW
    @given(pieces(case.wire))
    def law(cutting: list[bytes]) -> None:
        assert join(replay(case.decoder(adapter, conversation), cutting)) == whole

    law()


def truncation_is_noticed(case: Case) -> None:
    """The response cut off after any byte is either complete or an error; it is never shortened without an error. Nor
    is a response complete without the trailers of its wire."""
    adapter, conversation = case.shared, case.prepared()
    complete = content(_replay(case, [case.wire]))
    for end in range(len(case.wire)):
        try:
            events = replay(case.decoder(adapter, conversation), [case.wire[:end]])
        except BackendError:
            continue
        if case.marks_end:
            assert content(events) == complete, f"cut off after {end} of {len(case.wire)} bytes, it passed as complete"
        else:
            text = fold(events).text.rstrip("\ufffd")  # a cut inside a character
            assert fold(complete).text.startswith(text), f"cut off after {end} bytes, it says otherwise"
    if case.trailers:
        _, error = _until_error(adapter.decoder(conversation), [case.wire])
        assert error is not None, "without its trailers, it passed as complete"


def garbage_is_an_error(case: Case) -> None:
    """Damaged or invented bytes give events in a valid order, or a BackendError, and no other exception."""
    adapter, conversation = case.shared, case.prepared()

    @LAW
    @given(st.binary(max_size=200) | damaged(case.wire), st.sets(st.integers(0, 400), max_size=6))
    def law(wire: bytes, places: set[int]) -> None:
        try:
            replay(case.decoder(adapter, conversation), cut(wire, places))
        except BackendError as error:
            assert 400 <= error.status <= 599

    law()


def nothing_is_lost_before_an_error(case: Case) -> None:
    """The events before an error, and the error, do not depend on how the bytes were cut."""
    adapter, conversation = case.shared, case.prepared()

    @LAW
    @given(damaged(case.wire), st.sets(st.integers(0, len(case.wire)), max_size=6))
    def law(wire: bytes, places: set[int]) -> None:
        whole = _until_error(case.decoder(adapter, conversation), [wire])
        for cutting in (cut(wire, places), cut(wire, range(len(wire)))):
            assert _until_error(case.decoder(adapter, conversation), cutting) == whole

    law()


def done_ends_the_answer(case: Case) -> None:
    """`done` begins false, ends true, never becomes false again, and no events follow it."""
    assert not case.decoder(case.shared, case.prepared()).done, "done before the first byte"
    decoder = case.decoder(case.shared, case.prepared())
    grammar, finished = Grammar(), False
    for piece in cut(case.wire, range(len(case.wire))):
        grammar.check(events := decoder.feed(piece))
        assert not finished or (decoder.done and not content(events)), "something followed `done`"
        assert grammar.state == "FINISHED" or not decoder.done, "done before the finish event"
        finished = decoder.done
    grammar.check(decoder.close())
    assert decoder.done, "not done after the bytes ended"


def decoders_share_nothing(case: Case) -> None:
    """Two responses that arrive at the same time do not affect each other."""
    adapter, conversation = case.shared, case.prepared()
    decoders = [case.decoder(adapter, conversation) for _ in range(2)]
    events: list[list[Event]] = [[], []]
    for piece in cut(case.wire, range(0, len(case.wire), 7)):
        for decoder, seen in zip(decoders, events, strict=True):
            seen += [] if decoder.done else decoder.feed(piece)
    for decoder, seen in zip(decoders, events, strict=True):
        seen += [] if decoder.done else decoder.close()
    assert join(events[0]) == join(events[1]) == join(_replay(case, [case.wire]))


def only_its_own_dialect_sees_its_fields(case: Case) -> None:
    """What the events of the core do not express reaches no client of another dialect than the backend's own. The state
    of a provider has one form for all of them."""
    conversation = msgspec.structs.replace(case.prepared(), dialect="no dialect")
    events = replay(case.decoder(case.shared, conversation), [case.wire])
    passed = [name for event in events if isinstance(event, PassthroughFields) for name in event.fields]
    assert {*passed} <= {STATE_FIELD}, f"the fields {passed} would reach a client that cannot read them"


def calls_are_usable(case: Case) -> None:
    """Ids are present and unique, and the arguments of this valid response are JSON objects."""
    calls = fold(_replay(case, [case.wire])).calls
    assert all(call.id and call.name for call in calls), "a call without an id or a name"
    assert len({call.id for call in calls}) == len(calls), "two calls have the same id"
    for call in calls:
        assert isinstance(json.loads(call.arguments), dict), f"the arguments of {call.name} are not an object"


def events_are_bounded(case: Case) -> None:
    """An event that never ends is rejected before it exhausts the memory."""
    for filler in _fillers():
        _is_bounded(case, b"", filler)


def lengths_are_bounded(case: Case) -> None:
    """A message whose prefix promises more bytes than may ever come is rejected before they fill the memory."""
    for at in range(_LONGEST_PREFIX):
        for length in _LENGTHS:
            _is_bounded(case, case.wire[:at] + length, b"x" * 64)


def damage_is_noticed(case: Case) -> None:
    """On a wire with checksums, no damaged byte passes."""
    if not case.checksums:
        return
    adapter, conversation = case.shared, case.prepared()
    for at in range(len(case.wire)):
        damaged_wire = case.wire[:at] + bytes([case.wire[at] ^ 1]) + case.wire[at + 1 :]
        _, error = _until_error(case.decoder(adapter, conversation), [damaged_wire])
        assert error is not None, f"the damaged byte {at} passed"


def _is_bounded(case: Case, head: bytes, filler: bytes) -> None:
    budget = 16 * SMALL_EVENT
    decoder = case.decoder(case.build(SMALL_EVENT), case.prepared())
    fed = shown = 0
    try:
        shown += sum(_length(event) for event in decoder.feed(head)) if head else 0
        while fed < budget and not decoder.done:
            fed += len(filler)
            shown += sum(_length(event) for event in decoder.feed(filler))
    except BackendError:
        return
    if not decoder.done and fed - shown >= budget // 2:
        # It may drop what it does not know.
        kept = _kept_by(
            case.decoder(case.build(SMALL_EVENT), case.prepared()), [head, *([filler] * (fed // len(filler)))]
        )
        assert kept < budget // 2, f"{kept} of {fed} bytes of {filler[:8]!r}... behind {head!r} were kept"


def _kept_by(decoder: Decoder, pieces: Sequence[bytes]) -> int:
    """Returns the memory, in bytes, that a decoder takes behind these pieces."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for piece in pieces:
            decoder.feed(piece)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def errors_are_reported(case: Case) -> None:
    """Every status but 200, with any body, becomes a BackendError that a client can act on."""
    adapter = case.shared
    for status in (*range(201, 209), *range(300, 309), *range(400, 452), *range(500, 530), 599):
        for body in BODIES if status in (400, 429, 500) else BODIES[:12]:
            for headers in HEADERS:
                error = adapter.decode_error(status, headers, body)
                assert isinstance(error, BackendError), f"status {status} gave {error!r}"
                assert 400 <= error.status <= 599, f"status {status} became {error.status}"
                assert error.status < 500 or status not in (400, 422, 429), f"status {status} became {error.status}"
                assert error.status >= 500 or status < 500, (
                    f"the backend's {status} was reported as an error of the client"
                )
                assert error.message and len(error.message) < 2000, "no message, or one without end"
                assert "<html" not in error.message, "the error message contains an HTML page"
                error.message.encode()


def _replay(case: Case, cutting: list[bytes]) -> list[Event]:
    return replay(case.decoder(case.shared, case.prepared()), cutting)


def _until_error(decoder: Decoder, cutting: list[bytes]) -> tuple[list[Event], str | None]:
    """Returns the events, and the code of the error after them."""
    events: list[Event] = []
    try:
        for piece in cutting:
            events += [] if decoder.done else decoder.feed(piece)
        events += [] if decoder.done else decoder.close()
    except BackendError as error:
        return content([*events, *error.events]), error.code
    return content(events), None


def _fillers() -> Iterator[bytes]:
    yield b"x" * 64
    yield b"data: " + b"x" * 64
    yield b"data: x\n"
    yield b'{"a":' * 16
    yield b"\xff" * 64


def _length(event: Event) -> int:
    return len(event.text) if isinstance(event, TextDelta | ReasoningDelta) else 0


CHECKS: Final[tuple[Callable[[Case], None], ...]] = (
    answer_is_read,
    cuts_change_nothing,
    truncation_is_noticed,
    garbage_is_an_error,
    nothing_is_lost_before_an_error,
    done_ends_the_answer,
    decoders_share_nothing,
    only_its_own_dialect_sees_its_fields,
    calls_are_usable,
    events_are_bounded,
    lengths_are_bounded,
    damage_is_noticed,
    errors_are_reported,
)
