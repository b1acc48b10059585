"""Sums the metrics that several workers write into one directory; any worker can return the sums."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gateway.server.telemetry.metric_types import Snapshot, total

LIVE: Final = ".live"
ENDED: Final = ".ended"


class WorkerMetrics:
    """One process's file in the directory. The counters and histograms of an ended worker remain; its gauges do not."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._file = folder / f"{name}{LIVE}"

    def publish(self, snapshot: Snapshot) -> None:
        """Writes this process's metrics atomically."""
        fresh = self._file.with_suffix(".new")
        try:
            fresh.write_bytes(msgspec.msgpack.encode(snapshot))
            fresh.replace(self._file)
        except OSError:
            # The directory is removed or full: metrics never fail a request.
            return

    def retire(self, name: str) -> None:
        """Marks a process as ended: its gauges no longer count."""
        file = self._folder / f"{name}{LIVE}"
        # It may have written nothing yet.
        with contextlib.suppress(OSError):
            file.rename(file.with_suffix(ENDED))

    def total(self, own: Snapshot) -> Snapshot:
        """Returns the sum of this process's metrics as they are now, and the others' as they were up to a second
        ago."""
        self.publish(own)
        return total((own, *self._others()))

    def _others(self) -> Iterator[Snapshot]:
        # A removed directory is an empty one to glob, but not to iterdir.
        for file in sorted(self._folder.glob("*")):
            if file == self._file or file.suffix not in (LIVE, ENDED):
                continue
            try:
                snapshot = msgspec.msgpack.decode(file.read_bytes(), type=Snapshot)
            except (OSError, msgspec.DecodeError):
                continue
            yield snapshot if file.suffix == LIVE else msgspec.structs.replace(snapshot, gauges=())
