"""Defines what is asked about requests, of this worker or of another one."""

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from gateway.inspector.summary import Summary
from gateway.inspector.totals import Totals
from gateway.recording.recording import Interaction


class Listed(msgspec.Struct, frozen=True):
    """The newest requests, newest first. `matching` counts those that fit the filter, `total` all; `words` are those
    that the filter searches in the contents."""

    requests: Sequence[Summary] = ()
    matching: int = 0
    total: int = 0
    words: tuple[str, ...] = ()


class RequestContents(msgspec.Struct, frozen=True):
    """The contents of a request, so far as they have come; `secrets` are the client's own and those of its backend at
    that time, and `cached_tokens` those of the prompt that the provider read from its cache (None: it did not say)."""

    interaction: Interaction
    secrets: tuple[str, ...] = ()
    cached_tokens: int | None = None


# Reads the contents of a request, in any thread: for a long stream that takes a quarter of a second.
ContentsReader: TypeAlias = Callable[[], RequestContents]


class Change(msgspec.Struct, frozen=True):
    """A request has `begun`, `changed` or `ended`; or so many changes were `missed`. Numbers grow with time, also from
    worker to worker."""

    kind: str
    number: int
    summary: Summary | None = None
    missed: int = 0


class RequestSource(Protocol):
    """The latest requests of one worker, or of several."""

    async def listed(self, filter: str, before: int | None, limit: int) -> Listed:
        """Returns the newest requests that fit the filter; `before`: only those with a smaller `seq`. Raises
        InvalidRequest for a filter that is none."""
        ...

    async def totals(self, filter: str) -> Totals:
        """Returns the sums of all requests that fit the filter. Raises InvalidRequest like `listed`."""
        ...

    async def summary(self, request_id: str) -> Summary | None:
        """Returns the summary of a request, or None for one that is not here."""
        ...

    async def contents(self, request_id: str) -> RequestContents | None:
        """Returns the contents of a request; None: they are not here, and its summary says why."""
        ...

    async def previous(self, conversation: str, before: int) -> Summary | None:
        """Returns the newest request of a conversation with contents and a smaller `seq`, or None."""
        ...

    def watch(self, after: int | None = None) -> AsyncGenerator[Sequence[Change], None]:
        """Yields the changes from now on, and first those after the one of this number that are still known. At a time
        a request has one change, and requests of which nobody could read so many are `missed`."""
        ...

    async def clear(self) -> None:
        """Forgets all requests that have ended."""
        ...
