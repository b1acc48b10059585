"""Runs `dragoman init`: finds model servers on this machine, and writes the first settings file."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gateway.commands.parser import DEFAULT_SETTINGS, add_out

if TYPE_CHECKING:
    from gateway.discovery.identify import Server
    from gateway.discovery.new_settings import NewBackend
    from gateway.providers.provider import ServerKind
    from gateway.settings import Settings

# For the calls of one model: it may have to be loaded first.
CALLS_S: Final = 120
HELP: Final = "find model servers on this machine, and write the first settings file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("--backend", metavar="KIND", help="the kind of server or provider, such as ollama or openai")
    parser.add_argument("--url", help="the address of the server, instead of the known ports of this machine")
    parser.add_argument("--yes", action="store_true", help="write the file without a question")
    add_out(parser, "the file to write; never overwritten", default=DEFAULT_SETTINGS)


def run(options: argparse.Namespace) -> int:
    """Runs the command. Raises SettingsError."""
    from gateway.core.errors import SettingsError
    from gateway.discovery.new_settings import new_settings

    if options.out.exists():
        raise SettingsError(
            f"{options.out} exists, and is not overwritten: give another file, such as --out {_free_name(options.out)}"
        )
    backends = _backends(options)
    if not backends:
        return 1
    if not options.yes and not _agreed(options.out, len(backends)):
        return 1
    out: Path = options.out
    return _write(out, _with_text_wires(new_settings(backends, _port(backends)), backends))


def _free_name(taken: Path) -> Path:
    """Returns a file beside the one that exists, which does not: that of the project in a clone, for instance."""
    names = (f"mine{number}.json" for number in ("", *range(2, 100)))
    return next((free for name in names if not (free := taken.with_name(name)).exists()), Path("FILE"))


def _backends(options: argparse.Namespace) -> "Sequence[NewBackend]":
    from gateway.connect.target import read_address
    from gateway.core.errors import SettingsError
    from gateway.discovery.new_settings import hosted_backend
    from gateway.discovery.server_kinds import HOSTED_KINDS, SERVER_KINDS
    from gateway.settings import nearest

    hosted = {kind.name: kind for kind in HOSTED_KINDS}
    local = {kind.name: kind for kind in SERVER_KINDS}
    if options.backend is None:
        return _find() if options.url is None else _ask(read_address(options.url))
    if options.backend in hosted:
        kind = hosted[options.backend]
        if kind.named and options.url is None:
            raise SettingsError(f"the address of {kind.name} is your own: give it with --url, such as {kind.base_url}")
        return [hosted_backend(kind, options.url)]
    if options.backend not in local:
        raise SettingsError(f"there is no kind {options.backend!r}{nearest(options.backend, [*local, *hosted])}")
    return _chosen(local[options.backend], None if options.url is None else read_address(options.url))


def _find() -> "Sequence[NewBackend]":
    """Returns a backend for each server on a known port, and prints what listens there."""
    from gateway.discovery.identify import identify_ports
    from gateway.discovery.new_settings import server_backend
    from gateway.discovery.server_kinds import DRAGOMAN, HOSTED_KINDS, known_ports

    ports = known_ports()
    found = asyncio.run(identify_ports(ports))
    for server in found:
        _show(server)
    backends = [server_backend(server) for server in found if server.kind is not DRAGOMAN]
    known = [backend for backend in backends if backend is not None]
    if not known:
        providers = ", ".join(kind.name for kind in HOSTED_KINDS)
        print(
            f"No model server answers on this machine (ports {', '.join(map(str, ports))}). Start one, give the address"
            f" of one with --url, or choose a provider with --backend: {providers}. 'dragoman demo' needs none.",
            file=sys.stderr,
        )
    return known


def _ask(url: str) -> "Sequence[NewBackend]":
    """Returns the backend for a server that tells what it is. Raises SettingsError."""
    from gateway.core.errors import SettingsError
    from gateway.discovery.identify import REMOTE_S, identify
    from gateway.discovery.new_settings import server_backend

    server = asyncio.run(identify(url, REMOTE_S, REMOTE_S))
    if server is None:
        raise SettingsError(f"nothing answers at {url}{_or_untrusted(url)}")
    _show(server)
    backend = server_backend(server)
    if backend is None:
        raise SettingsError(f"what answers at {url} is not known: say with --backend what it is")
    return [backend]


def _chosen(kind: "ServerKind", url: str | None) -> "Sequence[NewBackend]":
    """Returns the backend for a server of a kind, which need not run yet. Raises SettingsError."""
    from gateway.core.errors import SettingsError
    from gateway.discovery.identify import REMOTE_S, identify
    from gateway.discovery.new_settings import local_backend
    from gateway.discovery.server_kinds import COMPATIBLE

    if url is None and kind.port is None:
        raise SettingsError(f"{kind.title} has no port of its own: give its address with --url")
    address = url or f"http://127.0.0.1:{kind.port}"
    server = asyncio.run(identify(address, REMOTE_S, REMOTE_S))
    if server is None or server.kind is None:
        nothing = f"nothing answers yet{_or_untrusted(address)}"
        print(f"{address}: {nothing if server is None else 'it does not tell what it is'}")
        return [local_backend(kind, address)]
    if kind not in (server.kind, COMPATIBLE):
        raise SettingsError(f"{address} is {server.title}, not {kind.title}")
    _show(server)
    return [local_backend(kind, address, server.models, server.locked)]


def _or_untrusted(url: str) -> str:
    return ", or its certificate is not trusted" if url.startswith("https:") else ""


def _show(server: "Server") -> None:
    from gateway.commands.terminal import counted

    models = "wants a key" if server.locked else counted(len(server.models), "model")
    print(f"{server.url}  {server.title}{f', {models}' if server.kind is not None else ''}")


def _agreed(out: Path, count: int) -> bool:
    from gateway.commands.terminal import counted, is_agreed
    from gateway.core.errors import SettingsError

    if not sys.stdin.isatty():
        raise SettingsError("init asks before it writes a file: give --yes where nobody can answer")
    return is_agreed(f"Write {out} with {counted(count, 'backend')}?", default=True)


def _with_text_wires(text: str, backends: "Sequence[NewBackend]") -> str:
    """Returns the text of the file, with a backend of the text wire for each local server whose model makes more calls
    over that."""
    from gateway.settings import read_settings
    from gateway.settings.decode import decode_settings
    from gateway.settings.edit import with_keys

    settings = read_settings(decode_settings(text))
    for name in [name for name in settings.backends if any(one.models and one.name == name for one in backends)]:
        text = with_keys(text, asyncio.run(_text_wire(settings, name)))
    return text


async def _text_wire(settings: "Settings", name: str) -> "dict[tuple[str, ...], Any]":
    """Returns the keys to set for a backend, and prints what was found."""
    from gateway.server.doctor.text_wire import text_entry, wire_suggestions
    from gateway.server.upstream.backends import Backend
    from gateway.server.upstream.fd_limits import last_for_clients
    from gateway.server.upstream.transport import Transport

    if await text_entry(settings.backends[name]) is None:
        return {}
    backend = Backend(name, settings.backends[name], 2**20)
    print(f"{name}: asks the first model for tool calls, for at most {CALLS_S} s", flush=True)
    async with Transport(2**22, last_for_clients()) as transport:
        try:
            async with asyncio.timeout(CALLS_S):
                compared = await wire_suggestions(settings, backend, transport)
        except TimeoutError:
            print(f"{name}: it is not known whether the model calls tools: no answer within {CALLS_S} s")
            return {}
    if compared is None:
        return {}
    print(f"{name}: {compared.checked.finding.detail}")
    return {one.path: one.value for one in compared.suggestions}


def _port(backends: "Sequence[NewBackend]") -> int:
    """Returns a port that is free, and none of a backend that is to be started later."""
    from gateway.discovery.new_settings import DEFAULT_PORT

    addresses = [f"{backend.entry['base_url']}/" for backend in backends]
    ports: list[int] = [DEFAULT_PORT, *range(8010, 8100)]
    free = (port for port in ports if not any(f":{port}/" in one for one in addresses) and _is_free(port))
    return next(free, DEFAULT_PORT)


def _is_free(port: int) -> bool:
    from gateway.core.errors import SettingsError
    from gateway.server.process.listener import bind
    from gateway.settings import ServerSettings

    try:
        bind(ServerSettings(port=port)).close()
    except SettingsError:
        return False
    return True


def _write(out: Path, text: str) -> int:
    """Writes the file, checks it, and prints what to do next. Raises SettingsError."""
    from gateway.commands.config_check import check, lines
    from gateway.core.errors import SettingsError
    from gateway.settings.decode import decode_settings

    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(text)
        schema = _write_schema(out)
    except OSError as error:
        raise SettingsError(f"{out}: cannot be written: {error.strerror}") from error
    print(f"\n{text}\nWritten: {out}{schema}.")
    report = check(str(out), text, decode_settings(text), os.environ)
    for line in lines(report):
        print(line)
    settings = "" if out == DEFAULT_SETTINGS else f" --settings {out}"
    print(f"Next: dragoman serve{settings}, and dragoman connect{settings} for your client.")
    print(f"What the backend can do, and what it needs: dragoman doctor{settings}")
    return 1 if report.errors else 0


def _write_schema(out: Path) -> str:
    """Writes the schema that the file names, unless there is one; returns what to add about it."""
    from importlib.resources import files

    from gateway.commands.config import SCHEMA_FILE

    path = out.with_name(SCHEMA_FILE)
    if path.exists():
        return ""
    path.write_text(files("gateway.settings").joinpath(SCHEMA_FILE).read_text(encoding="utf-8"), encoding="utf-8")
    return f", and {path} for editors"
