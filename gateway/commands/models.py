"""Runs `dragoman models import`: reads prices, windows and facts of models from a file that somebody else publishes."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from gateway.commands.parser import add_settings

if TYPE_CHECKING:
    from gateway.core.conversation import Json
    from gateway.settings import Settings
    from gateway.settings.model_files import ModelFile

HELP: str = "read what others publish about models"
_MOST_BYTES: int = 64 * 2**20
Keys: TypeAlias = "dict[tuple[str, ...], Json]"


def add_parsers(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of the action."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    read = actions.add_parser(
        "import", help="read prices, windows and facts from a file of genai-prices, models.dev or LiteLLM"
    )
    read.add_argument("file", metavar="FILE", type=Path, help="the file")
    read.add_argument("--model", action="append", metavar="NAME", help="only this model (repeatable; default all)")
    read.add_argument(
        "--provider", metavar="NAME", help="the provider's name in the file, instead of that of the address"
    )
    read.add_argument("--replace", action="store_true", help="also replace keys that the settings have")
    read.add_argument("--write", action="store_true", help="change the settings file, and keep FILE.bak")
    add_settings(read, environ)


def run(options: argparse.Namespace) -> int:
    """Prints or writes the keys of settings, and says on stderr what no key can hold. Returns 1 where the file has none
    of the models. Raises SettingsError."""
    from datetime import UTC, datetime

    from gateway.commands.settings_file import write_keys
    from gateway.core.errors import SettingsError
    from gateway.server.log.logger import one_line
    from gateway.settings.decode import read_text
    from gateway.settings.model_files import read_model_file
    from gateway.settings.read import parse_settings

    text = read_text(options.settings)
    settings = parse_settings(text)
    try:
        file = read_model_file(_read(options.file), datetime.now(UTC).date())
    except SettingsError as error:
        raise SettingsError(f"{options.file}: {error.message}") from error
    keys, told = _keys(settings, file, options)
    for line in told:
        # Texts of the file are in it, which may move a cursor.
        print(one_line(line), file=sys.stderr)
    if not keys:
        return 1
    if options.write:
        write_keys(options.settings, text, keys)
    else:
        print(json.dumps(_tree(keys), indent=2, ensure_ascii=False))
    return 0


def _read(path: Path) -> bytes:
    from gateway.core.errors import SettingsError

    try:
        with path.open("rb") as file:
            body = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"cannot be read: {error.strerror}") from error
    if len(body) > _MOST_BYTES:
        raise SettingsError(f"it has more than {_MOST_BYTES // 2**20} MB")
    return body


def _keys(settings: "Settings", file: "ModelFile", options: argparse.Namespace) -> tuple[Keys, list[str]]:
    """Returns the keys to set by their paths, and what is said of each model."""
    from gateway.core.errors import SettingsError
    from gateway.settings import nearest
    from gateway.settings.model_names import is_pattern

    if options.provider is not None and all(one.name != options.provider for one in file.providers):
        names = [one.name for one in file.providers]
        raise SettingsError(f"the file has no provider {options.provider!r}{nearest(options.provider, names)}")
    keys: Keys = {}
    told: list[str] = []
    for name in options.model or settings.models:
        if name not in settings.models:
            raise SettingsError(f"there is no model {name!r}{nearest(name, settings.models)}")
        if is_pattern(name):
            told.append(f"models.{name}: it stands for many models: nothing is read for it")
            continue
        found, lines = _of_model(settings, file, name, options)
        keys |= found
        told.extend(f"models.{name}: {line}" for line in lines)
    return keys, told


def _of_model(
    settings: "Settings", file: "ModelFile", name: str, options: argparse.Namespace
) -> tuple[Keys, list[str]]:
    entry = settings.models[name]
    asked = entry.policy.base_model or entry.name or name
    address = settings.backends[entry.backend].base_url
    providers = file.providers_at(address, options.provider)
    if not providers:
        return {}, [f"the file ({file.form}) does not know whose {address} is: name its provider by --provider"]
    model = next((found for one in providers if (found := one.find(asked)) is not None), None)
    if model is None:
        return {}, [f"the file ({file.form}) has no model {asked!r} of {', '.join(one.name for one in providers)}"]
    present = {"context_length": entry.context_length, "price": entry.price}
    keys: Keys = {}
    told: list[str] = []
    for path, value in _paths(model.keys()):
        held = getattr(entry.facts, path[1]) if path[0] == "facts" else present[path[0]]
        if held is None or options.replace:
            keys["models", name, *path] = value
        else:
            told.append(f"{'.'.join(path)} is set: it stays (--replace replaces it)")
    if model.left_out:
        told.append(f"no key holds {'; '.join(model.left_out)}")
    return keys, told


def _paths(keys: "dict[str, Json]") -> "list[tuple[tuple[str, ...], Json]]":
    """Returns each key with its path in the entry; of the facts each one has its own."""
    facts = keys.get("facts")
    own: list[tuple[tuple[str, ...], Json]] = [((name,), value) for name, value in keys.items() if name != "facts"]
    return own + ([(("facts", fact), value) for fact, value in facts.items()] if isinstance(facts, dict) else [])


def _tree(keys: Keys) -> "dict[str, Json]":
    """Returns the keys as the object that a settings file has."""
    tree: dict[str, Json] = {}
    for path, value in keys.items():
        place = tree
        for name in path[:-1]:
            inner = place.setdefault(name, {})
            assert isinstance(inner, dict)  # a path ends at a value
            place = inner
        place[path[-1]] = value
    return tree
