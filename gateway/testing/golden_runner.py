"""Runs a golden scenario through the gateway, from request to response, without a socket, and formats its result as the
texts that a person can read and a diff can compare."""

import json
import pkgutil
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.adapter import Adapter, BackendRequest
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, GatewayError
from gateway.core.events import Event
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.dialect import AnswerHead, AnswerTimes
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from gateway.settings import check_options
from gateway.testing.adapter_case import MAX_EVENT, AdapterClass
from gateway.testing.golden import Golden, Scenario

# The values that the server generates for each response.
UNIQUE: Final = "golden"
CREATED: Final = 1_700_000_000
COMPLETED: Final = 1_700_000_002
TIMES: Final = AnswerTimes(5_000_000, 400_000_000, 1_500_000_000)


class ScenarioResult(msgspec.Struct, frozen=True):
    """The outcome of one scenario. `request` is None when nothing was sent; `describe` is its body in readable form.

    `stream` and `completion` are the bytes of the two kinds of response; `completion` is empty when `error` ended it,
    and `stream` when the error came before any output. `error_body` is the body of the error response. `paths` are
    those of the client's dialect.
    """

    request: BackendRequest | None
    events: tuple[Event, ...]
    stream: bytes
    completion: bytes
    notices: tuple[Notice, ...]
    describe: Json = None
    error: GatewayError | None = None
    error_body: bytes = b""
    paths: FieldPaths = CANONICAL_PATHS


def play(golden: Golden, cutting: Sequence[bytes]) -> ScenarioResult:
    """Returns the outcome with the backend's response cut into these pieces. Raises GrammarError for events out of
    order."""
    adapter = _adapter(golden.scenario)
    dialect = load_dialect(golden.scenario.dialect)
    try:
        request = dialect.decode(read_document(golden.request), golden.scenario.head)
        exchange = Exchange(adapter, request.conversation, golden.scenario.policy)
    except GatewayError as error:
        body = dialect.encode_error(error).body
        return ScenarioResult(None, (), b"", b"", error.notices, error=error, error_body=body, paths=dialect.paths)
    describe = adapter.describe(exchange.request.body)
    head = AnswerHead(UNIQUE, CREATED, request.conversation.model, lambda: COMPLETED, times=lambda: TIMES)
    encoder = dialect.stream_encoder(request, head)
    events: list[Event] = []
    stream = b""
    failed: GatewayError | None = None
    try:
        for arrived in _answer(exchange, golden, cutting):
            events += arrived
            stream += encoder.feed(arrived)
    except GatewayError as error:
        failed = error
        rescued = error.take_events() if isinstance(error, BackendError) else []
        events += rescued
        stream += encoder.feed(rescued) + encoder.fail(error) if stream else b""
    else:
        stream += encoder.close()
    notices = [*exchange.notices, *(event for event in events if isinstance(event, Notice))]
    if failed is not None:
        reported = (*notices, *failed.notices)
        body = dialect.encode_error(failed).body
        return ScenarioResult(
            exchange.request, tuple(events), stream, b"", reported, describe, failed, body, dialect.paths
        )
    completion = dialect.encode_answer(request, head, events)
    return ScenarioResult(
        exchange.request, tuple(events), stream, completion, tuple(notices), describe, paths=dialect.paths
    )


def _answer(exchange: Exchange, golden: Golden, cutting: Sequence[bytes]) -> Iterator[list[Event]]:
    grammar = Grammar()
    scenario = golden.scenario
    exchange.on_response_head(scenario.status, scenario.headers, golden.wire if scenario.status != 200 else b"")
    for piece in cutting:
        if not exchange.done:
            grammar.check(events := exchange.feed(piece))
            yield events
    grammar.check(events := [*exchange.close(), *exchange.estimate()])
    yield events
    grammar.close()


def _adapter(scenario: Scenario) -> Adapter:
    kind: AdapterClass = pkgutil.resolve_name(scenario.adapter)
    return kind(check_options(scenario.options, kind.Options, "options"), MAX_EVENT)


def expected_files(outcome: ScenarioResult) -> dict[str, str]:
    """Returns the expected files of the folder by name."""
    answer = _json_text(json.loads(outcome.completion)) if outcome.completion else ""
    return {
        "backend_request.txt": _request_text(outcome),
        "client_stream.txt": _answer_text(outcome.stream.decode("utf-8"), outcome),
        "client_answer.txt": _answer_text(answer, outcome),
        "notices.txt": "".join(f"{_notice_text(notice, outcome.paths)}\n" for notice in outcome.notices),
    }


def _request_text(outcome: ScenarioResult) -> str:
    request = outcome.request
    if request is None:
        return "Nothing is sent.\n"
    headers = "".join(f"{name}: {value}\n" for name, value in sorted(request.headers.items()))
    return f"{request.method} {request.path}\n{headers}\n{_json_text(outcome.describe, sort=True)}\n"


def _answer_text(body: str, outcome: ScenarioResult) -> str:
    error = outcome.error
    if error is None or body:
        return f"HTTP 200\n\n{body.rstrip()}\n"
    headers = "".join(f"{name}: {value}\n" for name, value in sorted(error.headers.items()))
    return f"HTTP {error.status}\n{headers}\n{_json_text(json.loads(outcome.error_body))}\n"


def _notice_text(notice: Notice, paths: FieldPaths) -> str:
    place = "" if notice.index is None else f" {paths.turn.format(turn=notice.index)}"
    call = "" if notice.tool_call_id is None else f" {notice.tool_call_id}"
    return f"{notice.level} {notice.stage} {notice.action} {notice.rule}{place}{call}: {notice.detail}"


def _json_text(value: Json, sort: bool = False) -> str:
    # Protobuf guarantees no order of a map's keys, so a request is shown with its keys sorted.
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=sort)
