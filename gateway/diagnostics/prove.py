"""Proves what requests lose on their way: recordings and saved requests in, the losses of each out, beside those that a
baseline has already.

A recording is run again, with the recorded responses of its backends, so that losses of answers are found, too. A saved
request, and a recorded one that is asked of another model, is planned and not sent. Nothing needs a network.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gateway.adapter import Adapter
from gateway.core.errors import InvalidRequest
from gateway.core.notices import NO_CHANGE, Notice
from gateway.core.requirements import Requirement, broken
from gateway.diagnostics.explain_recorded import recorded_document
from gateway.diagnostics.explain_request import explain_document
from gateway.diagnostics.saved_dialect import saved_dialect
from gateway.dialect import Dialect
from gateway.dialects.document import Document, read_saved
from gateway.recording.offline_run import run_offline
from gateway.recording.recording import Interaction, is_recording, read_recording
from gateway.registry import load_dialect
from gateway.settings import Settings

_LINES: Final = ".jsonl"


class Loss(msgspec.Struct, frozen=True, omit_defaults=True):
    """A word of `gateway.core.requirements` that a request breaks, by the notice of this rule."""

    requirement: Requirement
    rule: str
    detail: str = ""
    index: int | None = None

    @property
    def kind(self) -> tuple[str, str]:
        """Returns what two losses have in common that count as one."""
        return self.requirement, self.rule


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one request loses. `request` is its id in a recording, or its number in a file, from 1; `changes` are the
    rules of all other changes, and `failure` says why the request is refused or its answer fails; empty: neither."""

    file: str
    request: str
    losses: tuple[Loss, ...] = ()
    changes: tuple[str, ...] = ()
    failure: str = ""


class Proofs(msgspec.Struct, frozen=True):
    """What all requests lose: a report, or the baseline that another one is compared with."""

    requests: tuple[Proof, ...]


class Compared(msgspec.Struct, frozen=True):
    """What one request loses or fails by and the baseline lacks (`losses`, `failure`), and the losses of the baseline
    that are no more (`gone`)."""

    file: str
    request: str
    losses: tuple[Loss, ...] = ()
    failure: str = ""
    gone: tuple[Loss, ...] = ()


class Way(msgspec.Struct, frozen=True):
    """How requests are sent: the settings with their adapters; the model (None: that of each request, and a recorded
    request as it was sent); and the dialect of saved requests (None: that of their shape)."""

    settings: Settings
    adapters: Mapping[str, Adapter]
    model: str | None = None
    dialect: str | None = None


def prove(file: str, data: bytes, way: Way) -> Sequence[Proof]:
    """Returns what each request of a file loses: a recording, a request, an array of messages, or one of them a line
    (`.jsonl`). Raises InvalidRequest for a file that is none of these or has no request, for a request whose body the
    recording lacks, for an unknown model and settings without any, and SettingsError for an adapter that must be
    named."""
    proofs = [*_proofs(file, data, way)]
    if not proofs:
        # An export that has failed proves nothing.
        raise InvalidRequest(f"{file}: has no request.")
    return proofs


def _proofs(file: str, data: bytes, way: Way) -> Iterator[Proof]:
    place = file
    try:
        if is_recording(data):
            for one in read_recording(data).interactions():
                yield _recorded(file, one, way)
            return
        lines = data.split(b"\n") if file.endswith(_LINES) else [data]
        for at, line in enumerate(lines, 1):
            place = f"{file}, line {at}" if len(lines) > 1 else file
            if line.strip():
                yield _saved(file, str(at), line, way)
    except InvalidRequest as error:
        raise InvalidRequest(f"{place}: {error.message}", param=error.param) from error


def compare(proofs: Iterable[Proof], baseline: Proofs, allowed: Collection[str] = ()) -> Sequence[Compared]:
    """Returns each request with something that the baseline does not have of it, or has too much. Losses by the
    `allowed` rules are none."""
    known = {(one.file, one.request): one for one in baseline.requests}
    found = [_compared(one, known.get((one.file, one.request)), allowed) for one in proofs]
    return [one for one in found if one.losses or one.failure or one.gone]


def _compared(proof: Proof, before: Proof | None, allowed: Collection[str]) -> Compared:
    had = () if before is None else before.losses
    old, now = {loss.kind for loss in had}, {loss.kind for loss in proof.losses}
    return Compared(
        proof.file,
        proof.request,
        tuple([loss for loss in proof.losses if loss.kind not in old and loss.rule not in allowed]),
        "" if before is not None and before.failure else proof.failure,
        tuple([loss for loss in had if loss.kind not in now]),
    )


def _recorded(file: str, interaction: Interaction, way: Way) -> Proof:
    name = interaction.request.id
    if way.model is not None:
        dialect = load_dialect(interaction.request.dialect)
        return _planned(file, name, recorded_document(interaction), dialect, way)
    run = run_offline(interaction, way.settings)
    # What the recording says of the outside is no failure of this version.
    failure = "" if run.error is None or run.external else run.error.message
    # Only a running gateway makes a compaction; of its request it judges what was left out while it was read.
    notices = run.conversation.notices if run.compacts and run.conversation is not None else run.notices
    return _proof(file, name, notices, failure)


def _saved(file: str, name: str, data: bytes, way: Way) -> Proof:
    dialect = saved_dialect(data, way.dialect)
    return _planned(file, name, read_saved(data, dialect.paths.param("messages")), dialect, way)


def _planned(file: str, name: str, document: Document, dialect: Dialect, way: Way) -> Proof:
    if not way.settings.models:
        # Without a backend nothing is lost, and nothing would be proved.
        raise InvalidRequest("no settings say which backend gets the request: name them with --settings.")
    if way.model is not None:
        document.fields["model"] = way.model
    explanation = explain_document(document, way.settings, way.adapters, dialect)
    return _proof(file, name, explanation.diagnostics, explanation.refusal or "")


def _proof(file: str, name: str, notices: Iterable[Notice], failure: str) -> Proof:
    losses: dict[tuple[str, str], Loss] = {}
    changes: set[str] = set()
    for notice in notices:
        found = [Loss(word, notice.rule, notice.detail, notice.index) for word in broken(notice)]
        for loss in found:
            losses.setdefault(loss.kind, loss)
        if not found and notice.action not in NO_CHANGE:
            changes.add(notice.rule)
    return Proof(file, name, tuple(losses.values()), tuple(sorted(changes)), failure)


def as_text(compared: Iterable[Compared], proofs: Sequence[Proof]) -> Iterator[str]:
    """Yields the lines of a report: what is new, what is gone, and how many there are of all."""
    new = failed = gone = 0
    for one in compared:
        for loss in one.losses:
            place = "" if loss.index is None else f" (message {loss.index})"
            yield f"{one.file} {one.request}: loses {loss.requirement}: {loss.rule}{place}: {loss.detail}"
        for loss in one.gone:
            yield f"{one.file} {one.request}: no longer loses {loss.requirement}: {loss.rule}"
        if one.failure:
            yield f"{one.file} {one.request}: fails: {one.failure}"
        new, failed, gone = new + len(one.losses), failed + bool(one.failure), gone + len(one.gone)
    losses = sum(len(one.losses) for one in proofs)
    yield f"{len(proofs)} requests, {losses} losses: {new} new, {gone} gone; {failed} new failures"
