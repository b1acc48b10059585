"""Runs `dragoman schema`: shows a protobuf schema, compares two, or fetches that of a server."""

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_out, add_settings

if TYPE_CHECKING:
    from gateway.core.conversation import Json
    from gateway.core.descriptor_set import DescriptorSet
    from gateway.settings import BackendSettings, Settings

HELP: Final = "show, compare or fetch the protobuf schemas of backends"
_SOURCE_HELP: Final = "a descriptor set, a .proto file, or the name of a backend in the settings"
_PROTO: Final = ".proto"
_URL: Final = "://"
_SERVER: Final = re.compile(r"[\w.-]+:\d+|\[[0-9a-fA-F:.]+\](:\d+)?")


def add_parsers(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of each action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="show the services, methods, messages and fields of a schema")
    show.add_argument("source", metavar="SCHEMA", help=_SOURCE_HELP)
    show.add_argument("symbol", metavar="SYMBOL", nargs="?", help="only this symbol, with the types that it uses")
    diff = actions.add_parser("diff", help="compare two schemas: fields added, removed, renumbered and retyped")
    diff.add_argument("before", metavar="BEFORE", help=_SOURCE_HELP)
    diff.add_argument("after", metavar="AFTER", help="the other schema, likewise")
    fetch = actions.add_parser("fetch", help="fetch the schema of a server by gRPC server reflection")
    fetch.add_argument(
        "source", metavar="SERVER", help="the http:// or https:// URL of the server, or a backend's name"
    )
    add_out(fetch, "the file for the descriptor set", "--output", required=True)
    for action in (show, diff):
        action.add_argument(
            "--include", action="append", default=[], metavar="FOLDER", help="a folder for the imports of .proto files"
        )
    for action in (show, diff, fetch):
        add_settings(action, environ)


def run(options: argparse.Namespace) -> int:
    """Runs one action. Raises SettingsError for a schema that cannot be read."""
    return _ACTIONS[options.action](options)


def _show(options: argparse.Namespace) -> int:
    from gateway.protobuf.outline import outline
    from gateway.protobuf.symbols import read_symbols

    print(outline(read_symbols(_schema(options.source, options)), options.symbol), end="")
    return 0


def _diff(options: argparse.Namespace) -> int:
    from gateway.protobuf.differences import differences
    from gateway.protobuf.symbols import read_symbols

    before, after = (read_symbols(_schema(source, options)) for source in (options.before, options.after))
    found = differences(before, after)
    for difference in found:
        print(difference.text())
    return 1 if found else 0


def _fetch(options: argparse.Namespace) -> int:
    import asyncio

    from gateway.server.upstream.schema_cache import write_cache
    from gateway.server.upstream.schema_reflection import fetch_backend_schema, fetch_schema

    if _URL in options.source:
        fetched = asyncio.run(fetch_schema(options.source, {}))
    else:
        fetched = asyncio.run(fetch_backend_schema(_backend(options.source, options.settings)))
    write_cache(options.out, fetched.descriptors)
    print(f"{options.out}: {len(fetched.descriptors.data)} bytes, sha256 {fetched.descriptors.sha256}")
    for name in fetched.undescribed:
        print(f"not described: {name}")
    return 0


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], int]]] = {"show": _show, "diff": _diff, "fetch": _fetch}


def _schema(source: str, options: argparse.Namespace) -> "DescriptorSet":
    """Returns the schema in a file, or that of a backend. A file is preferred to a backend of the same name."""
    from gateway.settings import load_settings
    from gateway.settings.descriptor_files import read_descriptor_set

    if source.endswith(_PROTO) or Path(source).is_file() or not options.settings.exists():
        return read_descriptor_set(named_files(source, options.include), "schema")
    return _of_backend(source, load_settings(options.settings))


def named_files(source: str, include: list[str]) -> dict[str, "Json"]:
    """Returns the value of `schema` in an entry that names this file, a descriptor set or a .proto file."""
    if not source.endswith(_PROTO):
        return {"set": source}
    return {"files": [source], **({"include": [*include]} if include else {})}


def _of_backend(name: str, settings: "Settings") -> "DescriptorSet":
    from gateway.adapter import SchemaAdapter
    from gateway.core.errors import SettingsError
    from gateway.registry import load_adapter

    entry = _entry(name, settings)
    adapter = load_adapter(name, entry, int(settings.limits.max_event_mb * 2**20))
    if not isinstance(adapter, SchemaAdapter):
        raise SettingsError(f"backends.{name}: its adapter has no protobuf schema")
    return adapter.schema


def _backend(name: str, path: Path) -> "BackendSettings":
    """Returns the entry of a backend. Raises SettingsError, for the address of a server as well."""
    from gateway.settings import load_settings

    if not (path.exists() and name in load_settings(path).backends):
        check_scheme(name)
    return _entry(name, load_settings(path))


def check_scheme(server: str) -> None:
    """Raises SettingsError for the address of a server without a scheme."""
    from gateway.core.errors import SettingsError

    if _SERVER.fullmatch(server):
        raise SettingsError(f"{server!r} has no scheme; write http://{server}, or with TLS https://{server}")


def _entry(name: str, settings: "Settings") -> "BackendSettings":
    from gateway.core.errors import SettingsError
    from gateway.settings import nearest

    entry = settings.backends.get(name)
    if entry is None:
        raise SettingsError(f"there is no file and no backend {name!r}{nearest(name, settings.backends)}")
    return entry
