"""Captures a request that has failed while nobody watched, by what it still refers to: one that does not fail costs
nothing for it.
"""

from collections.abc import Sequence
from time import monotonic
from typing import Final

from gateway.core.errors import BackendError, BackendTimeout, BackendTruncated, GatewayError
from gateway.core.notices import Notice
from gateway.dialect import RequestHead
from gateway.recording.beginning import whole_words
from gateway.recording.lines import Cut
from gateway.registry import load_dialect
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.captured_bytes import BackendHead, CapturedBytes, Piece
from gateway.server.telemetry.request_context import RequestContext

# Of a larger body of the client, so much is kept; of the errors of the backend and of the gateway, that and some more.
FIRST: Final = 64 * 2**10
_ERRORS: Final = 4


def failed_capture(
    context: RequestContext,
    head: RequestHead,
    notices: Sequence[Notice],
    most: int,
    error: GatewayError | None,
    secrets: Sequence[str] = (),
) -> Capture:
    """Returns what is known of a request that has this head, was told these notices, and fails now with this error
    (None: its client left, or the gateway ends): of its body at most so many bytes. What is written to the client from
    now on may be added. `secrets` are the gateway's own."""
    first = min(FIRST, most)
    capture = Capture(context.id, context.method, CapturedBytes(_ERRORS * first))
    capture.begin(load_dialect(context.dialect), head)
    if context.body is not None:
        capture.read_request(context.body, first)
    if context.routed is not None:
        capture.choose_route(context.model, *context.routed)
    for tried in context.failed_tries:
        capture.add_try(tried.model, tried.backend, tried.error.code or "", tried.status, tried.at)
    if context.exchange is not None:
        capture.prepare(context.exchange, first, secrets)
    now = monotonic()
    _add_answer(capture.captured, context, now)
    # The first ones were told when everything was prepared.
    early = len(context.notices) if context.asked else 0
    for number, notice in enumerate(notices):
        capture.note(notice, context.asked if number < early else now)
    capture.set_times(context.started, _marks(context))
    if error is not None:
        capture.fail(error)
    if (cut := _cut(context, error)) is not None:
        capture.cut(cut)
    return capture


def _cut(context: RequestContext, error: GatewayError | None) -> Cut | None:
    """Returns what broke the answer off, where no bytes of it did."""
    if error is None:
        return "client_gone" if context.code == "client_gone" else None
    if context.answer is None or context.error_body is not None or not isinstance(error, BackendError):
        return None
    if isinstance(error, BackendTimeout):
        return "timeout"
    return "fin" if isinstance(error, BackendTruncated) else "reset"


def _add_answer(captured: CapturedBytes, context: RequestContext, now: float) -> None:
    """Adds the head of the backend's answer, and the bytes in which it failed."""
    answer = context.answer
    if answer is None:
        return
    captured.add(BackendHead(context.head_at, answer.status, dict(answer.headers), answer.compressed))
    failed = context.error_body or b""
    # What stands before them and is gone ended anywhere in a word, and so do they where the rest did not come.
    data = whole_words(failed, from_start=not context.received, to_end=context.error_ends)
    if missing := context.earlier + context.received + len(failed) - len(data):
        captured.skip("backend", missing)
    if data:
        captured.add_piece(Piece("backend", now, data))


def _marks(context: RequestContext) -> dict[str, float]:
    """Returns the times that are known, by the fields of Marks."""
    times = {
        "read": context.body_at,
        "prepared": context.asked,
        "head": context.head_at,
        "first": context.answered,
    }
    return {name: at for name, at in times.items() if at}
