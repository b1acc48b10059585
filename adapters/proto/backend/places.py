"""Finds what a path of a rule names: a field of a message, a tensor, or a place in a JSON document."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, Final, TypeAlias

from adapters.proto.backend.field_getters import (
    Condition,
    Getter,
    Leaves,
    Place,
    field_conditions,
    find_field,
    find_repeated,
)
from adapters.proto.backend.json_places import DOCUMENT, document_conditions, find_in_document, find_list
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import Conditions, Path, Tensor
from adapters.proto.backend.tensors import find_tensor
from gateway.core.errors import OptionError

# The type of a message, or `DOCUMENT`.
Kind: TypeAlias = Any
# The end of a step; a key and a value in brackets may have dots.
_DOT: Final = re.compile(r"\.(?![^\[]*\])")


def find_place(written: Path, kind: Kind, place: str, leaves: Leaves) -> Place:
    """Returns the place that a path names below a message or a document, with one of these leaves. Raises
    OptionError."""
    if isinstance(written, Tensor):
        if kind is DOCUMENT:
            raise mapping_error(place, "a tensor belongs to a message, not to JSON")
        return find_tensor(written.tensor, kind, f"{place}.tensor", leaves)
    return find_in_document(written, place, leaves) if kind is DOCUMENT else find_field(written, kind, place, leaves)


def find_optional(written: Path | None, kind: Kind, place: str, leaves: Leaves) -> Getter:
    """Returns the getter of the value at a path, or that of None without one. Raises OptionError."""
    return (lambda message: None) if written is None else find_place(written, kind, place, leaves).get


def find_items(written: str, kind: Kind, place: str) -> tuple[Getter, Kind]:
    """Returns the getter of the items at a path, and their type. Raises OptionError."""
    try:
        return (find_list(written, place), DOCUMENT) if kind is DOCUMENT else find_repeated(written, kind, place)
    except OptionError as error:
        # The paths beside it begin from the items.
        error.governs = place.rpartition(".")[0]
        raise


def conditions(written: Conditions, kind: Kind, place: str) -> Condition:
    """Compiles conditions, which all must hold. Raises OptionError."""
    return document_conditions(written, place) if kind is DOCUMENT else field_conditions(written, kind, place)


def single_message(written: Path, kind: Kind) -> str | None:
    """Returns the field with which a path begins, if that is a single message, which may be missing as a whole."""
    if isinstance(written, Tensor) or kind is DOCUMENT:
        return None
    field = kind.fields_by_name.get(written.partition(".")[0])
    return None if field is None or field.message_type is None or not field.has_presence else str(field.name)


def holder_is_set(written: Sequence[Path], kind: Kind, place: str) -> Condition | None:
    """Returns the condition that the innermost message that holds all these paths is there. None: that is the message
    from which the paths begin. Raises OptionError."""
    steps = [[] if isinstance(path, Tensor) else _DOT.split(path)[:-1] for path in written]
    common = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, zip(*steps, strict=False))]
    if not common:
        return None
    path = ".".join(common)
    return (find_in_document(path, place) if kind is DOCUMENT else find_field(path, kind, place)).is_set
