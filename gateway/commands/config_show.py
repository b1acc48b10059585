"""Runs `dragoman config show`: prints each setting with its origin, or how a running gateway differs from the settings
file.
"""

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from gateway.settings import Settings
    from gateway.settings.origins import EffectiveValue, Origin

# What options and variables of `dragoman serve` set.
_OPTIONS: Final = frozenset({"server.host", "server.port", "server.workers", "inspector.record"})
_ABSENT: Final = None


class Difference(msgspec.Struct, frozen=True):
    """A key whose value in use is another than that of the file, and why. (Any: JSON; None also where it is absent.)"""

    path: str
    running: Any
    file: Any
    reason: str

    def text(self) -> str:
        """Returns the difference as one line."""
        running, file = (json.dumps(value, ensure_ascii=False) for value in (self.running, self.file))
        return f"{self.path}  {running}  the file: {file}  {self.reason}"


def show_differences(options: argparse.Namespace, settings: "Settings") -> int:
    """Prints the differences between these settings of the file and those in use; returns 1 where there are some.
    Raises InvalidRequest where no gateway answers, or nobody may look, and SettingsError for a path that does not
    exist."""
    from gateway.commands.inspector_client import get, open_client
    from gateway.core.errors import SettingsError
    from gateway.registry import load_adapters, native_backends
    from gateway.settings import nearest
    from gateway.settings.flat_values import flat_values, is_below
    from gateway.settings.local_url import local_url

    url = options.url or local_url(settings.server.host, settings.server.port)
    with open_client(url) as client:
        found = get(client, "running-settings", {})
    # As the answer is: lists for tuples.
    acting = settings.on(native_backends(load_adapters(settings)))
    wanted = msgspec.json.decode(msgspec.json.encode(flat_values(acting)))
    if not any(is_below(path, options.path, settings) for path in {**wanted, **found["values"]}):
        raise SettingsError(f"there is no setting {options.path!r}{nearest(options.path, wanted)}")
    different = [one for one in differences(found, wanted) if is_below(one.path, options.path, settings)]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(different), indent=2).decode())
    elif not different:
        print(f"{url} uses the values of {options.settings}.")
    else:
        print("\n".join(one.text() for one in different))
    return 1 if different else 0


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[Difference]:
    """Returns the differences between the values in use, as the gateway reports them, and those of the file. (Any:
    JSON.)"""
    running: Mapping[str, Any] = found["values"]
    paths = [path for path in {**wanted, **running} if running.get(path, _ABSENT) != wanted.get(path, _ABSENT)]
    return [Difference(path, running.get(path), wanted.get(path), _reason(path, found)) for path in paths]


def _reason(path: str, found: Mapping[str, Any]) -> str:
    if any(f"{path}.".startswith(f"{waiting}.") for waiting in found["waiting"]):
        return "waits for a restart"
    if path in _OPTIONS:
        return "set by an option or a variable of the gateway, or waits for a restart"
    if not found["reloads"]:
        return "not read, since server.reload is false: send SIGHUP"
    return "not read yet, or refused: the log of the gateway says why"


def run(options: argparse.Namespace) -> int:
    """Prints the values at and below a path, or all. Raises SettingsError for settings that cannot be used, and for a
    path that does not exist; with `--running` as `show_differences`."""
    from gateway.core.errors import SettingsError
    from gateway.registry import load_adapters, native_backends
    from gateway.settings import load_settings, nearest, override_server
    from gateway.settings.decode import decode_settings, read_text
    from gateway.settings.flat_values import is_below
    from gateway.settings.origins import OriginalFile, effective_values

    settings = load_settings(options.settings)
    overrides = _overrides(options, os.environ)
    values = {path: str(override.value) for path, override in overrides.items()}
    wanted = override_server(settings, *(values.get(f"server.{key}") for key in ("host", "port", "workers")))
    if options.running:
        return show_differences(options, wanted)
    text = read_text(options.settings)
    raw = decode_settings(text)
    file = OriginalFile(options.settings.name, text, raw if isinstance(raw, dict) else {})
    native = native_backends(load_adapters(settings))
    found = effective_values(file, settings, overrides, native)
    shown = [one for one in found if is_below(one.path, options.path, settings)]
    if not shown:
        raise SettingsError(f"there is no setting {options.path!r}{nearest(options.path, [one.path for one in found])}")
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    else:
        print(_table([_row(one) for one in shown]))
    return 0


def _overrides(options: argparse.Namespace, environ: Mapping[str, str]) -> "dict[str, Origin]":
    """Returns the options and variables that replace settings of the file, as for `dragoman serve`."""
    from gateway.settings.origins import Origin

    found: dict[str, Origin] = {}
    for key, variable in (("host", None), ("port", "DRAGOMAN_PORT"), ("workers", "DRAGOMAN_WORKERS")):
        flag, value = getattr(options, key), environ.get(variable) if variable else None
        if flag:
            found[f"server.{key}"] = Origin(_number(flag), f"--{key}")
        elif value:
            found[f"server.{key}"] = Origin(_number(value), str(variable))
    return found


def _number(text: str) -> int | str:
    return int(text[:9]) if text.isascii() and text.isdigit() else text


def _row(value: "EffectiveValue") -> tuple[str, ...]:
    over = ", ".join(f"{_json(one.value)} ({one.origin})" for one in value.over)
    return value.path, _json(value.value), value.origin, f"over {over}" if over else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: Iterable[str], widths: Iterable[int]) -> str:
    return "  ".join(cell.ljust(min(width, 60)) for cell, width in zip(row, widths, strict=True)).rstrip()
