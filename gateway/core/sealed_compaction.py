"""Recognises a compaction that the gateway has sealed, by its fields, and words the error for an unreadable one.

A provider's own compaction has the same fields. Ours begins with a mark, which no state of a provider does.
"""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import Block, File, JsonObject, Turn
from gateway.core.errors import InvalidRequest
from gateway.core.provider_state import COMPACTION_TYPES, LABEL_MARK, label_of

# Letters alone, in whole groups of base64, and no label of a backend (`gateway.core.provider_state.LABEL`).
MARK: Final = f"{LABEL_MARK}Seal"
# What stands in the place of a sealed text that is certainly none.
NO_SEAL: Final = ""
_FIELDS: Final = ("encrypted_content", "signature")


def sealed_text_in(fields: JsonObject) -> str | None:
    """Returns the sealed text of a compaction; None where it is a provider's own, or has no state at all.

    A state that is no text, two that differ, and one that was cut within the mark are `NO_SEAL`, which nothing opens.
    """
    states = [state for name in _FIELDS if (state := fields.get(name)) is not None]
    if any(not isinstance(state, str) for state in states):
        return NO_SEAL
    ours = {state for state in states if isinstance(state, str) and _is_ours(state)}
    if not ours:
        return None
    return ours.pop() if len(ours) == 1 else NO_SEAL


def sealed_text_of(turn: Turn) -> str | None:
    """Returns the sealed text of the last compaction in a turn; None where it holds none, or a provider's own."""
    return next((text for block in reversed(turn.blocks) if (text := _sealed_text(block)) is not None), None)


def behind_sealed(turn: Turn) -> Sequence[Block]:
    """Returns the blocks of a turn behind the last sealed compaction; all of them where it holds none."""
    sealed = [position for position, block in enumerate(turn.blocks) if _sealed_text(block) is not None]
    return turn.blocks[sealed[-1] + 1 :] if sealed else turn.blocks


def is_compaction(block: Block) -> bool:
    """Returns whether a block stands for the messages before it."""
    return isinstance(block, File) and block.kind in COMPACTION_TYPES


def unreadable_compaction(param: str) -> InvalidRequest:
    """Returns the error for a compaction that cannot be opened, for whatever reason: its words tell none."""
    message = f"{param} is a compaction that cannot be opened. Begin a new conversation, or send the messages."
    return InvalidRequest(message, code="invalid_compaction", param=param)


def _sealed_text(block: Block) -> str | None:
    return sealed_text_in(block.part) if isinstance(block, File) and is_compaction(block) else None


def _is_ours(state: str) -> bool:
    if not state:
        return False
    return MARK.startswith(state) or (state.startswith(LABEL_MARK) and not label_of(state))
