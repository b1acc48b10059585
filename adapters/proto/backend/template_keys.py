"""Defines the keys of a request template, and checks them against the fields of its message type.

Those that begin with the mark are no fields of a message.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.proto.backend.field_values import type_name
from adapters.proto.backend.mapping_error import mapping_error, unknown_name
from adapters.proto.backend.schema import Field, MessageType
from gateway.core.conversation import Json

MARK: Final = "$"
WITH: Final = "$with"
EACH: Final = "$each"
BY: Final = "by"
AS: Final = "as"
TOGETHER: Final = "together"
CASE: Final = "$case"
JSON: Final = "$json"
# Those that begin with the mark, and stand where a field could stand.
KEYS: Final = (WITH, EACH, CASE, JSON)


def find_field(key: str, kind: MessageType, place: str) -> Field:
    """Returns the field of this name. Raises OptionError with the nearest name."""
    if key in KEYS:
        raise mapping_error(f"{place}.{key}", "it cannot stand here")
    if key not in kind.fields_by_name:
        known = KEYS if key.startswith(MARK) else kind.fields_by_name
        raise unknown_name(f"{place}.{key}", f"{kind.full_name} has no field {key!r}", key, known)
    return kind.fields_by_name[key]


def check_oneofs(keys: Sequence[str], kind: MessageType, place: str) -> None:
    """Raises OptionError for two fields of one oneof, of which a message holds one."""
    taken: dict[str, str] = {}
    for key in keys:
        oneof = kind.fields_by_name[key].containing_oneof
        if oneof is not None and (other := taken.setdefault(oneof.full_name, key)) != key:
            raise mapping_error(place, f"{other!r} and {key!r} are of one oneof")


def check_keys(template: Mapping[str, Json], known: Sequence[str], place: str) -> None:
    """Raises OptionError for a key that is not known here, with the nearest one."""
    for key in template:
        if key not in known:
            raise unknown_name(f"{place}.{key}", f"unknown key {key!r}", key, known)


def joined_fields(template: Mapping[str, Json], field: Field, place: str) -> Sequence[str]:
    """Returns the fields that `together` joins: those that hold lists. Raises OptionError where there is none."""
    if not isinstance(template.get(TOGETHER, False), bool):
        raise mapping_error(f"{place}.{TOGETHER}", "write true or false")
    if not template.get(TOGETHER):
        return ()
    found = [part.name for part in field.message_type.fields if part.is_repeated] if field.message_type else []
    if not found:
        raise mapping_error(f"{place}.{TOGETHER}", f"{type_name(field)} has no repeated field in which to join items")
    return found
