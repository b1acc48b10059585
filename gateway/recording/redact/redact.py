"""Redacts whole recordings, and checks that what is left still shows the same.

Only what came from outside is redacted: the client's request and the backend's response. What the gateway made of them
is then made again, so that no text of theirs can be left in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.recording.ddmin import ddmin
from gateway.recording.lines import (
    BytesLine,
    Data,
    Failure,
    HeadLine,
    NoticeLine,
    Redaction,
    RedactionLevel,
    data_of,
)
from gateway.recording.offline_run import OfflineRun, run_offline
from gateway.recording.outcome import differences, outcome_of
from gateway.recording.recording import Interaction, Recording, Step
from gateway.recording.redact.json_strings import JsonStrings, NoJson
from gateway.recording.redact.wire import Redactor
from gateway.recording.redact.words import Words, words_of
from gateway.settings import Settings

# Of each level, how much it hides.
_HIDES: Final[Mapping[RedactionLevel, int]] = {"none": 0, "shape": 1, "full": 2}
# So many texts are looked through for those that must stay; each try runs the request again.
_MOST_TEXTS: Final = 400


class Redacted(msgspec.Struct, frozen=True):
    """A redacted recording. `removed` counts its secrets. `differences` say what it no longer shows, and `needed` are
    the smallest texts that would have to be kept for it."""

    recording: Recording
    removed: int = 0
    differences: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()


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
    removed = 0
    redacted: list[Interaction] = []
    found: list[str] = []
    needed: list[str] = []
    # One set of words for the file: the same word in two requests stays the same.
    names = frozenset().union(*(_names(one, settings) for one in recording.interactions()))
    words = Words(level, seed, names)
    for interaction in recording.interactions():
        redactor = Redactor(words, secrets, kept)
        one, lost = _redacted(interaction, redactor, settings)
        removed += redactor.removed
        if lost and search and level != "none":
            needed += _needed(interaction, redactor, (level, seed, names), secrets, settings)
        found += lost
        redacted.append(one)
    if hidden and not removed:
        return Redacted(recording)
    reached = before.level if level == "none" else level
    header = msgspec.structs.replace(recording.header, redaction=Redaction(reached, kept, not found))
    return Redacted(Recording(header).with_interactions(redacted), removed, tuple(found), tuple(dict.fromkeys(needed)))


def _names(interaction: Interaction, settings: Settings | None) -> frozenset[str]:
    """Returns the words that stay: names of fields and of tools, stop sequences, the labels of transcripts."""
    names: set[str] = set()
    with suppress(NoJson, RecursionError):
        names |= JsonStrings((interaction.body or b"").decode("utf-8", "replace")).keys
    if (run := _run(interaction, settings)) is not None and run.conversation is not None:
        names |= {tool.name for tool in run.conversation.tools} | set(run.conversation.sampling.stop)
    if interaction.route is not None:
        names |= _texts(interaction.route.policy)
        names |= {interaction.route.model, interaction.route.name}
    return frozenset(word for name in names for word in words_of(name))


def _texts(value: "Json | JsonObject") -> set[str]:
    """Returns all names and texts of a policy."""
    if isinstance(value, Mapping):
        return set(value).union(*(_texts(below) for below in value.values()))
    if isinstance(value, list):
        return set[str]().union(*map(_texts, value))
    return {value} if isinstance(value, str) else set()


def _run(interaction: Interaction, settings: Settings | None) -> OfflineRun | None:
    """Runs a request, or returns None for one that cannot be run."""
    try:
        return run_offline(interaction, settings)
    except GatewayError:
        return None


def _redacted(
    interaction: Interaction, redactor: Redactor, settings: Settings | None
) -> tuple[Interaction, tuple[str, ...]]:
    """Returns the redacted request, and what it no longer shows."""
    inputs = _inputs(interaction, redactor)
    before = _run(interaction, settings)
    after = None if before is None else _run(inputs, settings)
    if before is None or after is None:
        return _in_place(inputs, redactor), () if before is None else ("The redacted request cannot be run.",)
    secrets_only = Redactor(Words("none", b""), redactor.configured)
    if inputs == interaction:
        return _in_place(inputs, secrets_only), ()
    lost = differences(outcome_of(before), outcome_of(after))
    # They quote the outcome from before, whose code may be the backend's own word.
    return _in_place(_derived(inputs, after), secrets_only), tuple(map(secrets_only.secrets, lost))


def _inputs(interaction: Interaction, redactor: Redactor) -> Interaction:
    """Returns the request with what came from outside redacted."""
    request = interaction.request
    path, mark, query = request.path.partition("?")
    request = msgspec.structs.replace(
        request,
        path=redactor.secrets(path) + mark + redactor.secrets(query),
        headers={name: redactor.secrets(value) for name, value in request.headers.items()},
        body=_body(request.body, redactor),
    )
    route = interaction.route
    if route is not None:
        route = msgspec.structs.replace(route, options=_clean(route.options, redactor))
    return msgspec.structs.replace(interaction, request=request, route=route, steps=_steps(interaction, redactor))


def _body(body: Data | None, redactor: Redactor) -> Data | None:
    return None if body is None else data_of(redactor.data(body.content))


def _clean(value: JsonObject, redactor: Redactor) -> JsonObject:
    cleaned: JsonObject = msgspec.json.decode(redactor.secrets(msgspec.json.encode(value).decode()))
    return cleaned


def _steps(interaction: Interaction, redactor: Redactor) -> tuple[Step, ...]:
    """Redacts the reads of the backend, as one text, and the heads."""
    reads = [read.data.content for read in interaction.reads]
    clean = redactor.data(b"".join(reads)) if reads else b""
    steps: list[Step] = []
    at = 0
    for step in interaction.steps:
        if isinstance(step, BytesLine) and step.side == "backend":
            size = len(step.data.content)
            steps.append(msgspec.structs.replace(step, data=data_of(clean[at : at + size])))
            at += size
        elif isinstance(step, HeadLine):
            headers = {name: redactor.secrets(value) for name, value in step.headers.items()}
            steps.append(msgspec.structs.replace(step, headers=headers))
        else:
            steps.append(step)
    return tuple(steps)


def _in_place(interaction: Interaction, redactor: Redactor) -> Interaction:
    """Redacts what the gateway made where it stands."""
    sent = interaction.sent
    if sent is not None:
        headers = {name: redactor.secrets(value) for name, value in sent.headers.items()}
        sent = msgspec.structs.replace(
            sent, path=redactor.secrets(sent.path), headers=headers, body=_body(sent.body, redactor)
        )
    notices = tuple(msgspec.structs.replace(line, notice=_notice(line, redactor)) for line in interaction.notice_lines)
    end = interaction.end
    if end is not None and end.failure is not None:
        end = msgspec.structs.replace(end, failure=_failure(end.failure, redactor))
    written = redactor.data(b"".join(write.data.content for write in interaction.writes))
    steps: list[Step] = []
    at = 0
    for step in interaction.steps:
        if isinstance(step, BytesLine) and step.side == "client":
            size = len(step.data.content)
            step = msgspec.structs.replace(step, data=data_of(written[at : at + size]))
            at += size
        steps.append(step)
    return msgspec.structs.replace(interaction, sent=sent, notice_lines=notices, end=end, steps=tuple(steps))


def _notice(line: NoticeLine, redactor: Redactor) -> Notice:
    return msgspec.structs.replace(line.notice, detail=redactor.secrets(line.notice.detail))


def _failure(failure: Failure, redactor: Redactor) -> Failure:
    return msgspec.structs.replace(
        failure,
        message=redactor.secrets(failure.message),
        headers={name: redactor.secrets(value) for name, value in failure.headers.items()},
        extra=_clean(failure.extra, redactor),
    )


def _derived(interaction: Interaction, run: OfflineRun) -> Interaction:
    """Returns the request with everything that the gateway made of it made again."""
    sent = interaction.sent
    if sent is not None and run.sent is not None:
        body = None if sent.body is None else data_of(run.sent.body)
        sent = msgspec.structs.replace(sent, path=run.sent.path, headers=dict(run.sent.headers), body=body)
    times = [line.t for line in interaction.notice_lines]
    last = times[-1] if times else 0.0
    notices = tuple(
        NoticeLine(interaction.x, times[at] if at < len(times) else last, notice)
        for at, notice in enumerate(run.notices)
    )
    end = interaction.end
    if end is not None and end.failure is not None and run.error is not None and not run.external:
        error = run.error
        own = None if error.own_words is None else tuple(error.own_words)
        end = msgspec.structs.replace(
            end,
            failure=msgspec.structs.replace(
                end.failure, message=error.message, param=error.param, extra=dict(error.extra), own_words=own
            ),
        )
    return msgspec.structs.replace(
        interaction, sent=sent, notice_lines=notices, end=end, steps=_with_writes(interaction, run)
    )


def _with_writes(interaction: Interaction, run: OfflineRun) -> tuple[Step, ...]:
    """Returns the steps with the writes of a run; all in the place of the first where their numbers differ."""
    count = len(interaction.writes)
    writes = [*run.writes] if len(run.writes) == count else [run.client, *[b""] * (count - 1)][:count]
    left = iter(writes)
    return tuple(
        msgspec.structs.replace(step, data=data_of(next(left)))
        if isinstance(step, BytesLine) and step.side == "client"
        else step
        for step in interaction.steps
    )


def _needed(
    interaction: Interaction,
    redactor: Redactor,
    made_of: tuple[RedactionLevel, bytes, frozenset[str]],
    secrets: Sequence[str],
    settings: Settings | None,
) -> tuple[str, ...]:
    """Returns the smallest texts that would have to be kept; none where even all of them are not enough."""
    before = _run(interaction, settings)
    assert before is not None  # what is lost is the difference to it
    expected = outcome_of(before)

    def same(texts: Sequence[str]) -> bool:
        again = Redactor(Words(*made_of), secrets, texts)
        after = _run(_inputs(interaction, again), settings)
        return after is not None and not differences(expected, outcome_of(after))

    candidates = [*redactor.texts][:_MOST_TEXTS]
    return ddmin(candidates, same) if same(candidates) else ()
