"""Converts the fields of a request to a typed value; a wrong one is a 400 that names it by its path."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.wrong_value import WrongValue, in_words, read_wrong_value

Fields = TypeVar("Fields", bound=msgspec.Struct)

# Any: msgspec cannot read the recursive Json type.
FreeObject: TypeAlias = dict[str, Any]
# No backend counts further, and most read a number as 64 bits.
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
# The model in the published document, and where a request may leave it out. Any: a subclass may not widen a type.
ModelName: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"\S")]
OptionalModelName: TypeAlias = Annotated[Any, msgspec.Meta(extra_json_schema={"type": "string", "pattern": r"\S"})]


def read_fields(fields: Mapping[str, Json], kind: type[Fields], place: str = "") -> Fields:
    """Returns the fields as this type. `place` is the path of their object, empty for the request itself. Raises
    InvalidRequest whose `param` is the path of the wrong field."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError:
        pass
    try:
        return msgspec.convert(whole_numbers(fields), kind)
    except msgspec.ValidationError as error:
        raise _wrong_field(read_wrong_value(error), place) from error


def whole_numbers(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Returns a copy of the fields, in which 100.0 is 100: a whole number in JSON Schema and where there is a single
    type of numbers."""
    whole = {name: int(n) for name, n in fields.items() if isinstance(n, float) and n.is_integer()}
    return {**fields, **whole}


def _wrong_field(wrong: WrongValue, place: str) -> InvalidRequest:
    """Returns the error for a wrong field, in words for the client."""
    inner = wrong.path if not wrong.path or wrong.path.startswith("[") else f".{wrong.path}"
    param = f"{place}{inner}".removeprefix(".") or None
    where = param or "The request"
    if wrong.missing:
        return missing_field(f"{param}.{wrong.missing}" if param else wrong.missing)
    if wrong.bound is not None:
        return InvalidRequest(f"{where} is out of range.", param=param)
    if not wrong.expected:
        return InvalidRequest(f"{where}: {wrong.reason[:1].lower()}{wrong.reason[1:]}.", param=param)
    wanted = in_words(kind for kind in wrong.expected if kind != "null")
    sentence = f"{where} must be {wanted}; it is {in_words((wrong.found,))}."
    return InvalidRequest(sentence, code="invalid_type", param=param)


def missing_field(param: str) -> InvalidRequest:
    """Returns the error for a required field that the client left out."""
    return InvalidRequest(f"{param} is missing.", code="missing_required_parameter", param=param)
