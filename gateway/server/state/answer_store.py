"""Looks up, writes and deletes the answers of stateful dialects, for one client at a time.

Unlike what other features keep, an answer that cannot be read is no miss: without its history a request would be
answered as another conversation.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

import msgspec

from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.dialects.document import Document
from gateway.dialects.stateful import AnswerRecord, StatefulDialect, StoringEncoder
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.memory import MemoryStore
from gateway.server.state.store import Put, Space, StoreUnavailable
from gateway.server.state.stores import Stores
from gateway.server.telemetry.request_context import RequestContext
from gateway.settings import ResponsesSettings, Settings

SPACE: Final[Space] = "rsp"
# Of the history of one answer: a request that continues it has to read and send all of it.
MOST_LINKS: Final = 512
MOST_BYTES: Final = 8 * 2**20
# What is continued is renewed once this share of its time is over, and not each time: a file writes all of it again.
RENEWAL: Final = 1 / 8
_KEY_BYTES: Final = 16

Found: TypeAlias = Mapping[str, bytes | None]


def _not_stored(why: str) -> Notice:
    return Notice("state", "ignored", "RESPONSE_NOT_STORED", why, level="debug")


OFF: Final = _not_stored("nothing may be remembered of the request")
SWITCHED_OFF: Final = _not_stored("responses.store is false in the settings")
UNSHARED: Final = _not_stored("each worker has a memory of its own; with state.store they share one store")


class Answers(Protocol):
    """The answers that a request may continue."""

    async def find(self, missing: Callable[[Found], Sequence[str]]) -> Found:
        """Returns the entries that `missing` names, also those that it names only once it has others. Raises
        GatewayError 503 while the store cannot be read."""
        ...

    async def record(self, encoder: StoringEncoder, context: RequestContext) -> None:
        """Stores the answer of an encoder that has all its events; where that fails, the answer says so."""
        ...


class AnswerStores:
    """The answers of all clients, in the stores of the gateway."""

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self._settings = settings
        self._stores = stores
        self._several = settings.server.workers > 1

    @property
    def lost_between_workers(self) -> bool:
        """Whether the settings want answers to be stored, and each worker would keep its own."""
        wanted = any(model.responses.store for model in self._settings.models.values())
        return wanted and self._several and self._stores.shared.name == MemoryStore.name

    def of(self, context: RequestContext) -> "AnswerStore | None":
        """Returns the answers of the request's client; None where nothing may be remembered of the request. Raises
        InvalidRequest as `Stores.of` does."""
        found = self._stores.of(context)
        if found is None:
            return None
        return AnswerStore(found.store, found.tenant, self._settings.responses.ttl_s)

    def for_answer(
        self, answers: "AnswerStore | None", model: ResponsesSettings, notices: list[Notice]
    ) -> "AnswerStore | None":
        """Returns where an answer of this model is stored; None, and adds why, where it is not."""
        if answers is None:
            notices.append(OFF)
        elif not model.store:
            notices.append(SWITCHED_OFF)
        elif self._several and answers.in_memory:
            notices.append(UNSHARED)
        else:
            return answers
        return None


class AnswerStore:
    """The answers of one client, which live for `ttl_s` seconds."""

    def __init__(self, store: GuardedStore, tenant: str, ttl_s: float) -> None:
        self.in_memory = store.name == MemoryStore.name
        self._store = store
        self._tenant = tenant
        self._ttl_s = ttl_s

    async def find(self, missing: Callable[[Found], Sequence[str]]) -> Found:
        """Returns the entries that `missing` names, also those that it names only once it has others. Raises
        GatewayError 503 while the store cannot be read."""
        found: dict[str, bytes | None] = {}
        while names := missing(found):
            try:
                keys = [_key(name) for name in names]
                entries = await self._store.get(self._tenant, SPACE, keys)
            except StoreUnavailable as failure:
                raise _unavailable(failure) from failure
            for name, entry in zip(names, entries, strict=True):
                found[name] = None if entry is None else entry.data
        return found

    async def delete(self, names: Sequence[str]) -> None:
        """Deletes these entries. Raises GatewayError 503 while the store cannot be written."""
        try:
            await self._store.delete(self._tenant, SPACE, [_key(name) for name in names])
        except StoreUnavailable as failure:
            raise _unavailable(failure) from failure

    async def record(self, encoder: StoringEncoder, context: RequestContext) -> None:
        """Stores the answer of an encoder that has all its events; where that fails, the answer says so."""
        refused = await self._write(encoder.record(self._ttl_s * RENEWAL))
        if refused is not None:
            notice = Notice("state", "failed", "RESPONSE_NOT_STORED", refused, level="warning")
            encoder.deny(notice)
            context.note((notice,))

    async def _write(self, record: AnswerRecord) -> str | None:
        """Returns why the record is not stored; None: it is."""
        if record.links > MOST_LINKS:
            return f"the history has {record.links} responses; the most is {MOST_LINKS}"
        if record.size > MOST_BYTES:
            return f"the history has {record.size} bytes; the most is {MOST_BYTES}"
        try:
            if renewed := [_key(name) for name in record.renewed]:
                await self._store.extend(self._tenant, SPACE, renewed, self._ttl_s)
            await self._store.put(
                self._tenant, *[Put(SPACE, _key(name), data, self._ttl_s) for name, data in record.entries]
            )
        except StoreUnavailable as failure:
            return str(failure)
        return None


async def with_stored(dialect: StatefulDialect, document: Document, answers: Answers | None) -> Document:
    """Returns a document with the entries that it refers to; without any where nothing may be remembered. Raises
    InvalidRequest, and GatewayError 503 while the store cannot be read."""
    if answers is None:
        return document
    stored = await answers.find(lambda found: dialect.missing_entries(msgspec.structs.replace(document, stored=found)))
    return msgspec.structs.replace(document, stored=stored) if stored else document


def _key(name: str) -> bytes:
    """Returns the key of an entry: of one length, whatever a client asks for."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:_KEY_BYTES]


def _unavailable(failure: StoreUnavailable) -> GatewayError:
    return GatewayError(
        f"Stored responses cannot be used now: {failure}. Send the request again, or the whole history.",
        status=503,
        code="store_unavailable",
        headers={"retry-after": "1"},
    )
