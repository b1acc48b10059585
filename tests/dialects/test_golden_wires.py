"""Every golden wire as a client of every dialect reads it: whole as streamed, and cut off anywhere as a failure."""

import itertools
import json
import pkgutil
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

import msgspec
import pytest

from gateway.adapter import Adapter
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.dialect import AnswerHead, ClientRequest
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from gateway.settings import check_options
from gateway.testing.adapter_case import MAX_EVENT, AdapterClass
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from gateway.testing.golden import Golden, read_all
from tests.dialects.cases import CASES
from tests.golden_wires import READERS
from tests.paths import ROOT
from tests.tiers import sample

HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "a-model", lambda: 1_700_000_000)
# A wire is cut in the middle of each event, and so many bytes around its end; and at so many places of its length.
AROUND: Final = (-1, 0, 1)
SPREAD: Final = 12
EVERY: Final = [found for found in read_all(ROOT / "tests" / "golden", READERS) if found.scenario.status == 200]

goldens = pytest.mark.parametrize("golden", EVERY, ids=str)
cases = pytest.mark.parametrize("case", CASES, ids=str)


def exchange(golden: Golden, case: DialectCase) -> Exchange:
    """The exchange of the scenario's request, as if a client of the case had sent it.

    A limit or a rule of the scenario may refuse the request: the wire is then that of another request."""
    adapter, written = parts(str(golden))
    dialect = case.dialect()
    asked = Conversation(
        written.turns[:1] if written.turns[0].role == "user" else (),
        written.tools,
        model="m",
        stream=True,
        include_usage=True,
        dialect=dialect.name,
        paths=dialect.paths,
    )
    asked = asked if asked.turns else msgspec.structs.replace(asked, turns=greeting(case).conversation.turns)
    return Exchange(adapter, asked, golden.scenario.policy)


@cache
def parts(name: str) -> tuple[Adapter, Conversation]:
    """The adapter and the conversation of a scenario."""
    golden = next(found for found in EVERY if str(found) == name)
    scenario = golden.scenario
    kind: AdapterClass = pkgutil.resolve_name(scenario.adapter)
    adapter = kind(check_options(scenario.options, kind.Options, "options"), MAX_EVENT)
    return adapter, load_dialect(scenario.dialect).decode(read_document(golden.request), scenario.head).conversation


def greeting(case: DialectCase) -> ClientRequest:
    """A request that the case's own client writes."""
    return case.decode(json.dumps(case.dialect().example("m")).encode(), Conversation((), model="m", stream=True))


def events_of(opened: Exchange, wire: bytes) -> Iterator[Sequence[Event]]:
    """What arrives, in the pieces in which it arrives."""
    opened.on_response_head(200, {})
    if not opened.done:
        yield opened.feed(wire)
    yield [*opened.close(), *opened.estimate()]


def streamed(case: DialectCase, opened: Exchange, wire: bytes) -> tuple[bytes, list[Event], BackendError | None]:
    """The bytes of a stream and the events in it; the failure is written at the end of the bytes, if there are any."""
    encoder = case.dialect().stream_encoder(greeting(case), HEAD)
    data = b""
    events: list[Event] = []
    try:
        for arrived in events_of(opened, wire):
            events += arrived
            data += encoder.feed(arrived)
    except BackendError as error:
        data += encoder.feed(error.take_events())
        return (data + encoder.fail(error) if data else b""), events, error
    return data + encoder.close(), events, None


@sample(lambda golden, case: (golden.scenario.adapter, str(case)))
@goldens
@cases
def test_a_wire_says_the_same_whole_and_streamed(case: DialectCase, golden: Golden) -> None:
    data, events, error = streamed(case, exchange(golden, case), golden.wire)
    read = case.read_stream(data)
    if error is not None:
        assert read.finish is None and (read.error is not None) is bool(data)
        return
    whole = case.read_whole(case.dialect().encode_answer(greeting(case), HEAD, events))
    assert said(read) == said(whole)
    assert read.finish is not None and read.usage in (None, whole.usage)


def said(answer: ClientAnswer) -> tuple[object, ...]:
    """An answer without its tokens; the arguments of calls as values, where no limit cut them off."""
    calls = [(call.id, call.name, arguments(call.arguments or "{}")) for call in answer.calls]
    return answer.text, answer.reasoning, calls, answer.finish, answer.error


def arguments(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def cuts(wire: bytes) -> list[int]:
    """The places at which a wire is cut off."""
    ends = [found.end() for found in re.finditer(rb"\r?\n\r?\n|\n", wire)]
    middles = [(one + other) // 2 for one, other in itertools.pairwise([0, *ends])]
    places = {*middles, *(end + by for end in ends for by in AROUND), *(len(wire) * n // SPREAD for n in range(SPREAD))}
    return sorted(at for at in places if 0 <= at < len(wire))


@cache
def finished_at(name: str) -> int:
    """The number of bytes of a wire after which its answer is complete. Of an answer that only the end of the bytes
    completes, these are all."""
    golden = next(found for found in EVERY if str(found) == name)
    opened = exchange(golden, CASES[0])
    opened.on_response_head(200, {})
    try:
        for at in range(len(golden.wire)):
            opened.feed(golden.wire[at : at + 1])
            if opened.finished:
                return at + 1
    except BackendError:
        pass
    return len(golden.wire.rstrip())


@sample(lambda golden, case: (golden.scenario.adapter, str(case)))
@goldens
@cases
def test_a_wire_that_is_cut_off_is_a_failure(case: DialectCase, golden: Golden) -> None:
    wire, end = golden.wire, finished_at(str(golden))
    for at in cuts(wire):
        opened = exchange(golden, case)
        data, _, error = streamed(case, opened, wire[:at])
        read = case.read_stream(data)
        if error is None:
            # The line that ends an event may be lacking.
            assert opened.finished and at >= end - len(b"\r\n\r\n"), f"cut off after {at} bytes, it passes for complete"
            continue
        assert read.finish is None, f"cut off after {at} of {len(wire)} bytes, it looks complete"
        if data:
            assert read.error, f"cut off after {at} of {len(wire)} bytes, the failure is not said"
        else:
            assert case.read_error(case.dialect().encode_error(error).body) == error.message
