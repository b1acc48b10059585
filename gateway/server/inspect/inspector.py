"""Joins what the inspector is made of: who may look, the latest requests, and the folder in which they are saved."""

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final, ParamSpec, TypeVar

from gateway.core.errors import InvalidRequest
from gateway.recording.lines import RedactionLevel
from gateway.recording.recording import Interaction
from gateway.recording.redact.redact import Redacted, redact
from gateway.server.inspect.access import InspectorAccess
from gateway.server.inspect.folder import RecordingFolder, new_recording
from gateway.server.inspect.ring import RequestRing
from gateway.server.inspect.stages import Stages, stages_of
from gateway.server.inspect.summary import Summary
from gateway.settings import Settings

# So many may wait for the one thread that makes stages and redacts.
_MOST_WAITING: Final = 8
P = ParamSpec("P")
T = TypeVar("T")
_REASONS: Final = {
    "never_kept": "they were not kept: watch before the request begins, or set inspector.contents to always",
    "evicted": "they gave way to those of later requests (inspector.keep_mb)",
}


class Inspector:
    """The latest requests, for those who may look. `ring` observes all requests."""

    def __init__(self, settings: Settings, environ: Mapping[str, str]) -> None:
        """Raises SettingsError for settings that contradict each other."""
        self.access = InspectorAccess(settings, environ)
        self.ring = RequestRing(settings.inspector)
        self.folder: RecordingFolder | None = None
        self._thread = asyncio.Lock()
        self._waiting = 0

    def save_in(self, folder: str) -> None:
        """Saves every request in a folder from now on. Raises SettingsError for one that cannot be used."""
        self.folder = RecordingFolder(folder)
        self.ring.on_end.append(self.folder.save)

    async def export(
        self,
        ids: Sequence[str],
        level: RedactionLevel,
        settings: Settings,
        configured: Sequence[str],
        keep: Sequence[str] = (),
    ) -> Redacted:
        """Returns these requests as one recording, redacted. `configured` are the gateway's own secrets. Raises
        InvalidRequest for a request that is not here, or whose contents are not."""
        found = [self.interaction(request_id) for request_id in ids]
        known = [*configured, self.access.key, *(key for one in ids for key in self.ring.secrets(one))]
        recording = new_recording(found)
        return await self._in_thread(redact, recording, level, secrets.token_bytes(16), known, keep, settings)

    async def stages(self, request_id: str, settings: Settings) -> Stages:
        """Returns the stages of a request, made again. Raises InvalidRequest like `export`."""
        return await self._in_thread(stages_of, self.interaction(request_id), settings)

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
            reason = _REASONS[self.summary(request_id).contents]
            message = f"The contents of the request {request_id[:64]} are not here: {reason}."
            raise InvalidRequest(message, status=404, code="unknown_request")
        return found

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._waiting >= _MOST_WAITING:
            raise InvalidRequest("Too many requests are being looked at.", status=503, code="overloaded")
        self._waiting += 1
        try:
            async with self._thread:
                return await asyncio.to_thread(work, *args, **kwargs)
        finally:
            self._waiting -= 1
