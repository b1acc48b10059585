"""Runs `dragoman config show`: prints the effective settings, and where each comes from."""

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from gateway.commands import config_running

if TYPE_CHECKING:
    from gateway.settings.origins import EffectiveValue, Origin


def run(options: argparse.Namespace) -> int:
    """Prints the values at and below a path, or all. Raises SettingsError for settings that cannot be used, and for a
    path that does not exist; with `--running` as `config_running.run`."""
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
        return config_running.run(options, wanted)
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
    """Returns what replaces settings of the file from outside, as for `dragoman serve`."""
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
