"""The arguments of an enveloped call -> the real call inside, its arguments byte for byte as they came."""

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Final

import msgspec

from gateway.policy import Envelope

# The alphabets of all providers' function names together. A declared name is right whatever it looks like.
_NAME: Final = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")

# Deeper nesting is no call that a model meant.
_DEEPEST: Final = 8


class BrokenEnvelope(ValueError):
    """No real call can be made of it. The message gives the reason without quoting any content."""


class Opened(msgspec.Struct, frozen=True):
    """The call that was inside. `arguments` is a JSON object as text."""

    name: str
    arguments: str


def open_envelope(text: str, envelope: Envelope, envelopes: Mapping[str, Envelope], declared: Container[str]) -> Opened:
    """Find the real call in the arguments of an enveloped one. Raises BrokenEnvelope.

    Missing, null and blank arguments are `{}`; an object is kept as it was written; a JSON string is opened once.
    Anything else (a list, a number, a string that holds no object) is no argument object, and none is invented.
    An envelope in an envelope is opened too, unless the client declared a tool of that name.
    """
    for _ in range(_DEEPEST):
        fields = _fields(_unquoted(text))
        name = _name(fields, envelope.name_keys, declared)
        text = _arguments(fields, envelope.args_keys)
        inner = None if name in declared else envelopes.get(name)
        if inner is None:
            return Opened(name, text)
        envelope = inner
    raise BrokenEnvelope("envelopes are nested too deeply")


def _name(fields: Mapping[str, str], keys: Sequence[str], declared: Container[str]) -> str:
    written = next((fields[key] for key in keys if key in fields), None)
    if written is None:
        raise BrokenEnvelope("the name is missing")
    if not written.startswith('"'):
        raise BrokenEnvelope("the name is no string")
    name = _decoded(written)
    if name not in declared and not _NAME.fullmatch(name):
        raise BrokenEnvelope("the name is no function name" if name else "the name is empty")
    return name


def _arguments(fields: Mapping[str, str], keys: Sequence[str]) -> str:
    written = next((fields[key] for key in keys if key in fields), "null")
    if written.startswith('"'):
        written = _decoded(written).strip() or "null"
    if written == "null":
        return "{}"
    if not _is_object(written):
        raise BrokenEnvelope("the arguments are no object")
    return written


def _unquoted(text: str) -> str:
    """Some models write the whole envelope as a JSON string."""
    text = text.strip()
    return _decoded(text) if text.startswith('"') else text


def _fields(text: str) -> dict[str, str]:
    """The fields of a JSON object, each as the text it was written in (so no number is ever re-typed)."""
    try:
        fields = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        pairs = json.loads(text, object_pairs_hook=list, parse_int=str, parse_float=str)
    except msgspec.ValidationError:
        raise BrokenEnvelope("it is no object") from None
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        # No chain: the decoder's message may quote what the model wrote.
        raise BrokenEnvelope("it is not valid JSON" if text.strip() else "it is empty") from None
    if len(fields) < len(pairs):
        raise BrokenEnvelope("a field stands twice")
    return {key: bytes(value).decode() for key, value in fields.items()}


def _decoded(written: str) -> str:
    try:
        return msgspec.json.decode(written, type=str)
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise BrokenEnvelope("it is not valid JSON") from None


def _is_object(written: str) -> bool:
    try:
        msgspec.json.decode(written, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True
