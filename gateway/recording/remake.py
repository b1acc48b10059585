"""Puts what a run made into a recorded request, in place of what was recorded of it."""

from itertools import chain

import msgspec

from gateway.core.errors import BackendError, GatewayError
from gateway.recording.lines import BytesLine, EndLine, Failure, HeadLine, NoticeLine, SentLine, data_of
from gateway.recording.offline_run import OfflineRun
from gateway.recording.recording import Interaction, Step


def remade(interaction: Interaction, run: OfflineRun) -> Interaction:
    """Returns the request with what was sent, the notices, the client's response and the end as this run made them.
    The client's writes stand behind what came from the backend."""
    x, sent = interaction.x, run.sent
    t = max((step.t for step in interaction.steps), default=0.0)
    kept: list[Step] = [step for step in interaction.steps if not _is_written(step)]
    head: list[Step] = [HeadLine(x, "client", t, run.status)] if run.writes else []
    writes = (BytesLine(x, "client", t, data_of(data)) for data in run.writes)
    return msgspec.structs.replace(
        interaction,
        sent=None
        if sent is None
        else SentLine(
            x, sent.method, sent.path, 0, sent.headers, data_of(sent.body), sent.http2, request_id=run.request_id
        ),
        notice_lines=tuple(NoticeLine(x, 0, notice) for notice in run.notices),
        steps=(*kept, *chain(head, writes)),
        end=EndLine(
            x,
            run.status,
            run.code,
            cut=None if interaction.end is None else interaction.end.cut,
            failure=None if run.error is None else failure_of(run.error),
        ),
    )


def failure_of(error: GatewayError) -> Failure:
    """Returns an error as a recording holds it."""
    own = error.own_words
    return Failure(
        error.message,
        error.status,
        error.kind,
        error.code,
        error.param,
        dict(error.headers),
        dict(error.extra),
        None if own is None else (own.message, own.code),
        isinstance(error, BackendError),
    )


def _is_written(step: Step) -> bool:
    if isinstance(step, BytesLine):
        return step.side == "client" and not step.quiet
    return isinstance(step, HeadLine) and step.side == "client"
