"""The store as one request uses it: under the request's tenant, and within one deadline for all that it reads."""

import time
from collections.abc import Sequence
from typing import Final

from gateway.core.notices import Notice
from gateway.server.state.guarded_store import GuardedStore
from gateway.server.state.store import Entry, Space, StoreUnavailable

SLOW: Final = Notice(
    "state",
    "failed",
    "STORE_SLOW",
    "the store did not answer in time; the request is served without what it remembers",
    level="debug",
)
DOWN: Final = Notice(
    "state",
    "failed",
    "STORE_DOWN",
    "the store cannot be used; the request is served without what it remembers",
    level="debug",
)


class RequestStore:
    """`store` is for work that outlives the request; `tenant` owns everything that the request reads and writes."""

    def __init__(self, store: GuardedStore, tenant: str, deadline_s: float) -> None:
        self.store = store
        self.tenant = tenant
        self._left_s = deadline_s
        self._notices: list[Notice] = []

    async def get(self, space: Space, keys: Sequence[bytes]) -> list[Entry | None]:
        """Returns the entries in the order of the keys. Where the store fails, or all reads of this request together
        take longer than their deadline, they are missing; `take_notices` says so."""
        if not keys:
            return []
        if self._left_s <= 0:
            self._note(SLOW)
            return [None] * len(keys)
        began = time.monotonic()
        try:
            return await self.store.get(self.tenant, space, keys, within_s=self._left_s)
        except StoreUnavailable as failure:
            self._note(SLOW if failure.reason == "slow" else DOWN)
            return [None] * len(keys)
        finally:
            self._left_s -= time.monotonic() - began

    def take_notices(self) -> list[Notice]:
        """Returns the notices that were not taken yet."""
        notices, self._notices = self._notices, []
        return notices

    def _note(self, notice: Notice) -> None:
        if notice not in self._notices:
            self._notices.append(notice)
