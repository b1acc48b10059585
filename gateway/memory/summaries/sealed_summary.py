"""Defines the summary that a client keeps itself: what is sealed into a compaction of its history, and its text form.

A compaction stands for all messages before it. Its value holds what later compactions need of them: what a model wrote
(`SummaryContent`), what is known without one (`Known`), and who spoke in which turn, so that a later summary still
tells what only tools said. The seal itself is the server's; here is its form: the mark
(`gateway.core.sealed_compaction`), and base64 (RFC 4648, section 5).
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Role, Turn
from gateway.core.sealed_compaction import MARK
from gateway.memory.summaries.job_request import speaker
from gateway.memory.summaries.summary import Known, SummaryContent, summary_text

FORM: Final = 1
# The longest sealed text, in characters: it is looked at before anything is made of it.
LONGEST: Final = 256 * 1024
# The most messages that one stands for: each has a letter in it, and an empty turn in the next one.
MOST_TURNS: Final = 100_000
_ROLES: Final[dict[str, Role]] = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
# What the model reads of compactions that only their provider can read.
UNREADABLE: Final = (
    "[Compactions of a provider among them: {count}. What they stood for is lost, because only that provider reads "
    "them.]"
)


class SealUnreadable(ValueError):
    """The text is no sealed summary of this form."""


class SealedSummary(msgspec.Struct, frozen=True):
    """The summary of a whole history up to a compaction.

    `created` is in seconds since 1970, `digest` that of the covered turns, of which `speakers` has a letter each (user,
    assistant, tool, system), earlier compactions included. `written`: a model wrote `content`; else it is what one
    wrote of earlier turns, and `known` is all of the others. `unreadable` counts the compactions of a provider among
    the turns, which nobody else reads.
    """

    created: float
    digest: bytes
    speakers: str
    content: SummaryContent
    known: Known
    written: bool
    unreadable: int = 0
    form: int = FORM

    @property
    def turns(self) -> int:
        """The number of turns that the summary stands for."""
        return len(self.speakers)

    @property
    def text(self) -> str:
        """The text that a model reads instead of the turns."""
        said = (UNREADABLE.format(count=self.unreadable),) if self.unreadable else ()
        return summary_text(self.turns, self.content, self.known, said)

    def encode(self) -> bytes:
        """Returns the summary as MessagePack."""
        return msgspec.msgpack.encode(self)


def decode_summary(data: bytes) -> SealedSummary:
    """Returns the summary in opened bytes. Raises SealUnreadable for a summary of another form."""
    try:
        summary = _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SealUnreadable(str(error)) from error
    if summary.form != FORM or summary.turns > MOST_TURNS or not _ROLES.keys() >= set(summary.speakers):
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


def speakers_of(turns: Sequence[Turn]) -> str:
    """Returns the letter of each turn's speaker."""
    return "".join(speaker(turn)[0] for turn in turns)


def stand_ins(speakers: str) -> tuple[Turn, ...]:
    """Returns empty turns of these speakers: they keep the numbers of the turns behind them."""
    return tuple(Turn(_ROLES[letter], ()) for letter in speakers)
