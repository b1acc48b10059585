"""Runs the named parts of the load test and prints their tables: `python -m bench.load_test streams idle ...`.

The exit status is 1 if a promise was broken.
"""

import argparse
import contextlib
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import uvloop

from bench.load_test.conversations import conversations
from bench.load_test.descriptors import LIMIT, descriptors
from bench.load_test.figures import Figure, table
from bench.load_test.gateway_process import (
    BackendAddresses,
    GatewayProcess,
    allow_descriptors,
    backends,
    free_ports,
    gateway_process,
)
from bench.load_test.idle import idle
from bench.load_test.slow_clients import readers
from bench.load_test.soak import soak
from bench.load_test.store_outages import settings, store_outages
from bench.load_test.streams import WIRES, streams
from gateway.core.conversation import Json

HEAD_TIMEOUT_S: Final = 10
SPARE: Final = 1500
WRITE_TIMEOUT_S: Final = 5
STATE_S: Final = 1200
READERS: Final = 10
CONVERSATIONS: Final = 200
Table = tuple[str, list[Figure]]


def main() -> int:
    """Runs the named parts and prints their figures."""
    options = _options()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    allow_descriptors()
    print(f"{time.strftime('%Y-%m-%d')}, Python {platform.python_version()}, {os.cpu_count()} cores, {_load()}")
    kept = True
    with tempfile.TemporaryDirectory() as name, backends(Path(name), pinned=True) as behind:
        for part in options.parts or [part for part in PARTS if part != "state"]:
            for title, figures in PARTS[part](options, behind):
                print(f"\n{table(title, figures)}", flush=True)
                kept = kept and all(figure.kept for figure in figures)
    print(f"\n{'Every promise was kept' if kept else 'NOT every promise was kept'}; {_load()}")
    return 0 if kept else 1


def _load() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.load_test", description="The promises under load.")
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all but state where none is named"
    )
    parser.add_argument("--streams", type=int, default=1100, help="how many are asked for at once")
    parser.add_argument("--connections", type=int, default=10_000, help="how many are idle")
    parser.add_argument("--minutes", type=float, default=2, help="how long the soak lasts")
    parser.add_argument("--seconds", type=float, help=f"how long the part state lasts; {STATE_S} by default")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]!r}")
    return options


@contextlib.contextmanager
def _gateway(
    behind: BackendAddresses,
    server: Mapping[str, Json] | None = None,
    limit: int = 0,
    more: Mapping[str, Json] | None = None,
) -> Iterator[GatewayProcess]:
    with (
        tempfile.TemporaryDirectory() as name,
        gateway_process(Path(name), behind, server, limit, pinned=True, more=more) as opened,
    ):
        yield opened


def _streams(options: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    with _gateway(behind) as opened:
        for wire in (*WIRES, WIRES[0]):
            yield f"streams, {wire}", uvloop.run(streams(opened, (wire,), options.streams))


def _idle(options: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    many = min(options.connections, allow_descriptors() - SPARE)
    with _gateway(behind, {"max_connections": many, "header_timeout_s": HEAD_TIMEOUT_S}) as opened:
        yield "idle connections", uvloop.run(idle(opened, many, HEAD_TIMEOUT_S))


def _descriptors(_: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    with _gateway(behind, {"max_connections": 10 * LIMIT}, LIMIT) as opened:
        yield "no descriptors", uvloop.run(descriptors(opened))


def _readers(_: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    with _gateway(behind, {"write_timeout_s": WRITE_TIMEOUT_S}) as opened:
        yield "slow readers", uvloop.run(readers(opened, READERS, WRITE_TIMEOUT_S))


def _soak(options: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    print()
    with _gateway(behind) as opened:
        yield "soak", uvloop.run(soak(opened, options.minutes, _tell))


def _conversations(_: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    with _gateway(behind, more={"state": {}}) as opened:
        yield "conversations", uvloop.run(conversations(opened, CONVERSATIONS))


def _state(options: argparse.Namespace, behind: BackendAddresses) -> Iterable[Table]:
    print()
    (port,) = free_ports(1)
    minutes = (options.seconds or STATE_S) / 60
    with (
        tempfile.TemporaryDirectory() as name,
        gateway_process(Path(name), behind, pinned=True, more=settings(port)) as opened,
    ):
        yield "store outages", uvloop.run(store_outages(opened, port, Path(name), minutes, _tell))


def _tell(line: str) -> None:
    print(line, flush=True)


PARTS: Final[Mapping[str, Callable[[argparse.Namespace, BackendAddresses], Iterable[Table]]]] = {
    "streams": _streams,
    "idle": _idle,
    "descriptors": _descriptors,
    "readers": _readers,
    "conversations": _conversations,
    "soak": _soak,
    "state": _state,
}

if __name__ == "__main__":
    sys.exit(main())
