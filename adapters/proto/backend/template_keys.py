"""Defines the keys of a request template, and checks them against the fields of its message type.

Those that begin with the mark are no fields of a message.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from adapters.proto.backend.field_values import STRUCT, VALUE, is_map, type_name
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.rendering import FieldPath
from adapters.proto.backend.schema import Field, MessageType
from gateway.core.conversation import Json
from gateway.core.errors import OptionError

MARK: Final = "$"
# A name in a text can be found only behind it.
NAME_INSIDE: Final = re.compile(r"\$[a-z]")
NAME_AFTER_TEXT: Final = re.compile(r"([^$]+)(\$[\w.]+)")
WITH: Final = "$with"
WITHOUT: Final = "$without"
EACH: Final = "$each"
BY: Final = "by"
AS: Final = "as"
TOGETHER: Final = "together"
CASE: Final = "$case"
CALL: Final = "$call"
JSON: Final = "$json"
# Those that begin with the mark, and stand where a field could stand.
CONDITIONS: Final = (WITH, WITHOUT)
KEYS: Final = (*CONDITIONS, EACH, CASE, CALL, JSON)


def find_field(key: str, kind: MessageType, place: str) -> Field:
    """Returns the field of this name. Raises OptionError with the nearest name."""
    if key in KEYS:
        raise misplaced(key, place, f"the whole request is one message; write {_object_of(kind)}")
    if key not in kind.fields_by_name:
        known = KEYS if key.startswith(MARK) else kind.fields_by_name
        raise unknown_name(f"{place}.{key}", f"{kind.full_name} has no field {key!r}", key, known)
    return kind.fields_by_name[key]


def misplaced(key: str, place: str, reason: str) -> OptionError:
    """Returns the error for a key that cannot stand at a place: the reason, and what can."""
    return mapping_error(place, f"{key} cannot stand here: {reason}")


def misplaced_each(field: Field, place: str) -> OptionError:
    """Returns the error for `$each` at a field, or an item, that holds one value."""
    reason = f"it gives several items, and the field is of one {type_name(field)}; write {nearest_of(field)}"
    return misplaced(EACH, place, reason)


def nearest_of(field: Field) -> str:
    """Returns what stands at a field that holds one value, in words."""
    if field.message_type is None:
        return 'one value, such as "$model"'
    is_json = field.message_type.full_name in (STRUCT, VALUE)
    return 'an object, or a name such as "$parameters"' if is_json else _object_of(field.message_type)


def check_single_value(template: Mapping[str, Json], place: str) -> None:
    """Raises OptionError for a key that makes one value, at a repeated field."""
    for key in (WITH, WITHOUT, JSON):
        if key in template:
            nearest = f"write a list, with {key} in its items, or {EACH}"
            raise misplaced(key, place, f"the field is repeated; {nearest}")


def _object_of(kind: MessageType) -> str:
    return f"an object of its fields, {', '.join(repr(field.name) for field in kind.fields)}"


def is_value_with(template: Mapping[str, Json]) -> bool:
    """Returns whether the template is a value with a condition: of `as`, not of the fields of a message."""
    return AS in template and (WITH in template or WITHOUT in template)


def check_oneofs(template: Mapping[str, Json], kind: MessageType, place: str) -> None:
    """Raises OptionError for two fields of one oneof, of which a message holds one, unless their conditions exclude
    each other."""
    taken: dict[str, list[str]] = {}
    for key in template:
        oneof = None if key in CONDITIONS else kind.fields_by_name[key].containing_oneof
        if oneof is None:
            continue
        others = taken.setdefault(oneof.full_name, [])
        for other in others:
            if not _exclude(template[other], template[key]):
                way = f"give one {WITH} and the other {WITHOUT} of a name, or both {CASE} with different words"
                raise mapping_error(place, f"{other!r} and {key!r} are of one oneof; {way}")
        others.append(key)


def _exclude(one: Json, other: Json) -> bool:
    """Returns whether never both parts of a template have a value."""
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    pairs = ((one, other), (other, one))
    if any(_names(this.get(WITH)) & _names(that.get(WITHOUT)) for this, that in pairs):
        return True
    if is_value_with(one) or is_value_with(other):
        return _exclude(one.get(AS, one), other.get(AS, other))
    return CASE in one and one[CASE] == other.get(CASE) and not (one.keys() & other.keys()) - {CASE}


def _names(written: Json) -> set[str]:
    return {name for name in (written if isinstance(written, list) else [written]) if isinstance(name, str)}


def check_keys(template: Mapping[str, Json], known: Sequence[str], place: str) -> None:
    """Raises OptionError for a key that is not known here, with the nearest one."""
    for key in template:
        if key not in known:
            raise unknown_name(f"{place}.{key}", f"unknown key {key!r}", key, known)


def joined_fields(template: Mapping[str, Json], field: Field, place: str) -> Sequence[FieldPath]:
    """Returns the paths of the lists that `together` joins: of every repeated field, or the one that it names. Raises
    OptionError where there is none."""
    written = template.get(TOGETHER, False)
    place = f"{place}.{TOGETHER}"
    if not isinstance(written, bool | str):
        raise mapping_error(place, "write true, false, or the path of a repeated field")
    if written is False:
        return ()
    if isinstance(written, str):
        return (_repeated(written, field, place),)
    found = [(part.name,) for part in field.message_type.fields if _holds_items(part)] if field.message_type else []
    if not found:
        raise mapping_error(place, f"{type_name(field)} has no repeated field in which to join items")
    return found


def _repeated(path: str, field: Field, place: str) -> FieldPath:
    """Returns the names in a path to a repeated field, which single messages lead to."""
    *above, last = path.split(".")
    for step in above:
        field = _below(field, step, place)
        if field.is_repeated:
            raise mapping_error(place, f"{step!r} is repeated; the path ends there")
    if not _holds_items(field := _below(field, last, place)):
        fault = "a map" if is_map(field) else f"of {type_name(field)}, which is not repeated"
        raise mapping_error(place, f"{last!r} is {fault}; neighbours are joined in a list")
    return (*above, last)


def _below(field: Field, name: str, place: str) -> Field:
    if field.message_type is None:
        raise mapping_error(place, f"{field.name!r} is of {type_name(field)}, which has no fields")
    known = field.message_type.fields_by_name
    if name not in known:
        raise unknown_name(place, f"{field.message_type.full_name} has no field {name!r}", name, known)
    return known[name]


def _holds_items(field: Field) -> bool:
    return bool(field.is_repeated) and not is_map(field)
