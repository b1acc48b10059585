"""Keeps what is known of the latest requests that have ended, in few pieces of memory.

Many are packed at once, since a single one would find neither the code for that nor the memory in the caches of the
processor, and each would then lie among what later requests use (bench.inspector).
"""

import heapq
from collections import deque
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

import msgspec

from gateway.server.inspect.entry import EndedRequest

# At most so many are packed at once.
_AT_ONCE: Final = 64
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(list[EndedRequest])


class _Packed(msgspec.Struct, frozen=True, gc=False):
    """Requests as JSON, whose numbers may have any size. `latest` is the time at which the last of them began."""

    latest: float
    requests: bytes


class EndedRequests:
    """The `most` requests that ended last."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._at_once = min(_AT_ONCE, most)
        # In the order of their end. The oldest of those that are packed may be more than are wanted.
        self._packed: deque[_Packed] = deque()
        self._unpacked: list[EndedRequest] = []

    def __len__(self) -> int:
        return min(self._most, len(self._packed) * self._at_once + len(self._unpacked))

    def add(self, ended: EndedRequest) -> None:
        """Takes a request that has ended."""
        self._unpacked.append(ended)
        if len(self._unpacked) == self._at_once:
            self._pack()

    def _pack(self) -> None:
        latest = max(one.started for one in self._unpacked)
        self._packed.append(_Packed(latest, _ENCODER.encode(self._unpacked)))
        self._unpacked.clear()
        if (len(self._packed) - 1) * self._at_once >= self._most:
            self._packed.popleft()

    def __iter__(self) -> Iterator[EndedRequest]:
        """Yields the requests, those that began last first, and reads no more of them than that takes. Those that end
        meanwhile are left out."""
        pieces = [*self._packed]
        # When the last request of a piece or of an older one began.
        latest = [*accumulate((piece.latest for piece in pieces), max)]
        read = [(-one.started, one) for one in self._wanted(self._unpacked, 0)]
        heapq.heapify(read)
        newer = len(self._unpacked)
        while pieces:
            while read and -read[0][0] > latest[len(pieces) - 1]:
                yield heapq.heappop(read)[1]
            for one in self._wanted(_DECODER.decode(pieces.pop().requests), newer):
                heapq.heappush(read, (-one.started, one))
            newer += self._at_once
        while read:
            yield heapq.heappop(read)[1]

    def with_id(self, request_id: str) -> EndedRequest | None:
        """Returns the request of this id that began last, or None."""
        written = msgspec.json.encode(request_id)
        found = self._wanted(self._unpacked, 0)
        newer = len(self._unpacked)
        for piece in reversed(self._packed):
            if written in piece.requests:
                found += self._wanted(_DECODER.decode(piece.requests), newer)
            newer += self._at_once
        return max((one for one in found if one.id == request_id), key=lambda one: one.started, default=None)

    def _wanted(self, requests: list[EndedRequest], newer: int) -> list[EndedRequest]:
        """Returns those of a piece that are among the last, so many having ended after them."""
        return requests[max(0, len(requests) + newer - self._most) :]

    def clear(self) -> None:
        """Forgets all."""
        self._packed.clear()
        self._unpacked.clear()
