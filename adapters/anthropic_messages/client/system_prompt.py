"""Reads the system prompt, without the line of it that changes with every request of Claude Code."""

from typing import Final

from adapters.anthropic_messages import DIALECT
from adapters.anthropic_messages.client.changes import Changes
from adapters.anthropic_messages.client.content import IN_SYSTEM, ContentReader
from gateway.core.conversation import (
    Json,
    Source,
    Text,
    Turn,
)
from gateway.dialects.faults import Faults

# Claude Code begins its system prompt with a line of this name, which changes with every request: it would keep a
# backend from finding the prompt in its cache.
_BILLING: Final = "x-anthropic-billing-header:"


def read_system(system: Json, faults: Faults, changes: Changes) -> tuple[Turn, ...]:
    """Returns the system prompt as one turn with a text for each block; no turn where it is absent or empty."""
    if not system:
        return ()
    reader = ContentReader(faults, changes)
    read = [block for _, block in reader.read(system, -1, "system", IN_SYSTEM)]
    blocks = [block for block in read if not (type(block) is Text and block.text.startswith(_BILLING))]
    if len(blocks) < len(read):
        changes.drop_field("system", f"the text of the system prompt that begins with {_BILLING!r} is left out")
    source = Source(DIALECT, {"role": "system", "content": system}, isinstance(system, list))
    return (Turn("system", tuple(blocks), source=source),) if blocks else ()
