"""The metrics of several workers, each written into one folder -> their sums, whichever worker is asked."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gateway.server.metrics import FAMILIES, Snapshot, add

LIVE: Final = ".live"
ENDED: Final = ".ended"


class Board:
    """One process's place in the folder. What an ended worker has counted stays; what it was doing does not."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._file = folder / f"{name}{LIVE}"

    def show(self, snapshot: Snapshot) -> None:
        """Write one's own, whole or not at all."""
        fresh = self._file.with_suffix(".new")
        try:
            fresh.write_bytes(msgspec.msgpack.encode(snapshot))
            fresh.replace(self._file)
        except OSError:
            # The folder is gone or full: metrics never fail a request.
            return

    def retire(self, name: str) -> None:
        """The process of this name has ended."""
        file = self._folder / f"{name}{LIVE}"
        # It may have shown nothing yet.
        with contextlib.suppress(OSError):
            file.rename(file.with_suffix(ENDED))

    def total(self, own: Snapshot) -> Snapshot:
        """One's own as it is now, and the others' as they were up to a second ago."""
        self.show(own)
        return add((own, *self._others()))

    def _others(self) -> Iterator[Snapshot]:
        # A folder that is gone is an empty one to glob, but not to iterdir.
        for file in sorted(self._folder.glob("*")):
            if file == self._file or file.suffix not in (LIVE, ENDED):
                continue
            try:
                snapshot = msgspec.msgpack.decode(file.read_bytes(), type=Snapshot)
            except (OSError, msgspec.DecodeError):
                continue
            yield snapshot if file.suffix == LIVE else _counters(snapshot)


def _counters(snapshot: Snapshot) -> Snapshot:
    kept = tuple(one for one in snapshot.counted if FAMILIES[one.name].kind == "counter")
    return Snapshot(kept, snapshot.measured)
