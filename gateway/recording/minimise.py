"""Makes a recording smaller while it still shows one thing: by runs in this process, without a network.

Left out are, in this order: requests, groups of messages, then every part of the request's JSON (messages, tools,
properties, blocks), then lines and words of its texts, then events of the response. What remains is minimal: no single
one of these can be left out.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.dialects.document import read_document
from gateway.history.groups import groups
from gateway.recording.ddmin import ddmin
from gateway.recording.lines import BytesLine, HeadLine, RecordingError, data_of
from gateway.recording.offline_run import OfflineRun, run_offline
from gateway.recording.outcome import outcome_of
from gateway.recording.recording import Interaction, Recording, Step
from gateway.recording.remake import remade
from gateway.registry import load_dialect
from gateway.settings import Settings

Shows: TypeAlias = Callable[[OfflineRun], bool]
# Says of a recording of one request whether it shows what is looked for.
Judge: TypeAlias = Callable[[Recording], bool]
_Test: TypeAlias = Callable[[Interaction, OfflineRun], bool]
Path: TypeAlias = tuple[str | int, ...]

# Each try runs the request once; behind so many the smallest so far is the answer.
MOST_TRIES: Final = 20_000
_NUMBER: Final = re.compile(r"\d+")
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS: Final = re.compile(r"\S+\s*|\s+")
_EVENTS: Final = re.compile(rb"(?s).*?\n\n|.+")
_ROWS: Final = re.compile(rb"[^\n]*\n|[^\n]+")


class Minimised(msgspec.Struct, frozen=True):
    """A smaller recording, and how many runs it took. `minimal` is false where these were too few. `taken` is the
    number of the request in the recording, from 1. `answered`: the failure was recorded, as the backend's answer for
    instance, and comes to any request."""

    recording: Recording
    tries: int
    minimal: bool
    taken: int
    answered: bool


def shows(until: str, run: OfflineRun) -> Shows:
    """Returns the test that a smaller recording must pass: `rule:CODE`, `code:CODE`, `status:N`, or `same` as this run
    of the whole one (rules, actions, status and code). Whatever the test, the smaller one ends with the same failure,
    at the same place and in the same words but for their numbers, and breaks no further rule: a search that is free to
    leave out anything otherwise ends at another fault. Raises InvalidRequest for any other text."""
    name, _, value = until.partition(":")
    tests: dict[str, Shows] = {
        "rule": lambda one: value in _rules(one),
        "code": lambda one: one.code == value,
        "status": lambda one: str(one.status) == value,
        "same": lambda one: _sameness(one) == _sameness(run),
    }
    if name not in tests or bool(value) == (name == "same"):
        raise InvalidRequest(f"Unknown test {until!r}. Known tests: rule:CODE, code:CODE, status:N, same.")
    test = tests[name]
    return lambda one: test(one) and _shows_nothing_else(one, run)


def _shows_nothing_else(one: OfflineRun, run: OfflineRun) -> bool:
    return _failure(one) == _failure(run) and _rules(one) <= _rules(run)


def _failure(run: OfflineRun) -> tuple[object, ...]:
    """Returns the outcome of a run with the place and the first sentence of its failure, without their numbers: that of
    a message is another one where messages before it are left out, and the next sentence may count other faults."""
    if run.error is None:
        return run.status, run.code
    param, sentence = run.error.param or "", run.error.message.partition(". ")[0]
    return run.status, run.code, _NUMBER.sub("#", param), _NUMBER.sub("#", sentence)


def _rules(run: OfflineRun) -> set[str]:
    return {one.rule for one in run.violations} | {one.rule for one in run.notices}


def _sameness(run: OfflineRun) -> tuple[object, ...]:
    outcome = outcome_of(run)
    notices = {(rule, action) for rule, _, action in outcome.notices}
    return {rule for rule, _ in outcome.violations}, notices, outcome.status, outcome.code


def minimise(
    recording: Recording, until: str, settings: Settings | None = None, judge: Judge | None = None
) -> Minimised:
    """Returns a smallest recording that shows the same; a `judge` decides in place of the test `until`, which then only
    names it. Raises InvalidRequest where the whole one does not show it."""
    # One request is enough: another one cannot change what it comes to.
    numbered = enumerate(recording.interactions(), 1)
    taken, interaction = next((pair for pair in numbered if _shows_it(pair[1], until, settings, judge)), (0, None))
    if interaction is None:
        what = "can be run" if until == "same" else f"shows {until}"
        raise InvalidRequest(f"No request of the recording {what}.")
    whole = run_offline(interaction, settings)
    search = _Search(_test(until, whole, judge), settings)
    smallest = search.smallest(interaction)
    header = msgspec.structs.replace(recording.header, note=f"minimised until {until}")
    made = remade(smallest, run_offline(smallest, settings)).numbered(1)
    smaller, minimal = Recording(header).with_interactions([made]), search.tries < MOST_TRIES
    return Minimised(smaller, search.tries, minimal, taken, judge is None and _is_recorded(until, whole))


def _is_recorded(until: str, run: OfflineRun) -> bool:
    """Returns whether a test is about a failure that no run makes: it was recorded, in whatever request it stands."""
    recorded = run.external or isinstance(run.error, BackendError)
    return recorded and not until.startswith("rule:")


def _shows_it(interaction: Interaction, until: str, settings: Settings | None, judge: Judge | None) -> bool:
    try:
        run = run_offline(interaction, settings)
    except RecordingError:
        return False
    return _test(until, run, judge)(interaction, run)


def _test(until: str, whole: OfflineRun, judge: Judge | None) -> _Test:
    if judge is not None:
        return lambda one, run: judge(Recording().with_interactions([remade(one, run).numbered(1)]))
    test = shows(until, whole)
    return lambda one, run: test(run)


class _Search:
    """Counts the tries of one search."""

    def __init__(self, test: _Test, settings: Settings | None) -> None:
        self._test = test
        self._settings = settings
        self._known: dict[tuple[bytes, tuple[bytes, ...]], bool] = {}
        self.tries = 0

    def smallest(self, interaction: Interaction) -> Interaction:
        """Leaves out until nothing more can be left out."""
        before = None
        while interaction != before:
            before = interaction
            interaction = self._with_less_body(interaction)
            interaction = self._with_less_response(interaction)
        return interaction

    def _is_enough(self, interaction: Interaction) -> bool:
        key = (interaction.body or b"", tuple(read.data.content for read in interaction.reads))
        if key not in self._known:
            if self.tries >= MOST_TRIES:
                return False
            self.tries += 1
            try:
                self._known[key] = self._test(interaction, run_offline(interaction, self._settings))
            except GatewayError:
                self._known[key] = False
        return self._known[key]

    def _with_less_body(self, interaction: Interaction) -> Interaction:
        try:
            document: Json = read_document(interaction.body or b"").fields
        except InvalidRequest:
            return self._with_less_text(interaction)

        def enough(smaller: Json) -> bool:
            return self._is_enough(with_body(interaction, smaller))

        if not enough(document):
            # The bytes matter, not what they mean.
            return interaction
        document = self._without_groups(interaction, document)
        for path in [*_containers(document, ())]:
            document = _less(document, path, enough)
        for path in [*_texts(document, ())]:
            for pieces in (_LINES, _WORDS):
                document = _less_text(document, path, pieces, enough)
        return with_body(interaction, document)

    def _with_less_text(self, interaction: Interaction) -> Interaction:
        """Leaves bytes out of a body that is no JSON object, or nested too deep."""
        body = interaction.body or b""
        pieces: list[bytes] = [body[at : at + 1] for at in range(len(body))]

        def enough(kept: Sequence[bytes]) -> bool:
            return self._is_enough(with_bytes(interaction, b"".join(kept)))

        if not enough(pieces):
            return interaction
        kept: tuple[bytes, ...] = ddmin(pieces, enough)
        return with_bytes(interaction, b"".join(kept))

    def _without_groups(self, interaction: Interaction, document: Json) -> Json:
        """Leaves out whole groups: a call without its result would be another fault."""
        field = load_dialect(interaction.request.dialect).paths.param("messages")
        run = run_offline(with_body(interaction, document), self._settings)
        messages = document.get(field) if isinstance(document, dict) else None
        if run.conversation is None or not isinstance(messages, list) or not isinstance(document, dict):
            return document
        turns = run.conversation.turns
        units = [frozenset(turn.index for turn in turns[group.start : group.stop]) for group in groups(turns)]
        known = frozenset().union(*units)
        units += [frozenset({at}) for at in range(len(messages)) if at not in known]

        def kept(chosen: Sequence[frozenset[int | None]]) -> Json:
            wanted = frozenset().union(*chosen)
            return {**document, field: [one for at, one in enumerate(messages) if at in wanted]}

        def enough(chosen: Sequence[frozenset[int | None]]) -> bool:
            return self._is_enough(with_body(interaction, kept(chosen)))

        return kept(ddmin(units, enough)) if enough(units) else document

    def _with_less_response(self, interaction: Interaction) -> Interaction:
        body = b"".join(read.data.content for read in interaction.reads)
        if not body:
            return interaction
        for pattern in (_EVENTS, _ROWS):
            units: list[bytes] = pattern.findall(b"".join(read.data.content for read in interaction.reads))

            def enough(kept: Sequence[bytes], before: Interaction = interaction) -> bool:
                return self._is_enough(with_reads(before, kept))

            if enough(units):
                interaction = with_reads(interaction, ddmin(units, enough))
        return interaction


def with_body(interaction: Interaction, document: Json) -> Interaction:
    """Returns the request with another body."""
    return with_bytes(interaction, msgspec.json.encode(document))


def with_bytes(interaction: Interaction, body: bytes) -> Interaction:
    """Returns the request with the bytes of another body."""
    return msgspec.structs.replace(
        interaction, request=msgspec.structs.replace(interaction.request, body=data_of(body))
    )


def with_reads(interaction: Interaction, reads: Sequence[bytes]) -> Interaction:
    """Returns the request with another response, read in these pieces, behind its head."""
    head = [step for step in interaction.steps if isinstance(step, HeadLine) and step.side == "backend"]
    rest = [step for step in interaction.steps if not isinstance(step, HeadLine | BytesLine)]
    t = head[0].t if head else 0.0
    lines: list[Step] = [BytesLine(interaction.x, "backend", t, data_of(data)) for data in reads]
    return msgspec.structs.replace(interaction, steps=(*head, *lines, *rest))


def _containers(value: Json, path: Path) -> Iterator[Path]:
    """Yields the path of every object and list, the outer ones first."""
    level: list[tuple[Path, Json]] = [(path, value)]
    while level:
        below: list[tuple[Path, Json]] = []
        for place, one in level:
            if isinstance(one, dict | list) and one:
                yield place
                entries: list[tuple[str | int, Json]] = [*(one.items() if isinstance(one, dict) else enumerate(one))]
                below += [((*place, key), inner) for key, inner in entries]
        level = below


def _texts(value: Json, path: Path) -> Iterator[Path]:
    for place in _containers(value, path):
        holder = _at(value, place)
        entries: list[tuple[str | int, Json]] = (
            [*holder.items()] if isinstance(holder, dict) else [*enumerate(holder)] if isinstance(holder, list) else []
        )
        yield from ((*place, key) for key, inner in entries if isinstance(inner, str) and len(inner) > 1)


def _less(document: Json, path: Path, enough: Callable[[Json], bool]) -> Json:
    """Returns the document with fewer entries in the object or list at a path. One that is gone by now stays so."""
    holder = _at(document, path)
    if not isinstance(holder, dict | list) or not holder:
        return document
    keys: list[str | int] = [*(holder if isinstance(holder, dict) else range(len(holder)))]
    return _kept(document, path, ddmin(keys, lambda kept: enough(_kept(document, path, kept))))


def _less_text(document: Json, path: Path, pieces: re.Pattern[str], enough: Callable[[Json], bool]) -> Json:
    text = _at(document, path)
    if not isinstance(text, str):
        return document
    kept = ddmin(pieces.findall(text), lambda some: enough(_put(document, path, "".join(some))))
    return _put(document, path, "".join(kept))


def _kept(document: Json, path: Path, keys: Sequence[str | int]) -> Json:
    holder = _at(document, path)
    if isinstance(holder, dict):
        return _put(document, path, {key: holder[key] for key in holder if key in keys})
    assert isinstance(holder, list)  # a container is one of the two
    return _put(document, path, [one for at, one in enumerate(holder) if at in keys])


def _at(value: Json, path: Path) -> Json:
    """Returns the value at a path, None where there is none."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def _put(value: Json, path: Path, new: Json) -> Json:
    """Returns the value with another one at a path."""
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict) and isinstance(key, str):
        return {**value, key: _put(value.get(key), tuple(rest), new)}
    assert isinstance(value, list) and isinstance(key, int)  # the path leads to something
    return [_put(one, tuple(rest), new) if at == key else one for at, one in enumerate(value)]
