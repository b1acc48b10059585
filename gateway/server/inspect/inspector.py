"""Joins what the inspector is made of: who may look, the latest requests, and the folder in which they are saved."""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, ParamSpec, TypeVar

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.recording.lines import RedactionLevel
from gateway.recording.recording import Interaction
from gateway.recording.redact.redact import Redacted, redact
from gateway.server.inspect.access import InspectorAccess
from gateway.server.inspect.filter import Filter
from gateway.server.inspect.folder import RecordingFolder, new_recording
from gateway.server.inspect.ring import RequestRing
from gateway.server.inspect.search import holds
from gateway.server.inspect.summary import Summary
from gateway.server.inspect.views.diff import Difference, Pair, difference
from gateway.server.inspect.views.remade import Remade, remake
from gateway.server.inspect.views.what_if import Rules, WhatIf, what_if, with_rules
from gateway.settings import Settings

# So many may wait for the one thread that makes stages and redacts.
_MOST_WAITING: Final = 8
# So many requests that somebody looks at stay made again, for the next page of them.
_MOST_REMADE: Final = 8
P = ParamSpec("P")
T = TypeVar("T")
_REASONS: Final = {
    "never_kept": "they were not kept: watch before the request begins, or set inspector.contents to always",
    "evicted": "they gave way to those of later requests (inspector.keep_mb)",
}


class Inspector:
    """The latest requests, for those who may look. `ring` observes all requests."""

    def __init__(self, settings: Settings, access: InspectorAccess) -> None:
        self.access = access
        self._reveals = settings.inspector.reveal
        self.ring = RequestRing(settings.inspector)
        self.folder: RecordingFolder | None = None
        # The same words are replaced by the same ones in everything that is shown.
        self._seed = secrets.token_bytes(16)
        self._remade: OrderedDict[tuple[int, RedactionLevel], Remade] = OrderedDict()
        self._thread = asyncio.Lock()
        self._waiting = 0

    def save_in(self, folder: str) -> None:
        """Saves every request in a folder from now on. Raises SettingsError for one that cannot be used."""
        self.folder = RecordingFolder(folder)
        self.ring.on_end.append(self.folder.save)

    async def listed(
        self, wanted: Filter, before: int | None, limit: int, configured: Sequence[str]
    ) -> tuple[Sequence[Summary], int]:
        """Returns the newest requests that a filter lets pass, newest first, and how many there are. Raises
        InvalidRequest for words that nobody may see."""
        ring, matches = self.ring, wanted.matches
        if wanted.words:
            self.check_reveal()
            found = frozenset(await self._with_words(wanted, configured))
            return ring.listed(lambda summary: summary.seq in found, before, limit), len(found)
        return ring.listed(matches, before, limit), await ring.count(matches)

    async def _with_words(self, wanted: Filter, configured: Sequence[str]) -> Sequence[int]:
        """Returns the `seq` of the requests whose contents hold the words."""
        found: list[int] = []
        known = [*configured, self.access.key]
        for seq, capture in self.ring.captured(wanted.matches):
            if await self.in_thread(holds, capture.texts(), wanted.words, [*known, *capture.keys]):
                found.append(seq)
        return found

    def check_reveal(self) -> None:
        """Raises InvalidRequest where nobody may see the words of requests."""
        if not self._reveals:
            raise InvalidRequest(
                "The words of requests are not shown here: inspector.reveal is false.", status=403, code="not_revealed"
            )

    async def export(
        self,
        ids: Sequence[str],
        level: RedactionLevel,
        settings: Settings,
        configured: Sequence[str],
        keep: Sequence[str] = (),
    ) -> Redacted:
        """Returns these requests as one recording, redacted. `configured` are the gateway's own secrets. Raises
        InvalidRequest for a request that is not here, or whose contents are not, and for words that nobody may see."""
        if level == "none":
            self.check_reveal()
        found = [self.interaction(request_id) for request_id in ids]
        known = self._secrets(ids, configured)
        recording = new_recording(found)
        return await self.in_thread(redact, recording, level, secrets.token_bytes(16), known, keep, settings)

    async def remade(
        self, request_id: str, level: RedactionLevel, settings: Settings, configured: Sequence[str]
    ) -> Remade:
        """Returns a request with its stages, redacted. Raises InvalidRequest like `export`."""
        interaction = self.interaction(request_id)
        summary = self.summary(request_id)
        key = (summary.seq, level)
        kept = self._remade.get(key)
        if kept is not None:
            self._remade.move_to_end(key)
            return kept
        known = self._secrets([request_id], configured)
        made = await self.in_thread(_remade, interaction, level, self._seed, known, settings)
        if not summary.live:
            self._remade[key] = made
            while len(self._remade) > _MOST_REMADE:
                self._remade.popitem(last=False)
        return made

    async def difference(
        self,
        request_id: str,
        against: str,
        level: RedactionLevel,
        settings: Settings,
        configured: Sequence[str],
    ) -> Difference:
        """Returns how what was sent for a request differs from what was sent for another. Raises InvalidRequest like
        `export`."""
        found = [self.interaction(one).numbered(x) for x, one in enumerate((against, request_id), 1)]
        known = self._secrets([against, request_id], configured)
        cached = self.ring.cached_tokens(request_id)
        return await self.in_thread(_difference, found, cached, level, self._seed, known, settings)

    async def what_if(
        self, rules: Rules, level: RedactionLevel, settings: Settings, configured: Sequence[str]
    ) -> WhatIf:
        """Returns what would be sent for a request under other rules. Raises InvalidRequest like `export`, and for
        rules that are none."""
        interaction = with_rules(self.interaction(rules.id).numbered(1), rules, settings)
        known = self._secrets([rules.id], configured)
        return await self.in_thread(_what_if, interaction, level, self._seed, known, settings)

    def forget(self) -> None:
        """Forgets all requests that have ended."""
        self.ring.clear()
        self._remade.clear()

    def summary(self, request_id: str) -> Summary:
        """Returns the summary of a request. Raises InvalidRequest for one that is not here."""
        summary = self.ring.summary(request_id)
        if summary is None:
            raise InvalidRequest(f"There is no request {request_id[:64]!r} here.", status=404, code="unknown_request")
        return summary

    def interaction(self, request_id: str) -> Interaction:
        """Returns a request with its contents. Raises InvalidRequest, which says why they are not here."""
        found = self.ring.interaction(request_id)
        if found is None:
            raise InvalidRequest(
                absence(self.summary(request_id)) or "The request ended while it was asked for.",
                status=404,
                code="unknown_request",
            )
        return found

    def _secrets(self, ids: Sequence[str], configured: Sequence[str]) -> list[str]:
        return [*configured, self.access.key, *(key for one in ids for key in self.ring.secrets(one))]

    async def in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs work in the one thread for it. Raises InvalidRequest where too much waits."""
        if self._waiting >= _MOST_WAITING:
            raise InvalidRequest("Too many requests are being looked at.", status=503, code="overloaded")
        self._waiting += 1
        try:
            async with self._thread:
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self._waiting -= 1


def absence(summary: Summary) -> str:
    """Returns why the contents of a request are not here; empty where they are."""
    reason = _REASONS.get(summary.contents)
    return f"The contents of the request {summary.id[:64]} are not here: {reason}." if reason else ""


def _remade(
    interaction: Interaction, level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> Remade:
    """Makes the stages again from redacted bytes, and compares those from the captured ones with what was captured."""
    checks = remake(interaction, settings).checks
    (clean,) = _clean([interaction.numbered(1)], level, seed, known, settings)
    return msgspec.structs.replace(remake(clean, settings), checks=checks)


def _clean(
    found: Sequence[Interaction], level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> Sequence[Interaction]:
    """Redacts requests alike: the same word becomes the same in all of them."""
    recording = new_recording(found)
    return redact(recording, level, seed, known, settings=settings, search=False).recording.interactions()


def _difference(
    found: Sequence[Interaction],
    cached: int | None,
    level: RedactionLevel,
    seed: bytes,
    known: Sequence[str],
    settings: Settings,
) -> Difference:
    captured = Pair(*(remake(one, settings) for one in found))
    shown = Pair(*(remake(one, settings) for one in _clean(found, level, seed, known, settings)))
    return difference(captured, shown, cached)


def _what_if(
    interaction: Interaction, level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> WhatIf:
    (clean,) = _clean([interaction], level, seed, known, settings)
    return what_if(clean, settings)
