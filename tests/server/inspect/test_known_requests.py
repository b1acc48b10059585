"""What stays of ended requests: the newest, as they were, in few pieces of memory."""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.inspector.summary import TokenCounts
from gateway.server.inspect import known_requests
from gateway.server.inspect.known_requests import EndedRequest, EndedRequests
from gateway.server.telemetry.request_context import Outcome

OUTCOME: Final = Outcome("POST", "/v1/chat/completions", "key", "gpt", "demo", 200, "-", 1.5, "repair=2")


def ended(started: float, request_id: str = "req-1") -> EndedRequest:
    rules, tokens = ("TOOL_ORPHAN",), TokenCounts(2**70, 4, None, True)
    return EndedRequest(started, request_id, "openai_chat", started + 0.1, True, False, rules, tokens, OUTCOME)


# In the order of their end; how long ago each began is any.
BEGUN: Final = st.tuples(st.integers(0, 10**6), st.integers(0, 5))
REQUESTS: Final = st.lists(BEGUN, unique_by=lambda one: one[0], max_size=400)


@given(REQUESTS, st.integers(1, 200))
def test_the_newest_are_read_as_they_were(begun: Sequence[tuple[int, int]], most: int) -> None:
    requests = EndedRequests(most)
    all_of_them = [ended(27_000 + began * 1.000_1e-3, f"req-{name}") for began, name in begun]
    for one in all_of_them:
        requests.add(one)
    newest = sorted(all_of_them[-most:], key=lambda one: one.started, reverse=True)
    assert [*requests] == newest and len(requests) == len(newest)
    for name in range(6):
        expected = next((one for one in newest if one.id == f"req-{name}"), None)
        assert requests.with_id(f"req-{name}") == expected
    requests.clear()
    assert [*requests] == [] and len(requests) == 0 and requests.with_id("req-1") is None


def test_a_user_agent_of_any_bytes_is_read_as_it_was() -> None:
    requests = EndedRequests(1000)
    named = [msgspec.structs.replace(ended(at), user_agent=bytes([at, 255 - at]), first_ms=at / 8) for at in range(200)]
    for one in named:
        requests.add(one)
    assert [*requests] == named[::-1]


@pytest.mark.parametrize("most", [1, 63, 64, 65, 1000])
def test_little_more_than_is_wanted_is_kept(most: int) -> None:
    requests = EndedRequests(most)
    for number in range(3000):
        requests.add(ended(number))
        pieces = len(requests._packed) * requests._at_once
        assert len(requests) == min(number + 1, most) and pieces + len(requests._unpacked) < most + 2 * 64
    assert len(requests._packed) <= most / requests._at_once + 1
    assert all(len(piece.requests) < 260 * 64 for piece in requests._packed)


def test_those_that_end_while_they_are_read_are_left_out() -> None:
    requests = EndedRequests(100)
    for number in range(100):
        requests.add(ended(number))
    read = iter(requests)
    first = next(read)
    for number in range(100, 300):
        requests.add(ended(number))
    assert [one.started for one in (first, *read)] == [*range(99, -1, -1)]


class CountingDecoder:
    """Counts what it reads."""

    def __init__(self) -> None:
        self.read = 0

    def decode(self, data: bytes) -> list[EndedRequest]:
        self.read += 1
        return msgspec.json.decode(data, type=list[EndedRequest])


@pytest.mark.parametrize(("read", "most_pieces"), [(1, 0), (200, 6), (10_000, 157)])
def test_a_page_reads_no_more_than_it_must(read: int, most_pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = EndedRequests(10_000)
    for number in range(10_100):
        # One in a hundred began long before it ended.
        requests.add(ended(number - 5000.5 * (number % 100 == 0)))
    monkeypatch.setattr(known_requests, "_DECODER", decoder := CountingDecoder())
    assert len([*islice(requests, read)]) == read and decoder.read <= most_pieces


def test_a_request_is_found_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = EndedRequests(10_000)
    for number in range(10_000):
        requests.add(ended(number, f"req-{number}"))
    monkeypatch.setattr(known_requests, "_DECODER", decoder := CountingDecoder())
    found = requests.with_id("req-77")
    assert found is not None and found.started == 77 and decoder.read == 1
    assert requests.with_id("req-none") is None and decoder.read == 1
