"""Makes what is shown of requests from redacted bytes: nothing else of a text can be in it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.secrets import without_secrets
from gateway.inspector.views.diff import Difference, Pair, difference
from gateway.inspector.views.remade import Remade, remake
from gateway.inspector.views.sent_diff import SentDifference, sent_difference
from gateway.inspector.views.what_if import WhatIf, what_if
from gateway.recording.lines import RedactionLevel
from gateway.recording.outcome import differences, outcome_of
from gateway.recording.recording import Interaction
from gateway.recording.redact.redact import redact_alike
from gateway.settings import Settings

# No sentence about a failure is longer.
_MOST_WORDS: Final = 4096


def remade_alike(
    found: Sequence[Interaction], level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> Sequence[Remade]:
    """Makes the stages of requests again from redacted bytes, with one set of words: the same word becomes the same in
    all of them. Ids stay: by them somebody finds a call in the log and in other requests."""
    redacted = redact_alike(found, level, seed, known, settings=settings, ids=True)
    return [remake(one.interaction, settings, run=one.run) for one in redacted]


def remade_redacted(
    interaction: Interaction,
    level: RedactionLevel,
    seed: bytes,
    known: Sequence[str],
    settings: Settings,
    redact_own: Callable[[str], str],
    with_backend_words: bool,
) -> Remade:
    """Makes the stages again from redacted bytes. The checks are those of the captured ones; `redact_own` is what the
    gateway applied to the errors of backends. `with_backend_words`: what a backend said of its failure stays, without
    secrets."""
    captured = remake(interaction, settings, redact_own)
    (shown,) = remade_alike([interaction], level, seed, known, settings)
    # They quote what they are about: the code of an outcome may be the backend's own word.
    checks = tuple(
        msgspec.structs.replace(check, difference=without_secrets(check.difference, known)) for check in captured.checks
    )
    said = _backend_words(interaction) if with_backend_words else ""
    return msgspec.structs.replace(
        shown,
        checks=checks,
        lost=tuple(_lost(captured, shown, known)),
        backend_words=without_secrets(said, known)[:_MOST_WORDS],
    )


def _backend_words(interaction: Interaction) -> str:
    failure = None if interaction.end is None else interaction.end.failure
    return failure.message if failure is not None and failure.upstream else ""


def _lost(captured: Remade, shown: Remade, known: Sequence[str]) -> Iterator[str]:
    if captured.run is not None and shown.run is not None:
        for one in differences(outcome_of(captured.run), outcome_of(shown.run)):
            yield without_secrets(one, known)


def compared(
    pair: tuple[Interaction, Interaction],
    cached: int | None,
    level: RedactionLevel,
    seed: bytes,
    known: Sequence[str],
    settings: Settings,
) -> Difference:
    """Compares the captured bytes of two requests, the earlier one first, in redacted words."""
    captured = Pair(*(remake(one, settings) for one in pair))
    return difference(captured, Pair(*remade_alike(pair, level, seed, known, settings)), cached)


def sent_compared(
    pair: tuple[Interaction, Interaction], level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> SentDifference:
    """Compares what was sent for two requests, the earlier one first, in redacted words."""
    return sent_difference(Pair(*remade_alike(pair, level, seed, known, settings)))


def tried(
    interaction: Interaction, level: RedactionLevel, seed: bytes, known: Sequence[str], settings: Settings
) -> WhatIf:
    """Says what would be sent for a request whose route has been changed, in redacted words."""
    (clean,) = redact_alike([interaction], level, seed, known, settings=settings, ids=True)
    return what_if(clean.interaction, settings)
