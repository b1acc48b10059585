"""Defines the summary that a client keeps itself: what is sealed into a compaction of its history, and its text form.

A compaction stands for all messages before it. Its value holds what later compactions need of them: what a model wrote
(`SummaryContent`), what is known without one (`Known`), and who spoke in which turn, so that a later summary still
tells what only tools said. The seal itself is the server's; here is its form: a mark, which no provider's state begins
with, and base64 (RFC 4648, section 5).
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Block, File, Json, JsonObject, Reasoning, Role, Text, Turn
from gateway.core.provider_state import COMPACTION_TYPES, STATE_FIELD
from gateway.memory.summaries.job_request import speaker
from gateway.memory.summaries.summary import Known, SummaryContent, summary_text

FORM: Final = 1
# The longest sealed text, in characters: it is looked at before anything is made of it.
LONGEST: Final = 256 * 1024
# Letters alone, in whole groups of base64, and no label of a backend (`gateway.core.provider_state.LABEL`).
MARK: Final = "DragomanSeal"
_FIELD: Final = "encrypted_content"
_SIGNATURE: Final = "signature"
_ROLES: Final[dict[str, Role]] = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}


class SealUnreadable(ValueError):
    """The text is no sealed summary of this form."""


class SealedSummary(msgspec.Struct, frozen=True):
    """The summary of a whole history up to a compaction.

    `created` is in seconds since 1970, `digest` that of the covered turns, of which `speakers` has a letter each (user,
    assistant, tool, system), earlier compactions included. `written`: a model wrote `content`; else it is empty, and
    `known` is all.
    """

    created: float
    digest: bytes
    speakers: str
    content: SummaryContent
    known: Known
    written: bool
    form: int = FORM

    @property
    def turns(self) -> int:
        """The number of turns that the summary stands for."""
        return len(self.speakers)

    @property
    def text(self) -> str:
        """The text that a model reads instead of the turns."""
        return summary_text(self.turns, self.content, self.known)

    def encode(self) -> bytes:
        """Returns the summary as MessagePack."""
        return msgspec.msgpack.encode(self)


def decode_summary(data: bytes) -> SealedSummary:
    """Returns the summary in opened bytes. Raises SealUnreadable for a summary of another form."""
    try:
        summary = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SealUnreadable(str(error)) from error
    if summary.form != FORM or not _ROLES.keys() >= set(summary.speakers):
        raise SealUnreadable(f"form {summary.form} of a sealed summary")
    return summary


_DECODER: Final = msgspec.msgpack.Decoder(SealedSummary)


def sealed_text(sealed: bytes) -> str | None:
    """Returns the text of sealed bytes that a client keeps; None where it would be longer than may be opened."""
    text = MARK + base64.urlsafe_b64encode(sealed).decode()
    return text if len(text) <= LONGEST else None


def sealed_bytes(text: str) -> bytes:
    """Returns the bytes in a text with the mark. Raises SealUnreadable for one that no seal has; a longer one than
    `LONGEST` is not read."""
    if len(text) > LONGEST:
        raise SealUnreadable("the text is too long")
    try:
        return base64.b64decode(text[len(MARK) :].encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise SealUnreadable(str(error)) from error


def sealed_in(turn: Turn) -> str | None:
    """Returns the sealed text in a turn that holds a compaction; None where that is a provider's own."""
    return next((state for block in turn.blocks for state in _states(block) if state.startswith(MARK)), None)


def is_sealed(block: Block) -> bool:
    """Returns whether a block is a sealed summary."""
    return any(state.startswith(MARK) for state in _states(block))


def _states(block: Block) -> Iterator[str]:
    """Yields the states of a block that may be a compaction: an item of Responses, a block of Messages."""
    if isinstance(block, File):
        if block.kind in COMPACTION_TYPES:
            yield from _texts(block.part)
    elif isinstance(block, Text | Reasoning):
        yield from _texts(block.extra)
        providers = block.extra.get(STATE_FIELD)
        for state in providers.values() if isinstance(providers, dict) else ():
            if isinstance(state, dict):
                yield from _texts(state)


def _texts(fields: JsonObject) -> Iterator[str]:
    for name in (_FIELD, _SIGNATURE):
        value: Json = fields.get(name)
        if isinstance(value, str):
            yield value


def speakers_of(turns: Sequence[Turn]) -> str:
    """Returns the letter of each turn's speaker."""
    return "".join(speaker(turn)[0] for turn in turns)


def stand_ins(speakers: str) -> tuple[Turn, ...]:
    """Returns empty turns of these speakers: they keep the numbers of the turns behind them."""
    return tuple(Turn(_ROLES[letter], ()) for letter in speakers)
