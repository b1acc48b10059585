"""Holds what the ring of requests knows of one of them."""

import msgspec

from gateway.core.events import UsageReport
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.summary import Contents, Summary
from gateway.server.telemetry.request_context import NO_ERROR, SHOWN, Outcome, RequestContext, shown


class Entry(msgspec.Struct):
    """One request. While it is served it has its `context`, then its `outcome`. `started` is the time of its head, and
    `changed` that of its latest change (monotonic clock); `told` is what watchers were told last of it, and `held` the
    memory of its contents when it ended, in bytes."""

    seq: int
    worker: int
    id: str
    dialect: str
    started: float
    changed: float
    context: RequestContext | None
    capture: Capture | None
    held: int = 0
    evicted: bool = False
    streamed: bool = False
    rules: tuple[str, ...] = ()
    usage: UsageReport | None = None
    outcome: Outcome | None = None
    told: Summary | None = None


def summary_of(entry: Entry, epoch_s: float) -> Summary:
    """Returns what is known of a request now, without its cost. `epoch_s` is the Unix time at which the monotonic clock
    began."""
    context, outcome = entry.context, entry.outcome
    if context is not None:
        outcome = Outcome(
            context.method,
            shown(context.path[:SHOWN]),
            context.key,
            shown(context.model[:SHOWN]),
            context.backend,
            0,
            context.code,
            context.ms,
            context.changed,
        )
    assert outcome is not None  # a request has a context or an outcome
    capture, usage = entry.capture, entry.usage or UsageReport()
    contents: Contents = "evicted" if entry.evicted else "never_kept" if capture is None else "kept"
    return Summary(
        seq=entry.seq,
        id=entry.id,
        began=round(entry.started + epoch_s, 3),
        method=outcome.method,
        path=outcome.path,
        dialect=entry.dialect,
        key=outcome.key,
        model=outcome.model,
        backend=outcome.backend,
        live=context is not None,
        ms=outcome.ms,
        status=outcome.status,
        code="" if outcome.code == NO_ERROR else outcome.code,
        stream=entry.streamed if context is None else context.streamed,
        changes=outcome.changes,
        rules=entry.rules,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        contents=contents,
        bytes=0 if capture is None else capture.size,
        worker=entry.worker,
        conversation="" if capture is None else capture.conversation,
        tokens_estimated=usage.estimated,
    )
