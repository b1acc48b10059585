"""Converts the fields of a request to a typed value; a wrong one is a 400 that names it by its path."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest

Fields = TypeVar("Fields", bound=msgspec.Struct)

# Any: msgspec cannot read the recursive Json type.
FreeObject: TypeAlias = dict[str, Any]
# No backend counts further, and most read a number as 64 bits.
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# The model in the published document, and where a request may leave it out. Any: a subclass may not widen a type.
ModelName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S")]
OptionalModelName: TypeAlias = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "string", "pattern": r"\S"})]

_WORDS: Final[Mapping[str, str]] = {
    "str": "text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def read_fields(fields: Mapping[str, Json], kind: type[Fields], place: str = "") -> Fields:
    """Returns the fields as this type. `place` is the path of their object, empty for the request itself. Raises
    InvalidRequest whose `param` is the path of the wrong field."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError:
        return _read_whole_numbers(fields, kind, place)


def _read_whole_numbers(fields: Mapping[str, Json], kind: type[Fields], place: str) -> Fields:
    """100.0 is a whole number in JSON Schema and in languages with a single number type."""
    whole = {key: int(value) for key, value in fields.items() if isinstance(value, float) and value.is_integer()}
    try:
        return msgspec.convert({**fields, **whole}, kind)
    except msgspec.ValidationError as error:
        raise _wrong_type(str(error), place) from error


def _wrong_type(said: str, place: str) -> InvalidRequest:
    """Rewrites msgspec's "Expected `int | null`, got `str` - at `$.max_tokens`" in words for the client."""
    reason, _, inner = said.partition(" - at `$")
    param = f"{place}{inner.rstrip('`')}".removeprefix(".") or None
    where = param or "The request"
    if reason.startswith("Object missing required field"):
        field = reason.rpartition("field ")[2].strip("`")
        return missing_field(f"{param}.{field}" if param else field)
    if reason.startswith("Expected `int` "):
        return InvalidRequest(f"{where} is out of range.", param=param)
    if not reason.startswith("Expected `"):
        return InvalidRequest(f"{where}: {reason[:1].lower()}{reason[1:]}.", param=param)
    expected, _, got = reason.removeprefix("Expected `").partition("`, got `")
    wanted = " or ".join(_WORDS.get(kind, kind) for kind in expected.rstrip("`").split(" | ") if kind != "null")
    found = _WORDS.get(got.rstrip("`"), got.rstrip("`"))
    return InvalidRequest(f"{where} must be {wanted}; it is {found}.", code="invalid_type", param=param)


def missing_field(param: str) -> InvalidRequest:
    """Returns the error for a required field that the client left out."""
    return InvalidRequest(f"{param} is missing.", code="missing_required_parameter", param=param)
