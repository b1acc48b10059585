"""Runs `dragoman state`: shows what the store of the settings holds, and what keys have spent, and deletes it."""

import argparse
import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from gateway.commands.parser import add_settings
from gateway.commands.terminal import table

if TYPE_CHECKING:
    from gateway.core.errors import SettingsError
    from gateway.server.state.store import StateStore, StoreStats
    from gateway.settings import Settings, StateSettings

HELP: Final = "show or delete what the gateway has stored"


def add_parsers(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    stats = actions.add_parser("stats", help="show the entries and bytes of each kind")
    show = actions.add_parser("show", help="show the entries and bytes of each kind for every API key")
    forget = actions.add_parser("forget", help="delete everything of one API key")
    forget.add_argument("key", metavar="KEY", help="the name of the API key; - where there are no keys")
    purge = actions.add_parser("purge", help="delete everything of all API keys")
    usage = actions.add_parser("usage", help="show what API keys have spent of their budgets")
    for action in (stats, show, forget, purge, usage):
        add_settings(action, environ)
    usage.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError for a store that cannot be reached or used, and for a folder in which no
    epoch can begin; what was done before that is printed."""
    import os

    from gateway.settings import load_settings

    settings = load_settings(options.settings)
    if options.action == "usage":
        from gateway.commands.state_usage import usage_text

        print(usage_text(settings, as_json=options.json))
        return 0
    if options.action not in ("forget", "purge"):
        print(_shown(settings, options))
        return 0
    # First of all: what clients keep is refused from now on, whatever fails below.
    told, fault = _end_epoch(settings.state, options.key if options.action == "forget" else None, os.environ)
    if told:
        print(told, flush=True)
    deleted = _in_store(settings, options)
    if deleted is not None:
        print(deleted)
    elif told:
        print("state.store is memory: restart the gateway to delete the rest")
    if fault is not None and (deleted is None or fault.there):
        raise _not_begun(fault)
    return 0


class _Fault(NamedTuple):
    """Why no epoch began in a folder, and whether the folder is there at all."""

    folder: Path
    reason: str
    there: bool


def _end_epoch(state: "StateSettings", key: str | None, environ: Mapping[str, str]) -> tuple[str, _Fault | None]:
    """Begins a new epoch of one API key, or of all of them (None), in the folder of this machine: what clients keep of
    the old one is never opened again. Returns what to print, or why there is nothing."""
    from gateway.server.state.state_folder import StateFolder
    from gateway.server.state.store import EVERYONE

    folder = StateFolder(environ, state.folder)
    try:
        folder.forget(EVERYONE if key is None else key)
    except OSError as error:
        return "", _Fault(folder.path, error.strerror or str(error), not isinstance(error, FileNotFoundError))
    of = "all API keys" if key is None else repr(key)
    return f"{folder.path}: compactions of {of} made before now are no longer opened on this machine", None


def _not_begun(fault: _Fault) -> "SettingsError":
    from gateway.core.errors import SettingsError

    if fault.there:
        return SettingsError(f"{fault.folder}: {fault.reason}: compactions made before now are still opened there")
    return SettingsError(
        f"{fault.folder}: no gateway has its folder here, and nothing was changed. Name the folder of the service in"
        " state.folder, or in the variable STATE_DIRECTORY"
    )


def _shown(settings: "Settings", options: argparse.Namespace) -> str:
    from gateway.core.errors import SettingsError

    shown = _in_store(settings, options)
    if shown is None:
        raise SettingsError(
            "state.store is memory: nothing of it can be reached from outside, and it is gone when the gateway stops;"
            " restart the gateway to delete what it remembers"
        )
    return shown


def _in_store(settings: "Settings", options: argparse.Namespace) -> str | None:
    """Runs the action in the store. Returns what to print; None where the settings name memory."""
    from gateway.core.errors import SettingsError
    from gateway.server.state.open_store import open_shared_store
    from gateway.server.state.store import StoreUnavailable

    store = open_shared_store(settings.state, lambda *_: None)
    if store is None:
        return None
    try:
        return asyncio.run(_run(store, _ACTIONS[options.action], settings, options))
    except StoreUnavailable as failure:
        raise SettingsError(f"{store.name}: {failure}") from None


Action: TypeAlias = "Callable[[StateStore, Settings, argparse.Namespace], Awaitable[str]]"


async def _run(store: "StateStore", action: Action, settings: "Settings", options: argparse.Namespace) -> str:
    try:
        return await action(store, settings, options)
    finally:
        await store.aclose()


async def _stats(store: "StateStore", settings: "Settings", options: argparse.Namespace) -> str:
    stats = await store.stats()
    entries, sizes = Counter[str](), Counter[str]()
    for used in stats.usage:
        entries[used.space] += used.entries
        sizes[used.space] += used.bytes
    rows = [(_kind(space), str(entries[space]), str(sizes[space])) for space in sorted(entries)]
    total = ("total", str(entries.total()), f"{sizes.total()}{_limit(stats)}")
    return f"{store.name}\n{table([('kind', 'entries', 'bytes'), *rows, total])}"


async def _show(store: "StateStore", settings: "Settings", options: argparse.Namespace) -> str:
    names = _names(settings)
    rows = [
        (names.get(used.tenant, used.tenant), _kind(used.space), str(used.entries), str(used.bytes))
        for used in (await store.stats()).usage
        if used.entries
    ]
    return f"{store.name}\n{table([('key', 'kind', 'entries', 'bytes'), *sorted(rows)])}"


async def _forget(store: "StateStore", settings: "Settings", options: argparse.Namespace) -> str:
    await store.forget(options.key)
    return f"{store.name}: everything of {options.key!r} is deleted{_SOON}"


async def _purge(store: "StateStore", settings: "Settings", options: argparse.Namespace) -> str:
    await store.purge()
    return f"{store.name}: everything is deleted{_SOON}"


_SOON: Final = "; running gateways stop using it within 5 seconds, and open no compactions of before"
_ACTIONS: Final[Mapping[str, Action]] = {"stats": _stats, "show": _show, "forget": _forget, "purge": _purge}
_KINDS: Final = {
    "idx": "summary index",
    "ops": "opaque state",
    "rsp": "responses",
    "sum": "summaries",
    "txt": "descriptions",
}


def _kind(space: str) -> str:
    return f"{_KINDS.get(space, space)} ({space})"


def _limit(stats: "StoreStats") -> str:
    return "" if stats.max_bytes is None else f" of {stats.max_bytes}"


def _names(settings: "Settings") -> Mapping[str, str]:
    """Returns the names of the known API keys by what a server knows of them: their digests."""
    import os

    from gateway.server.access.api_keys import ANONYMOUS, INSPECTOR, load_keys
    from gateway.server.state.valkey.names import tenant_name

    known = {*settings.keys, *load_keys(settings.server, os.environ).names, ANONYMOUS, INSPECTOR}
    return {tenant_name(name).decode(): name for name in known}
