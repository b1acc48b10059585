"""Compiles the rule for a message that reports a failure.

The status that it names may be one of gRPC (1 to 16) or of HTTP (400 to 599), as a number or by name. Sources: gRPC,
"Status codes and their use in gRPC"; Connect protocol reference, "Error codes"; RFC 9110, section 15; RFC 6585.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from adapters.proto.backend.error_finders import ErrorFinder
from adapters.proto.backend.field_getters import Getter, Leaves, Place
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import ErrorRule, Path
from adapters.proto.backend.places import Kind, conditions, find_optional, find_place
from adapters.proto.backend.rpc_status import STATUSES, rpc_error
from adapters.proto.backend.text_rule import TEXT
from adapters.text.backend.failure import reported_failure
from gateway.core.backend_status import reported_error
from gateway.core.conversation import Json
from gateway.core.errors import BackendError

_CODE: Final[Leaves] = {"text": "text", "integer": "a whole number", "enum": "an enum"}
_HTTP: Final = range(400, 600)
# What stands between the words of a name.
_BETWEEN: Final = re.compile(r"[\W_]+")
# A longer text of the backend is no name: its tails would be many.
_LONGEST_NAME: Final = 64


def _bare(name: str) -> str:
    return _BETWEEN.sub("", name.lower())


# Words are compared by their letters and digits alone, so that `ResourceExhausted` is one, too. The names of HTTP are
# those of RFC 9110 and RFC 6585, and those that earlier versions had.
_HTTP_NAMES: Final[Mapping[int, tuple[str, ...]]] = {
    400: ("bad request",),
    401: ("unauthorized",),
    402: ("payment required",),
    403: ("forbidden",),
    404: ("not found",),
    405: ("method not allowed",),
    406: ("not acceptable",),
    408: ("request timeout",),
    409: ("conflict",),
    410: ("gone",),
    411: ("length required",),
    412: ("precondition failed",),
    413: ("content too large", "payload too large", "request entity too large"),
    414: ("URI too long", "request URI too long"),
    415: ("unsupported media type",),
    422: ("unprocessable content", "unprocessable entity"),
    429: ("too many requests",),
    431: ("request header fields too large",),
    500: ("internal server error",),
    501: ("not implemented",),
    502: ("bad gateway",),
    503: ("service unavailable",),
    504: ("gateway timeout",),
}
_BY_WORD: Final[Mapping[str, int]] = {
    **{str(status): status for status in _HTTP},
    **{_bare(name): status for status, names in _HTTP_NAMES.items() for name in names},
    "cancelled": 1,
    **{_bare(name): code for code, (name, _) in STATUSES.items()},
}


def compile_error(rule: ErrorRule, kind: Kind, place: str) -> ErrorFinder:
    """Returns the finder of one rule: the error that a message reports, or None. Raises OptionError."""
    if not rule.when:
        raise mapping_error(f"{place}.when", "an error needs a condition")
    holds = conditions(rule.when, kind, f"{place}.when")
    message_of = find_optional(rule.message, kind, f"{place}.message", TEXT)
    code_of = _code(rule.code, kind, f"{place}.code")
    status_of = _status(rule.status, kind, f"{place}.status")

    def find_error(message: Any) -> BackendError | None:
        if not holds(message):
            return None
        said = message_of(message) or ""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        return _failure(status_of(message), text, code_of(message))

    return find_error


def _failure(status: int | None, text: str, code: str | int | None) -> BackendError:
    word = code if isinstance(code, str) and not code.isdecimal() else None
    if status is not None and status in STATUSES:
        return rpc_error(status, text, {}, word=word)
    if status is not None:
        return reported_error(status, message=text, code=word, fields={"type": word})
    # A number may be a status, but is no word.
    failure: dict[str, Json] = {"message": text, "code": word or (code and _stated(code)), "type": word}
    return reported_failure(failure)


def _code(written: Path | None, kind: Kind, place: str) -> Getter:
    """Returns the getter of the backend's own word for an error: of an enum the name in lower case."""
    if written is None:
        return lambda message: None
    found = find_place(written, kind, place, _CODE)
    get = found.get
    if found.leaf != "enum":
        return lambda message: get(message) or None
    names = {number: value.name.lower() for number, value in found.field.enum_type.values_by_number.items()}
    return lambda message: names.get(get(message))


def _status(written: int | Path | None, kind: Kind, place: str) -> Getter:
    """Returns the getter of the status that an error stands for. None: it names none."""
    if written is None or isinstance(written, int):
        if written is not None and _by_number(written) is None:
            raise mapping_error(place, f"{written} is no status of an error")
        return lambda message: written
    found = find_place(written, kind, place, _CODE)
    get = found.get
    if found.leaf == "enum":
        known = _statuses(found, place)
        return lambda message: known.get(number := get(message)) or (number if number in _HTTP else None)
    return lambda message: _stated(get(message))


def _statuses(found: Place, place: str) -> dict[int, int]:
    """Returns the status of each number of an enum, by its name, else by the number."""
    enum = found.field.enum_type
    known: dict[int, int] = {}
    for value in enum.values:
        status = _by_name(value.name) or (value.number if value.number in _HTTP else None)
        if status is not None:
            known[value.number] = status
    if not known:
        reason = f"no value of {enum.full_name} is named after a status of gRPC or HTTP, or has the number of one"
        raise mapping_error(place, reason)
    return known


def _stated(value: str | int) -> int | None:
    if isinstance(value, int):
        return _by_number(value)
    return _by_number(int(value)) if value.isdecimal() and len(value) < 4 else _by_name(value)


def _by_number(number: int) -> int | None:
    return number if number in STATUSES or number in _HTTP else None


def _by_name(word: str) -> int | None:
    """Returns the status of a name, before which a prefix may stand, such as that of its enum."""
    if len(word) > _LONGEST_NAME:
        return None
    parts = _BETWEEN.split(word.lower())
    tails = ("".join(parts[first:]) for first in range(len(parts)))
    return next((_BY_WORD[tail] for tail in tails if tail in _BY_WORD), None)
