"""Redacts whole recordings, and checks that what is left still shows the same. The names by which passes and providers
act stay.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.secrets import without_secrets
from gateway.dialects.document import read_document
from gateway.exchange.hidden_turns import SEARCH_WORDS
from gateway.recording.beginning import closed_json
from gateway.recording.ddmin import ddmin
from gateway.recording.lines import Redaction, RedactionLevel
from gateway.recording.outcome import Outcome, differences, outcome_of
from gateway.recording.recording import Interaction, Recording
from gateway.recording.redact.interaction import (
    RedactedInteraction,
    redact_interaction,
    redacted_inputs,
    run_if_possible,
)
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words, words_of
from gateway.recording.route import request_head
from gateway.registry import load_dialect
from gateway.settings import Settings

# Of each level, how much it hides.
_HIDES: Final[Mapping[RedactionLevel, int]] = {"none": 0, "shape": 1, "full": 2}
# So many texts are looked through for those that must stay; each try runs the request again.
_MOST_TEXTS: Final = 400


class Redacted(msgspec.Struct, frozen=True):
    """A redacted recording. `removed` counts its texts that had secrets. `differences` say what it no longer shows, and
    `needed` are the smallest texts that would have to be kept for it. `unchecked` counts the requests that cannot be
    run, of which nobody knows."""

    recording: Recording
    removed: int = 0
    differences: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    unchecked: int = 0


def redact(
    recording: Recording,
    level: RedactionLevel,
    seed: bytes,
    secrets: Sequence[str] = (),
    keep: Iterable[str] = (),
    settings: Settings | None = None,
    search: bool = True,
) -> Redacted:
    """Redacts a recording at a level; one that is redacted at least so far stays as it is. `seed` makes the replaced
    words unpredictable, `secrets` are values that must never be left, and `keep` texts that stay at any level.
    `search`: look for the texts that are `needed`, which runs a request up to some hundred times."""
    before = recording.header.redaction
    hidden = before.level != "none" and _HIDES[before.level] >= _HIDES[level]
    if hidden:
        level = "none"
    kept = tuple(dict.fromkeys((*before.kept, *keep)))
    interactions = recording.interactions()
    removed = unchecked = 0
    redacted: list[Interaction] = []
    found: list[str] = []
    needed: list[str] = []
    for interaction, one in zip(
        interactions, redact_alike(interactions, level, seed, secrets, kept, settings), strict=True
    ):
        run = run_if_possible(interaction, settings)
        unchecked += run is None
        lost = () if run is None else _lost(outcome_of(run), one, secrets)
        if run is not None and lost and search and level != "none":
            again = partial(Redactor, _words(interactions, level, seed), secrets)
            needed += _needed(interaction, outcome_of(run), one.texts, again, settings)
        removed += one.removed
        # Of several requests, which one is it?
        found += lost if len(interactions) == 1 else [f"{interaction.request.id}: {one}" for one in lost]
        redacted.append(one.interaction)
    if hidden and tuple(redacted) == interactions:
        return Redacted(recording)
    reached = before.level if level == "none" else level
    header = msgspec.structs.replace(recording.header, redaction=Redaction(reached, kept, not found and not unchecked))
    clean = Recording(header).with_interactions(redacted)
    return Redacted(clean, removed, tuple(found), tuple(dict.fromkeys(needed)), unchecked)


def redact_alike(
    interactions: Sequence[Interaction],
    level: RedactionLevel,
    seed: bytes,
    secrets: Sequence[str] = (),
    keep: Sequence[str] = (),
    settings: Settings | None = None,
    ids: bool = False,
) -> Iterator[RedactedInteraction]:
    """Redacts requests with one set of words: the same word becomes the same in all of them. What they still show is
    not checked; the rest is as `redact` does it. `ids`: those of the protocols stay."""
    words = _words(interactions, level, seed)
    for interaction in interactions:
        yield redact_interaction(interaction, Redactor(words, secrets, keep, ids), settings)


def _words(interactions: Sequence[Interaction], level: RedactionLevel, seed: bytes) -> Words:
    return Words(level, seed, frozenset().union(*map(kept_words, interactions)))


def _lost(before: Outcome, redacted: RedactedInteraction, secrets: Sequence[str]) -> tuple[str, ...]:
    """Returns the facts that a redacted request no longer shows."""
    if redacted.run is None:
        return ("The redacted request cannot be run.",)
    lost = differences(before, outcome_of(redacted.run))
    # They quote the outcome from before, whose code may be the backend's own word.
    return tuple(without_secrets(one, secrets) for one in lost)


def _needed(
    interaction: Interaction,
    expected: Outcome,
    texts: Sequence[str],
    redactor: Callable[[Sequence[str]], Redactor],
    settings: Settings | None,
) -> tuple[str, ...]:
    """Returns the smallest of these texts that would have to be kept; none where even all of them are not enough."""

    def same(some: Sequence[str]) -> bool:
        after = run_if_possible(redacted_inputs(interaction, redactor(some)), settings)
        return after is not None and not differences(expected, outcome_of(after))

    # Half a character cannot be named on a command line.
    candidates = [text for text in texts if _is_whole(text)][:_MOST_TEXTS]
    return ddmin(candidates, same) if same(candidates) else ()


def _is_whole(text: str) -> bool:
    return text == text.encode("utf-8", "replace").decode()


def kept_words(interaction: Interaction) -> frozenset[str]:
    """Returns the words that stay: names of fields and of tools, stop sequences, the labels of transcripts."""
    names: set[str] = set()
    with suppress(GatewayError):
        document = read_document(interaction.body or _beginning(interaction))
        _add_fields(document.fields, names)
        request = load_dialect(interaction.request.dialect).decode(document, request_head(interaction))
        names |= {tool.name for tool in request.conversation.tools} | set(request.conversation.sampling.stop)
    if len(interaction.rounds) > 1:
        names |= SEARCH_WORDS
    if interaction.route is not None:
        names |= _texts(interaction.route.policy)
        names |= {interaction.route.model, interaction.route.name}
    return frozenset(word for name in names for word in words_of(name))


def _beginning(interaction: Interaction) -> bytes:
    """Returns the beginning of a body that is not here, as JSON that is whole; empty where there is none."""
    beginning = interaction.request.beginning
    return b"" if beginning is None else closed_json(beginning.data.content) or b""


def _add_fields(value: Json, names: set[str]) -> None:
    """Adds the names of all fields."""
    if isinstance(value, dict):
        names.update(value)
        value = [*value.values()]
    if isinstance(value, list):
        for below in value:
            _add_fields(below, names)


def _texts(value: "Json | JsonObject") -> set[str]:
    """Returns all names and texts of a policy."""
    if isinstance(value, Mapping):
        return set(value).union(*(_texts(below) for below in value.values()))
    if isinstance(value, list):
        return set[str]().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()
