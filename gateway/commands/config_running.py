"""Runs `dragoman config show --running`: prints where a running gateway and the settings file differ."""

import argparse
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from gateway.settings import Settings

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


def run(options: argparse.Namespace, settings: "Settings") -> int:
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
    """Returns where the values in use, as the gateway tells them, differ from those of the file. (Any: JSON.)"""
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
