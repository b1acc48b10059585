"""Writes the outline of a schema: its services and methods, and the fields of the messages that they use."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from gateway.core.errors import SettingsError
from gateway.protobuf.symbols import Field, Symbols
from gateway.settings.check import nearest

_TYPE: Final = re.compile(r"[\w.]+(?=>?$)")


def outline(symbols: Symbols, symbol: str | None = None) -> str:
    """Returns the outline as lines of text: all of the schema, or the service, method, message or enum of this name
    with the types that it uses. Raises SettingsError for a name that the schema lacks, with the nearest one."""
    if symbol is None:
        lines = [*_services(symbols), *_types(symbols, [*symbols.messages, *symbols.enums])]
        foreign = [name for name in symbols.extensions if name not in symbols.messages]
        lines += [line for name in foreign for line in _extend(name, symbols.extensions[name])]
    else:
        lines = _of_symbol(symbols, symbol)
    return "\n".join(lines[:-1]) + "\n" if lines else ""


def _of_symbol(symbols: Symbols, symbol: str) -> list[str]:
    service, _, method = symbol.partition("/")
    if symbol not in symbols.names():
        raise SettingsError(f"the schema has no symbol {symbol!r}{nearest(symbol, symbols.names())}")
    for extended, extensions in symbols.extensions.items():
        if symbol in extensions:
            used = _used(symbols, [_type_of(extensions[symbol])])
            return [*_extend(extended, {symbol: extensions[symbol]}), *_types(symbols, used)]
    if service not in symbols.services:
        return [*_types(symbols, _used(symbols, [symbol]))]
    chosen = {method: symbols.services[service][method]} if method else symbols.services[service]
    part = Symbols({service: chosen}, symbols.messages, symbols.enums, symbols.extensions)
    roots = [name for found in chosen.values() for name in found.messages]
    return [*_services(part), *_types(symbols, _used(symbols, roots))]


def _used(symbols: Symbols, roots: list[str]) -> list[str]:
    """Returns the names of the roots, and of the types of all fields below them."""
    found: dict[str, None] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop(0)
        if name not in found and (name in symbols.messages or name in symbols.enums):
            found[name] = None
            own, others = symbols.messages.get(name, {}), symbols.extensions.get(name, {})
            waiting += [_type_of(field) for field in (*own.values(), *others.values())]
    return list(found)


def _type_of(field: Field) -> str:
    named = _TYPE.search(field.type)
    return named.group() if named else ""


def _services(symbols: Symbols) -> Iterator[str]:
    for name, methods in symbols.services.items():
        yield f"service {name}"
        for method, found in methods.items():
            yield f"  rpc {method}({found.request}) returns ({found.response})"
        yield ""


def _types(symbols: Symbols, names: list[str]) -> Iterator[str]:
    for name in names:
        if name in symbols.messages:
            yield f"message {name}"
            yield from _fields(symbols.messages[name])
            if name in symbols.extensions:
                yield ""
                yield from _extend(name, symbols.extensions[name])
                continue
        else:
            yield f"enum {name}"
            yield from (f"  {value} = {number}" for value, number in symbols.enums[name].items())
        yield ""


def _extend(name: str, extensions: Mapping[str, Field]) -> Iterator[str]:
    """Yields the extensions of a message, in brackets, as an option in a .proto file has them."""
    yield f"extend {name}"
    yield from (f"  {field.type} [{extension}] = {field.number}" for extension, field in extensions.items())
    yield ""


def _fields(fields: Mapping[str, Field]) -> Iterator[str]:
    oneof = ""
    for name, field in fields.items():
        if field.oneof and field.oneof != oneof:
            yield f"  oneof {field.oneof}"
        oneof = field.oneof
        yield f"  {'  ' if oneof else ''}{field.type} {name} = {field.number}"
