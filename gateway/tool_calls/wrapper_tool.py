"""Extracts the real call from the arguments of a wrapped call, and keeps its arguments byte for byte."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.policy import WrapperTool

# The combined alphabet of all providers' function names. A declared name is always valid.
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")

# Deeper nesting is no call that a model intended.
_DEEPEST: Final = 8


class BrokenWrapper(ValueError):
    """The arguments contain no valid call. The message gives the reason without quoting any content."""


class UnwrappedCall(msgspec.Struct, frozen=True):
    """The real call. `arguments` is a JSON object as text; `unused` are the fields that were left out."""

    name: str
    arguments: str
    unused: tuple[str, ...] = ()


def unwrap_arguments(
    text: str, wrapper: WrapperTool, wrapper_tools: Mapping[str, WrapperTool], declared: Container[str]
) -> UnwrappedCall:
    """Finds the real call in the arguments of a wrapped one. Raises BrokenWrapper.

    Missing, null and blank arguments are `{}`, unless an undeclared field may hold them; the first object
    that is not empty is kept as it was written; a JSON string is opened once. Anything else (a list, a number, a string
    that holds no object) is no argument object, and none is invented.
    An envelope in an envelope is opened too, unless the client declared a tool of that name.
    """
    unused: list[str] = []
    for _ in range(_DEEPEST):
        fields = _fields(_unquoted(text))
        name = _name(_pop(fields, wrapper.name_keys), declared)
        text = _arguments(fields, wrapper.args_keys)
        unused += fields
        inner = None if name in declared else wrapper_tools.get(name)
        if inner is None:
            return UnwrappedCall(name, text, tuple(unused))
        wrapper = inner
    raise BrokenWrapper("wrapped calls are nested too deeply")


def _pop(fields: dict[str, str], keys: Sequence[str]) -> str | None:
    """Removes and returns the first of these fields that is present."""
    return next((fields.pop(key) for key in keys if key in fields), None)


def _name(written: str | None, declared: Container[str]) -> str:
    if written is None:
        raise BrokenWrapper("the name is missing")
    if not written.startswith('"'):
        raise BrokenWrapper("the name is not a string")
    name = _decoded(written)
    if name not in declared and not _NAME.fullmatch(name):
        raise BrokenWrapper("the name is not a function name" if name else "the name is empty")
    return name


def _arguments(fields: dict[str, str], keys: Sequence[str]) -> str:
    """The first of these fields that is not empty. It is taken out of them, and so is each that holds nothing."""
    found = empty = None
    for key in [key for key in keys if key in fields]:
        written = _unquoted(fields[key]).strip()
        held = {} if written in ("", "null") else _object(written)
        if held == {}:
            empty = empty or (written if written.startswith("{") else None)
        elif found is not None:
            continue
        elif held is None:
            raise BrokenWrapper("the arguments are not an object")
        else:
            found = written
        del fields[key]
    if found is None and empty is None and any(value != "null" for value in fields.values()):
        raise BrokenWrapper("the arguments are missing, and there are undeclared fields")
    return found or empty or "{}"


def _unquoted(text: str) -> str:
    """Decodes a whole wrapped call that some models write as a JSON string."""
    text = text.strip()
    return _decoded(text) if text.startswith('"') else text


def _fields(text: str) -> dict[str, str]:
    """Returns the fields of a JSON object, each as its own text (so that no number changes its type)."""
    try:
        fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        pairs = json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)
    except msgspec.ValidationError:
        raise BrokenWrapper("it is not an object") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # No chain: the decoder's message may quote what the model wrote.
        raise BrokenWrapper("it is not valid JSON" if text.strip() else "it is empty") from None
    if len(fields) < len(pairs):
        raise BrokenWrapper("a field is set twice")
    return {key: bytes(value).decode() for key, value in fields.items()}


def _decoded(written: str) -> str:
    try:
        return msgspec.json.decode(written, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise BrokenWrapper("it is not valid JSON") from None


def _object(written: str) -> dict[str, msgspec.Raw] | None:
    try:
        return msgspec.json.decode(written, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
