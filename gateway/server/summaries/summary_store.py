"""Stores what all workers share about summaries: the index of each conversation, the records of its summaries,
and the tokens of each day.

A record is written once. The others are changed by compare-and-set. Keys hold the version of the job's instructions and
of what is stored, so that a gateway with other ones neither uses these summaries nor disturbs them. Every coroutine
raises StoreUnavailable.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.memory.summaries.job_request import PROMPT_VERSION
from gateway.memory.summaries.summary import FORM as RECORD_FORM
from gateway.memory.summaries.summary import RecordUnreadable, SummaryRecord, decode_record
from gateway.server.state.store import ABSENT, Entry, Put, StateStore
from gateway.server.summaries.index import FORM as INDEX_FORM
from gateway.server.summaries.index import SummaryIndex, decode_index

# How long a conversation may pause before its summaries are forgotten; each use begins this time anew.
KEPT_S: Final = 7 * 24 * 3600.0
DAY_S: Final = 24 * 3600.0
# Other workers change the same value at the same time, each once for a request.
TRIES: Final = 8


def shared_key(digest: bytes) -> bytes:
    """Returns the key of a record (by the digest of its turns) or of an index (by that of its root)."""
    return b"%d.%d.%d:%s" % (PROMPT_VERSION, INDEX_FORM, RECORD_FORM, digest)


def index_put(root: bytes, index: SummaryIndex, version: int) -> Put:
    """Returns the write of an index, if the stored one still has this version."""
    return Put("idx", shared_key(root), index.encode(), KEPT_S, version)


def record_put(record: SummaryRecord) -> Put:
    """Returns the write of a record, if there is none for its turns yet."""
    return Put("sum", shared_key(record.digest), record.encode(), KEPT_S, ABSENT)


def record_in(entry: Entry | None, tenant: str, digest: bytes, turns: int) -> SummaryRecord | None:
    """Returns the record for the turns that a digest stands for; None where it is gone, unreadable or another one."""
    try:
        record = None if entry is None else decode_record(entry.data)
    except RecordUnreadable:
        return None
    fits = record is not None and (record.tenant, record.digest, record.turns) == (tenant, digest, turns)
    return record if fits else None


def index_in(entry: Entry | None) -> SummaryIndex:
    """Returns the index of an entry; an empty one where there is none."""
    return SummaryIndex() if entry is None else decode_index(entry.data)


async def keep(store: StateStore, tenant: str, root: bytes, digest: bytes) -> None:
    """Lets a summary that was used, and its index, live on."""
    await store.extend(tenant, "sum", [shared_key(digest)], KEPT_S)
    await store.extend(tenant, "idx", [shared_key(root)], KEPT_S)


async def read_index(store: StateStore, tenant: str, root: bytes) -> tuple[SummaryIndex, int]:
    """Returns the index of a root and its version; an empty one and `ABSENT` where there is none."""
    [entry] = await store.get(tenant, "idx", [shared_key(root)])
    return index_in(entry), ABSENT if entry is None else entry.version


async def has_record(store: StateStore, record: SummaryRecord) -> bool:
    """Returns whether there is a record already for the turns of this one."""
    [entry] = await store.get(record.tenant, "sum", [shared_key(record.digest)])
    return record_in(entry, record.tenant, record.digest, record.turns) is not None


async def change_index(
    store: StateStore, tenant: str, root: bytes, change: Callable[[SummaryIndex], SummaryIndex]
) -> SummaryIndex | None:
    """Stores what `change` makes of the index; it is called again where another worker was faster. Returns what is
    stored then; None where others kept changing it."""
    for _ in range(TRIES):
        index, version = await read_index(store, tenant, root)
        changed = change(index)
        if changed == index or await store.put(tenant, index_put(root, changed, version)):
            return changed
    return None


async def spend(store: StateStore, tenant: str, tokens: int, most: int | None, now: float) -> bool:
    """Adds to the tokens that a tenant's summaries have used on the day (UTC) of `now`, in seconds since 1970. Returns
    False, and adds nothing, where they would exceed `most` (None: no limit). Less than no tokens are given back."""
    key = tokens_key(now)
    for _ in range(TRIES):
        [entry] = await store.get(tenant, "idx", [key])
        spent = spent_in(entry)
        if tokens > 0 and most is not None and spent + tokens > most:
            return False
        data = msgspec.msgpack.encode(max(0, spent + tokens))
        if await store.put(tenant, Put("idx", key, data, DAY_S, ABSENT if entry is None else entry.version)):
            return True
    return False


def tokens_key(now: float) -> bytes:
    """Returns the key of the tokens of a day (UTC)."""
    return b"tokens %d" % (now // DAY_S)


def spent_in(entry: Entry | None) -> int:
    """Returns the tokens that have been spent."""
    return 0 if entry is None else _TOKENS.decode(entry.data)


_TOKENS: Final = msgspec.msgpack.Decoder(int)
