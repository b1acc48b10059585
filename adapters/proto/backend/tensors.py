"""Reads tensors of an answer in KServe's form: the first element, typed or raw.

Source: KServe, Open Inference Protocol, gRPC, "Tensor Data" (raw contents are in the order of the outputs; an element
of BYTES stands behind its length in four bytes, the least significant first).
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from adapters.proto.backend.field_getters import Getter, Leaves, Place
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.schema import MessageType
from gateway.core.errors import BackendProtocolError

_OUTPUTS: Final = "outputs"
_RAW: Final = "raw_output_contents"
_NEEDED: Final = ("name", "datatype", "contents")
# The field of typed contents, and the form of a raw element.
_BYTES: Final = "BYTES"
_INTEGERS: Final[Mapping[str, tuple[str, str]]] = {
    "INT8": ("int_contents", "<b"),
    "INT16": ("int_contents", "<h"),
    "INT32": ("int_contents", "<i"),
    "INT64": ("int64_contents", "<q"),
    "UINT8": ("uint_contents", "<B"),
    "UINT16": ("uint_contents", "<H"),
    "UINT32": ("uint_contents", "<I"),
    "UINT64": ("uint64_contents", "<Q"),
}
_LENGTH: Final = struct.Struct("<I")


def find_tensor(name: str, kind: MessageType, place: str, leaves: Leaves) -> Place:
    """Returns the place of the tensor with this name among the outputs of a message, or of its one field that has
    outputs. A tensor that is missing reads as none. Raises OptionError for a message without outputs, and for a place
    that no tensor can fill."""
    holder = _holder(kind, place)
    if "bytes" in leaves:
        return _place("bytes", holder, name, lambda output, raw: _text(output, raw, name), b"")
    if "text" in leaves:
        return _place("text", holder, name, lambda output, raw: _text(output, raw, name).decode("utf-8", "replace"), "")
    if "integer" in leaves:
        return _place("integer", holder, name, lambda output, raw: _integer(output, raw, name), 0)
    needed = " or ".join(leaves.values())
    reason = f"it holds text or a whole number, and {needed} is needed; write the path of a field"
    raise mapping_error(place, f"a tensor cannot stand here: {reason}")


def _holder(kind: MessageType, place: str) -> Getter:
    if _has_outputs(kind):
        return lambda message: message
    below = [field for field in kind.fields if not field.is_repeated and _has_outputs(field.message_type)]
    if len(below) != 1:
        reason = f"{kind.full_name} has no tensors: no {_OUTPUTS!r} with {', '.join(_NEEDED)}, and no {_RAW!r}"
        raise mapping_error(place, reason)
    name = below[0].name
    return lambda message: getattr(message, name)


def _has_outputs(kind: MessageType | None) -> bool:
    if kind is None or not {_OUTPUTS, _RAW} <= set(kind.fields_by_name):
        return False
    tensor = kind.fields_by_name[_OUTPUTS].message_type
    return tensor is not None and set(_NEEDED) <= set(tensor.fields_by_name)


def _place(leaf: Any, holder: Getter, name: str, read: Callable[[Any, bytes | None], Any], missing: Any) -> Place:
    def get(message: Any) -> Any:
        answer = holder(message)
        for position, output in enumerate(answer.outputs):
            if output.name == name:
                raw = answer.raw_output_contents
                return read(output, raw[position] if position < len(raw) else None)
        return missing

    def is_set(message: Any) -> bool:
        return any(output.name == name for output in holder(message).outputs)

    return Place(leaf, get, is_set)


def _text(output: Any, raw: bytes | None, name: str) -> bytes:
    if output.datatype != _BYTES:
        raise _unfit(name, output.datatype)
    if raw is None:
        found: list[bytes] = output.contents.bytes_contents
        return found[0] if found else b""
    if not raw:
        return b""
    size = _LENGTH.unpack_from(raw)[0] if len(raw) >= _LENGTH.size else len(raw)
    if len(raw) < _LENGTH.size + size:
        raise BackendProtocolError(f"The backend sent half of the tensor {name}.")
    return raw[_LENGTH.size : _LENGTH.size + size]


def _integer(output: Any, raw: bytes | None, name: str) -> int:
    if output.datatype not in _INTEGERS:
        raise _unfit(name, output.datatype)
    field, form = _INTEGERS[output.datatype]
    if raw is None:
        found: list[int] = getattr(output.contents, field)
        return found[0] if found else 0
    if not raw:
        return 0
    if len(raw) < struct.calcsize(form):
        raise BackendProtocolError(f"The backend sent half of the tensor {name}.")
    return int(struct.unpack_from(form, raw)[0])


def _unfit(name: str, datatype: str) -> BackendProtocolError:
    return BackendProtocolError(f"The backend sent the tensor {name} with the unexpected type {datatype[:16]!r}.")
