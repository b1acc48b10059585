"""Joins what the inspector is made of: who may look, the latest requests, and the folder in which they are saved."""

import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.inspector.recorded_requests import RecordedRequests
from gateway.inspector.requests import RequestContents
from gateway.inspector.summary import Summary
from gateway.recording.lines import RedactionLevel
from gateway.server.inspect.access import InspectorAccess
from gateway.server.inspect.own_requests import OwnRequests
from gateway.server.inspect.recent_requests import RecentRequests
from gateway.server.inspect.sent_requests import SentRequests
from gateway.server.inspect.serial_thread import SerialThread
from gateway.server.inspect.workers.all_requests import AllRequests, socket_path
from gateway.server.log.logger import LOGGER
from gateway.settings import InspectorSettings, Settings

if TYPE_CHECKING:
    from gateway.inspector.sessions import SessionTree
    from gateway.inspector.views.diff import Difference
    from gateway.inspector.views.remade import Remade
    from gateway.inspector.views.sent_diff import SentDifference
    from gateway.inspector.views.what_if import Rules, WhatIf
    from gateway.recording.redact.redact import Redacted
    from gateway.server.inspect.folder import RecordingFolder

# So many requests that somebody looks at stay made again, for the next page of them.
_MOST_REMADE: Final = 8
# So many texts of a list stay replaced, for the next time that it is asked for.
_MOST_REPLACED: Final = 4096
_TELL_S: Final = 60.0
_REASONS: Final = {
    "never_kept": "they were not kept: watch before the request begins, or set inspector.contents to always (of more "
    "than 25 requests a second those of the others are kept only so)",
    "evicted": "they gave way to those of later requests (inspector.keep_mb)",
}


class Inspector:
    """The latest requests, for those who may look. `recent` observes all requests of this worker, `requests` are those
    of all workers, and `shown_level` says how far their texts are redacted until somebody reveals them. `settings` and
    `configured` return the settings in use, and the gateway's own secrets, which `redact_own` takes out of a text."""

    def __init__(
        self,
        known: InspectorSettings,
        access: InspectorAccess,
        settings: Callable[[], Settings],
        configured: Callable[[], Sequence[str]],
        redact_own: Callable[[str], str],
    ) -> None:
        self.access = access
        self.recent = RecentRequests(known)
        self.recent.secrets = self._secrets
        self.thread = SerialThread()
        self.sent = SentRequests(known.send, self._secrets)
        self.folder: RecordingFolder | None = None
        self._settings = settings
        self._configured = configured
        self._redact_own = redact_own
        self._reveals = known.reveal
        self.shown_level: RedactionLevel = "shape"
        self._own = OwnRequests(self.recent, self.thread, self._secrets, self.check_reveal)
        self.requests: AllRequests | RecordedRequests = AllRequests(self._own)
        self._socket: Path | None = None
        # The same words are replaced by the same ones in everything that is shown.
        self._seed = secrets.token_bytes(16)
        self._replaced = lru_cache(_MOST_REPLACED)(lambda text: _other_words(text, self._seed))
        self._tell_next = 0.0
        self._remade: OrderedDict[tuple[int, RedactionLevel], Remade] = OrderedDict()

    def save_in(self, folder: str) -> None:
        """Saves every request in a folder from now on. Raises SettingsError for one that cannot be used."""
        from gateway.server.inspect.folder import RecordingFolder

        self.folder = RecordingFolder(folder)
        self.recent.on_end.append(self.folder.save)

    def join(self, folder: Path, worker: int, workers: int, seed: bytes) -> None:
        """Shows the requests of all workers from `serving` on: `folder` is the private one of their run, and with the
        same `seed` all replace words alike."""
        self.recent.worker, self.recent.workers = worker, workers
        self.requests = AllRequests(self._own, folder, worker)
        self._socket = socket_path(folder, worker)
        self._seed = seed

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answers the other workers, if there are some, until the block ends; then nothing is sent again any more."""
        async with aclosing(self.sent), self._shared():
            yield

    def _shared(self) -> AbstractAsyncContextManager[None]:
        if self._socket is None:
            return nullcontext()
        from gateway.server.inspect.workers.served import serving_requests

        return serving_requests(self._own, self._socket)

    def show(self, recorded: RecordedRequests, settings: Settings) -> None:
        """Shows the requests of a recording in place of those of this process; `settings` are for what is not built
        in. Of one that is redacted, the words are shown as they stand in it."""
        self.requests = recorded
        if recorded.redacted:
            self.shown_level = "none"
        self._settings = lambda: settings

    def worded(self, summaries: Sequence[Summary], level: RedactionLevel) -> Sequence[Summary]:
        """Returns summaries with the words of what they ask as they may be shown, the same words always alike."""
        if level == "none":
            return summaries
        return [_with_words(one, self._replaced) if one.asked.words else one for one in summaries]

    def worded_sessions(self, trees: "Sequence[SessionTree]", level: RedactionLevel) -> "Sequence[SessionTree]":
        """Returns sessions with their words as they may be shown, as `worded` does."""
        return trees if level == "none" else [tree.with_words(self._replaced) for tree in trees]

    def list_level(self, reveal: bool) -> RedactionLevel:
        """Returns how far the words of a list are redacted. The log says that somebody reads them, once a minute: a
        list is asked for again and again. Raises InvalidRequest where nobody may see them."""
        if not reveal:
            return self.shown_level
        self.check_reveal()
        now = monotonic()
        if now >= self._tell_next:
            self._tell_next = now + _TELL_S
            LOGGER.info("the first words of the requests in the list were shown by the inspector")
        return "none"

    def check_reveal(self) -> None:
        """Raises InvalidRequest where nobody may see the words of requests."""
        if not self._reveals:
            raise InvalidRequest(
                "The words of requests are not shown here: inspector.reveal is false.", status=403, code="not_revealed"
            )

    async def export(
        self, ids: Sequence[str], level: RedactionLevel, keep: Sequence[str] = (), seed: str | None = None
    ) -> "Redacted":
        """Returns these requests as one recording, redacted. In all recordings of one `seed` the same words become the
        same ones; without one, they do in this recording alone. Raises InvalidRequest for a request that is not here,
        or whose contents are not, and for words that nobody may see."""
        # Loaded, as what shows a request, with the first one that somebody looks at.
        from gateway.recording.redact.redact import redact
        from gateway.server.inspect.folder import new_recording

        if level == "none":
            self.check_reveal()
        found = [await self.contents(request_id) for request_id in ids]
        recording = new_recording([one.interaction for one in found])
        words, known = seed.encode() if seed else secrets.token_bytes(16), self._secrets(*found)
        return await self.thread.run(redact, recording, level, words, known, keep, self._settings())

    async def remade(self, request_id: str, level: RedactionLevel) -> "Remade":
        """Returns a request with its stages, redacted. Raises InvalidRequest like `export`."""
        summary = await self.summary(request_id)
        key = (summary.seq, level)
        remade = self._remade.get(key)
        if remade is not None and summary.contents == "kept":
            self._remade.move_to_end(key)
            return remade
        from gateway.inspector.views.redacted import remade_redacted

        contents = await self.contents(request_id)
        known = self._secrets(contents)
        made = await self.thread.run(
            remade_redacted,
            contents.interaction,
            level,
            self._seed,
            known,
            self._settings(),
            self._redact_own,
            self._reveals,
        )
        if not summary.live:
            self._remade[key] = made
            while len(self._remade) > _MOST_REMADE:
                self._remade.popitem(last=False)
        return made

    async def previous(self, summary: Summary) -> str | None:
        """Returns the id of the request before this one in its conversation, or None."""
        if not summary.conversation:
            return None
        found = await self.requests.previous(summary.conversation, summary.seq)
        return None if found is None else found.id

    async def difference(self, request_id: str, against: str, level: RedactionLevel) -> "Difference":
        """Returns the difference between what was sent for a request and for another. Raises InvalidRequest like
        `export`."""
        from gateway.inspector.views.redacted import compared

        old, new = await self.contents(against), await self.contents(request_id)
        known = self._secrets(old, new)
        pair = (old.interaction, new.interaction)
        return await self.thread.run(compared, pair, new.cached_tokens, level, self._seed, known, self._settings())

    async def sent_difference(self, request_id: str, against: str, level: RedactionLevel) -> "SentDifference":
        """Returns the difference between the bodies that were sent for a request and for another. Raises InvalidRequest
        like `export`, and where one was not sent."""
        from gateway.inspector.views.redacted import sent_compared

        old, new = await self.contents(against), await self.contents(request_id)
        pair = (old.interaction, new.interaction)
        known = self._secrets(old, new)
        return await self.thread.run(sent_compared, pair, level, self._seed, known, self._settings())

    async def what_if(self, rules: "Rules", level: RedactionLevel) -> "WhatIf":
        """Returns the request to the backend under other rules. Raises InvalidRequest like `export`, and for
        rules that are none."""
        from gateway.inspector.views.redacted import tried
        from gateway.inspector.views.what_if import with_rules

        contents, settings = await self.contents(rules.id), self._settings()
        interaction = with_rules(contents.interaction, rules, settings)
        return await self.thread.run(tried, interaction, level, self._seed, self._secrets(contents), settings)

    async def forget(self) -> None:
        """Forgets all requests that have ended."""
        await self.requests.clear()
        self._remade.clear()

    async def summary(self, request_id: str) -> Summary:
        """Returns the summary of a request. Raises InvalidRequest for one that is not here."""
        summary = await self.requests.summary(request_id)
        if summary is None:
            raise InvalidRequest(f"There is no request {request_id[:64]!r} here.", status=404, code="unknown_request")
        return summary

    async def contents(self, request_id: str) -> RequestContents:
        """Returns the contents of a request. Raises InvalidRequest, which says why they are not here."""
        found = await self.requests.contents(request_id)
        if found is None:
            missing = absence(await self.summary(request_id)) or "The request ended while it was asked for."
            raise InvalidRequest(missing, status=404, code="unknown_request")
        return found

    def _secrets(self, *found: RequestContents) -> list[str]:
        return [*self._configured(), self.access.key, *(key for one in found for key in one.secrets)]


def _other_words(text: str, seed: bytes) -> str:
    from gateway.recording.redact.words import Words  # with the first list that somebody looks at

    return Words("shape", seed).text(text)


def _with_words(summary: Summary, replaced: Callable[[str], str]) -> Summary:
    asked = msgspec.structs.replace(summary.asked, words=replaced(summary.asked.words))
    return msgspec.structs.replace(summary, asked=asked)


def absence(summary: Summary) -> str:
    """Returns why the contents of a request are not here; empty where they are."""
    reason = _REASONS.get(summary.contents)
    return f"The contents of the request {summary.id[:64]} are not here: {reason}." if reason else ""
