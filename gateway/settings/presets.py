"""Reads the presets of an adapter: entries with a name, which hold everything but the address and the credential.

An adapter whose Options have a `presets`, the name of a package, keeps NAME.json there, the defaults of every key, and
where an option is a schema its descriptors, NAME.pb.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.settings.check import nearest

PRESET: Final = "preset"


def preset_defaults(options: JsonObject, kind: type[msgspec.Struct], where: str) -> Mapping[str, Any]:
    """Returns the defaults of the keys of an entry that names a preset, or none. (Any: JSON and descriptors.) Raises
    SettingsError for a name that does not exist."""
    name, package = options.get(PRESET), getattr(kind, "presets", None)
    if name is None or package is None:
        return {}
    folder = files(package)
    known = sorted(path.name.removesuffix(".json") for path in folder.iterdir() if path.name.endswith(".json"))
    if not isinstance(name, str) or name not in known:
        meant = nearest(name, known) if isinstance(name, str) else ""
        raise SettingsError(f"{where}.{PRESET}: there is no preset {name!r}{meant}")
    defaults: dict[str, Any] = msgspec.json.decode(folder.joinpath(f"{name}.json").read_bytes())
    for field in msgspec.structs.fields(kind):
        if field.type is DescriptorSet:
            defaults[field.name] = DescriptorSet(folder.joinpath(f"{name}.pb").read_bytes(), f"preset {name}")
    return defaults
