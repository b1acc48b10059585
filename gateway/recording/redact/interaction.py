"""Redacts one recorded request, and makes again what the gateway made of it.

Only what came from outside is redacted: the client's request, the backend's response, and failures of connections. What
the gateway made of them is then made again, so that no text of theirs can be left in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import assert_never
from urllib.parse import unquote

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.errors import GatewayError
from gateway.core.notices import Notice
from gateway.core.session import Session
from gateway.recording.beginning import closed_json
from gateway.recording.lines import (
    Beginning,
    BytesLine,
    CloseLine,
    Data,
    EndLine,
    Failure,
    GapLine,
    HeadLine,
    NoticeLine,
    Side,
    data_of,
)
from gateway.recording.offline_run import OfflineRun, run_offline
from gateway.recording.recording import Interaction, Step
from gateway.recording.redact.wire import Redactor, cut_like
from gateway.recording.route import quoted_path
from gateway.settings import Settings


class RedactedInteraction(msgspec.Struct, frozen=True):
    """A redacted request, and what the gateway makes of it; None: it cannot be run. `removed` counts the texts that
    had secrets, and `texts` are those that were replaced."""

    interaction: Interaction
    run: OfflineRun | None
    removed: int
    texts: Sequence[str]


def redact_interaction(interaction: Interaction, redactor: Redactor, settings: Settings | None) -> RedactedInteraction:
    """Redacts a request. One of which nothing had to be redacted stays as it was recorded."""
    inputs = redacted_inputs(interaction, redactor)
    run = run_if_possible(inputs, settings)
    if run is None or run.compacts or _is_foreign(interaction) or _has_state(interaction):
        clean = _in_place(inputs, redactor)
    else:
        # A secret may be put together of parts that are none.
        made = inputs if inputs == interaction else _derived(inputs, run, redactor)
        clean = _in_place(made, redactor.secrets_only())
    return RedactedInteraction(clean, run, redactor.removed, redactor.texts)


def _is_foreign(interaction: Interaction) -> bool:
    """Returns whether what the client got is not known to be of this gateway: it got no route, and was not refused."""
    return interaction.route is None and (interaction.end is None or interaction.end.failure is None)


def _has_state(interaction: Interaction) -> bool:
    """Returns whether a run makes something else than what was sent, since it has no state of the gateway."""
    return interaction.route is not None and interaction.route.state


def run_if_possible(interaction: Interaction, settings: Settings | None) -> OfflineRun | None:
    """Runs a request, or returns None for one that cannot be run."""
    try:
        return run_offline(interaction, settings)
    except GatewayError:
        return None


def redacted_inputs(interaction: Interaction, redactor: Redactor) -> Interaction:
    """Returns the request with what came from outside redacted."""
    request = interaction.request
    path, mark, query = request.path.partition("?")
    request = msgspec.structs.replace(
        request,
        path=_path(path, redactor) + mark + redactor.secrets(query),
        headers=_fields(request.headers, redactor),
        body=_body(request.body, redactor),
        session=_session(request.session, redactor),
        beginning=_beginning(request.beginning, redactor),
    )
    route = interaction.route
    if route is not None:
        # A client that confuses its fields sends a key as its model, and a model pattern may take any name.
        model = redactor.secrets(route.model)
        route = msgspec.structs.replace(route, model=model, options=_clean(route.options, redactor))
    steps = _with_bytes(interaction.steps, "backend", _redacted_reads(interaction, redactor))
    return msgspec.structs.replace(
        interaction,
        request=request,
        route=route,
        steps=tuple(_step(step, redactor) for step in steps),
        end=_end(interaction.end, redactor),
        tries=tuple(msgspec.structs.replace(one, code=redactor.secrets(one.code)) for one in interaction.tries),
    )


def _session(session: Session | None, redactor: Redactor) -> Session | None:
    """Redacts the ids of a session as texts of the body: the same id becomes the same one wherever it stands."""
    if session is None:
        return None
    ids = (session.id, session.agent, session.parent, session.turn)
    return Session(session.source, *map(redactor.id, ids))


def _redacted_reads(interaction: Interaction, redactor: Redactor) -> Iterator[bytes]:
    """Yields the reads from the backend, redacted: each response is a document of its own."""
    headless = len(interaction.reads) - sum(len(one.reads) for one in interaction.rounds)
    groups = [("", interaction.reads[:headless])]
    groups += [(_media(one.head.headers), one.reads) for one in interaction.rounds]
    for media, lines in groups:
        reads = [line.data.content for line in lines]
        yield from cut_like(redactor.data(b"".join(reads), media), reads)


def _path(path: str, redactor: Redactor) -> str:
    """Redacts the path of a client's request, in which a secret may be percent-encoded."""
    meant = unquote(path)
    clean = redactor.secrets(meant)
    return path if clean == meant else quoted_path(clean)


def _body(body: Data | None, redactor: Redactor, media: str = "") -> Data | None:
    return None if body is None else data_of(redactor.data(body.content, media))


def _beginning(beginning: Beginning | None, redactor: Redactor) -> Beginning | None:
    """Redacts the beginning of a body: of JSON as one that is whole, whose names and roles stay."""
    if beginning is None:
        return None
    content = beginning.data.content
    return Beginning(data_of(redactor.data(closed_json(content) or content)), beginning.bytes)


def _media(headers: Mapping[str, str]) -> str:
    """Returns the media type of a body."""
    return headers.get("content-type", "").lower()


def _clean(value: JsonObject, redactor: Redactor) -> JsonObject:
    cleaned: JsonObject = msgspec.json.decode(redactor.secrets(msgspec.json.encode(value).decode()))
    return cleaned


def _step(step: Step, redactor: Redactor) -> Step:
    """Redacts the headers of a response, or its trailers."""
    match step:
        case HeadLine():
            return msgspec.structs.replace(step, headers=_fields(step.headers, redactor))
        case CloseLine():
            return msgspec.structs.replace(step, trailers=_fields(step.trailers, redactor))
        case BytesLine() | GapLine():
            return step
    assert_never(step)


def _fields(fields: Mapping[str, str], redactor: Redactor) -> dict[str, str]:
    """Redacts headers or trailers."""
    return {name: redactor.field(name, value) for name, value in fields.items()}


def _with_bytes(steps: Iterable[Step], side: Side, pieces: Iterable[bytes]) -> tuple[Step, ...]:
    """Returns the steps with these bytes in the reads from the backend, or in the writes to the client."""
    left = iter(pieces)
    return tuple(
        msgspec.structs.replace(step, data=data_of(next(left)))
        if isinstance(step, BytesLine) and step.side == side
        else step
        for step in steps
    )


def _in_place(interaction: Interaction, redactor: Redactor) -> Interaction:
    """Redacts what the gateway made where it stands."""
    sent = interaction.sent
    if sent is not None:
        sent = msgspec.structs.replace(
            sent,
            path=redactor.secrets(sent.path),
            headers=_fields(sent.headers, redactor),
            body=_body(sent.body, redactor, _media(sent.headers)),
        )
    notices = tuple(msgspec.structs.replace(line, notice=_notice(line, redactor)) for line in interaction.notice_lines)
    return msgspec.structs.replace(
        interaction,
        sent=sent,
        notice_lines=notices,
        end=_end(interaction.end, redactor),
        steps=_redacted_writes(interaction, redactor),
    )


def _redacted_writes(interaction: Interaction, redactor: Redactor) -> tuple[Step, ...]:
    writes = [write.data.content for write in interaction.writes]
    head = interaction.client_head
    clean = redactor.data(b"".join(writes), _media({} if head is None else head.headers))
    return _with_bytes(interaction.steps, "client", cut_like(clean, writes))


def _end(end: EndLine | None, redactor: Redactor) -> EndLine | None:
    """Redacts the outcome. Its code may be the backend's own word."""
    if end is None:
        return None
    failure = None if end.failure is None else _failure(end.failure, redactor)
    return msgspec.structs.replace(end, code=redactor.secrets(end.code), failure=failure)


def _notice(line: NoticeLine, redactor: Redactor) -> Notice:
    return msgspec.structs.replace(line.notice, detail=redactor.secrets(line.notice.detail))


def _failure(failure: Failure, redactor: Redactor) -> Failure:
    return msgspec.structs.replace(
        failure,
        message=redactor.secrets(failure.message),
        code=failure.code and redactor.secrets(failure.code),
        param=failure.param and redactor.secrets(failure.param),
        headers=_fields(failure.headers, redactor),
        extra=_clean(failure.extra, redactor),
    )


def _derived(interaction: Interaction, run: OfflineRun, redactor: Redactor) -> Interaction:
    """Returns the request with everything that the gateway made of it made again. What followed a gap in the answer
    cannot be, and is redacted as it stands."""
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
    if interaction.gaps:
        notices = (*notices, *interaction.notice_lines[len(notices) :])
        steps = _redacted_writes(interaction, redactor)
    else:
        steps = _with_writes(interaction, run)
    return msgspec.structs.replace(interaction, sent=sent, notice_lines=notices, end=end, steps=steps)


def _with_writes(interaction: Interaction, run: OfflineRun) -> tuple[Step, ...]:
    """Returns the steps with the writes of a run; all in the place of the first where their numbers differ."""
    count = len(interaction.writes)
    writes = [*run.writes] if len(run.writes) == count else [run.client, *[b""] * (count - 1)][:count]
    return _with_bytes(interaction.steps, "client", writes)
