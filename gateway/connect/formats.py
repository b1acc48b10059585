"""Reads and writes the files of clients, each in its format; comments of TOML and YAML stay."""

import io
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from gateway.core.errors import SettingsError
from gateway.settings.decode import json_mistake

# The first list below a key, and how far both are indented.
_FIRST_LIST: Final = re.compile(r"^( *)[^\s#-][^\n]*:[ \t]*\n( *)- ", re.M)


class Format(msgspec.Struct, frozen=True):
    """A format: `read` returns the content of a text, `write` the text of such a content, which was read from `before`
    (empty: it is new). Both raise SettingsError. (Any: JSON, in the containers of the library.)"""

    read: Callable[[str], Any]
    write: Callable[[Any, str], str]


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        comment = " (comments cannot be kept)" if "//" in text or "/*" in text else ""
        raise SettingsError(f"{json_mistake(error)}{comment}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise SettingsError("a name is set twice in one object")
    return found


def _write_json(tree: Any, before: str) -> str:
    indented = [line for line in before.splitlines() if line.startswith((" ", "\t"))]
    first = indented[0] if indented else "  "
    indent = first[: len(first) - len(first.lstrip())]
    return json.dumps(tree, indent=indent, ensure_ascii=before.isascii() and bool(before)) + "\n"


def _read_toml(text: str) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise SettingsError(str(error)) from error


def _write_toml(tree: Any, before: str) -> str:
    import tomlkit

    return tomlkit.dumps(tree)


def _read_yaml(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    try:
        return yaml.load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise SettingsError(f"{place}{getattr(error, 'problem', None) or type(error).__name__}") from error


def _write_yaml(tree: Any, before: str) -> str:
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    found = _FIRST_LIST.search(before)
    offset = 0 if isinstance(tree, list) else max(len(found[2]) - len(found[1]), 0) if found else 2
    yaml.indent(mapping=2, sequence=offset + 2, offset=offset)
    written = io.StringIO()
    yaml.dump(tree, written)
    return written.getvalue()


# By the suffix of a file.
FORMATS: Final[Mapping[str, Format]] = {
    ".json": Format(_read_json, _write_json),
    ".toml": Format(_read_toml, _write_toml),
    ".yaml": Format(_read_yaml, _write_yaml),
    ".yml": Format(_read_yaml, _write_yaml),
}


def plain(tree: Any) -> Any:
    """Returns a content in plain objects and lists, to be compared."""
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [plain(item) for item in tree]
    return tree.unwrap() if hasattr(tree, "unwrap") else tree
