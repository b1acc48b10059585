"""Lists all faults of the demo backends: those of several wires, and those of each wire."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from adapters.anthropic_messages.demo.faults import MESSAGES_FAULTS
from adapters.gemini.demo.faults import GEMINI_FAULTS
from adapters.openai_chat.demo.faults import CHAT_FAULTS
from adapters.openai_responses.demo.faults import RESPONSES_FAULTS
from adapters.proto.demo.faults import GRPC_FAULTS
from adapters.text.demo.faults import TEXT_FAULTS
from gateway.demo.faults.fault import ALL_WIRES, Fault, after
from gateway.demo.faults.fields import IGNORED_FIELDS
from gateway.demo.faults.replies import REPLIES
from gateway.demo.faults.responses import RESPONSES
from gateway.demo.faults.serving import SERVING
from gateway.demo.faults.timing import TIMING

# The faults that several wires have.
COMMON: Final[Mapping[str, Fault[Any]]] = {**SERVING, **RESPONSES, **TIMING, **REPLIES, **IGNORED_FIELDS}
# The faults of one wire. (Any: each wire has its own type of answers.)
OWN: Final[Mapping[str, Mapping[str, Fault[Any]]]] = {
    "chat": CHAT_FAULTS,
    "messages": MESSAGES_FAULTS,
    "responses": RESPONSES_FAULTS,
    "gemini": GEMINI_FAULTS,
    "text": TEXT_FAULTS,
    "grpc": GRPC_FAULTS,
    "agent": {},
}
# Where a common fault is of another kind: this wire has other errors, streams every answer, or ends in trailers.
OTHER_KINDS: Final = {
    ("text", "error_in_200"): "hollow",
    ("text", "ignores_stream"): "hollow",
    ("grpc", "held_open"): "stall",
}


def _faults_of(wire: str) -> dict[str, Fault[Any]]:
    common = {name: _on(wire, name, fault) for name, fault in COMMON.items() if wire in fault.wires}
    return {**common, **OWN[wire]}


def _on(wire: str, name: str, fault: Fault[Any]) -> Fault[Any]:
    placed = fault.with_options({"after": after(wire)}) if "after" in fault.options else fault
    return msgspec.structs.replace(placed, kind=OTHER_KINDS.get((wire, name), fault.kind))


# By the kind of demo backend, then by name.
FAULTS: Final[Mapping[str, Mapping[str, Fault[Any]]]] = {wire: _faults_of(wire) for wire in ALL_WIRES}


def find_fault(name: str, wire: str) -> Fault[Any]:
    """Returns the fault of this name. Raises ValueError if the wire does not have it."""
    if name not in FAULTS[wire]:
        raise ValueError(f"the demo backend {wire!r} has no defect {name!r}; it has {', '.join(FAULTS[wire])}")
    return FAULTS[wire][name]
