"""Finds the summary that fits a request: the chain of its turns, the index of its root, the newest record in both."""

import asyncio
from typing import Final

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.history.prepare import repaired
from gateway.memory.history_digest import Boundary, history_digests, root
from gateway.memory.summaries.substitution import AppliedSummary, applied_to
from gateway.server.state.stores import RequestStore
from gateway.server.summaries.index import SummaryIndex, newest
from gateway.server.summaries.summary_store import index_in, record_in, shared_key

# A request does not wait for more records that are gone.
MOST_LOST: Final = 3


class Recalled(msgspec.Struct, frozen=True):
    """The facts of a request's history. `conversation` is the repaired one, `root` the digest under which its index
    stands. `applied` is the summary that this request uses; `lost` are the digests of summaries that are indexed and
    gone."""

    conversation: Conversation
    boundaries: tuple[Boundary, ...]
    root: bytes
    index: SummaryIndex
    applied: AppliedSummary | None
    lost: frozenset[bytes] = frozenset()

    @property
    def digests(self) -> frozenset[bytes]:
        """The digests of all boundaries of this request that a summary may cover."""
        return frozenset([boundary.digest for boundary in self.boundaries if not boundary.compacted])

    @property
    def covered(self) -> int:
        """The number of turns that the applied summary stands for."""
        return 0 if self.applied is None else self.applied.record.turns

    def newer_summary(self, index: SummaryIndex) -> bool:
        """Returns whether a later state of the index has a summary of more of these turns than the applied one."""
        found = newest(index, "summary", self.digests - self.lost)
        return found is not None and found.turns > self.covered


async def recall(store: RequestStore, conversation: Conversation, policy: Policy, large: bool) -> Recalled | None:
    """Returns the summary and the index of a history; None where the model has not spoken in it yet, where it is
    invalid, or while the store is away.

    `conversation` is the client's; a `large` one is looked through in a thread.
    """
    secret = await store.epoch()
    if secret is None:
        return None
    if large:
        surveyed = await asyncio.to_thread(_survey, conversation, policy, secret, store.tenant)
    else:
        surveyed = _survey(conversation, policy, secret, store.tenant)
    if surveyed is None:
        return None
    history, boundaries, first = surveyed
    [entry] = await store.get("idx", [shared_key(first)])
    recalled = await _apply(store, Recalled(history, boundaries, first, index_in(entry), None))
    # What could not be read in time is not lost.
    return None if store.failed and recalled.applied is None else recalled


def _survey(
    conversation: Conversation, policy: Policy, secret: bytes, tenant: str
) -> tuple[Conversation, tuple[Boundary, ...], bytes] | None:
    try:
        history = repaired(conversation, policy)
    except InvalidRequest:
        # The client gets this error when the request is prepared.
        return None
    boundaries = history_digests(history.turns, secret, tenant)
    first = root(boundaries)
    return None if first is None else (history, boundaries, first.digest)


async def _apply(store: RequestStore, recalled: Recalled) -> Recalled:
    """Adds the summary with the most turns whose record is there."""
    wanted, lost = recalled.digests, frozenset[bytes]()
    while len(lost) < MOST_LOST and (entry := newest(recalled.index, "summary", wanted - lost)) is not None:
        [found] = await store.get("sum", [shared_key(entry.digest)])
        record = record_in(found, store.tenant, entry.digest, entry.turns)
        if record is not None:
            applied = applied_to(recalled.conversation, record)
            return msgspec.structs.replace(recalled, applied=applied, lost=lost)
        lost |= {entry.digest}
    return msgspec.structs.replace(recalled, lost=lost)
