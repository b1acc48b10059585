"""Runs a golden scenario through the gateway, from request to response, without a socket."""

import pkgutil
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.adapter import Adapter, BackendRequest
from gateway.core.conversation import Json
from gateway.core.errors import BackendError, GatewayError
from gateway.core.events import Event
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.dialects.openai_chat.completion import encode_completion
from gateway.dialects.openai_chat.decode import decode
from gateway.dialects.openai_chat.stream import StreamEncoder
from gateway.exchange import Exchange
from gateway.settings import check_options
from gateway.testing.case import MAX_EVENT, AdapterClass
from gateway.testing.golden import Golden, Scenario

# The values that the server generates for each response.
ANSWER_ID: Final = "chatcmpl-golden"
CREATED: Final = 1_700_000_000


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of one scenario. `request` is None when nothing was sent; `describe` is its body in readable form.

    `stream` and `completion` are the bytes of the two kinds of response; `completion` is empty when `error` ended it,
    and `stream` when the error came before any output.
    """

    request: BackendRequest | None
    events: tuple[Event, ...]
    stream: bytes
    completion: bytes
    notices: tuple[Notice, ...]
    describe: Json = None
    error: GatewayError | None = None


def play(golden: Golden, cutting: Sequence[bytes]) -> Outcome:
    """Return the outcome with the backend's response cut into these pieces. Raises GrammarError for events out of
    order."""
    adapter = _adapter(golden.scenario)
    try:
        conversation = decode(golden.request)
        exchange = Exchange(adapter, conversation, golden.scenario.policy)
    except GatewayError as error:
        return Outcome(None, (), b"", b"", error.notices, error=error)
    describe = adapter.describe(exchange.request.body)
    encoder = StreamEncoder(ANSWER_ID, CREATED, conversation.model, include_usage=conversation.include_usage)
    events: list[Event] = []
    stream = b""
    failed: GatewayError | None = None
    try:
        for arrived in _answer(exchange, golden, cutting):
            events += arrived
            stream += encoder.feed(arrived)
    except GatewayError as error:
        failed = error
        rescued = error.take() if isinstance(error, BackendError) else []
        events += rescued
        stream += encoder.feed(rescued) + encoder.error(error) if stream else b""
    else:
        stream += encoder.close()
    notices = [*exchange.notices, *(event for event in events if isinstance(event, Notice))]
    if failed is not None:
        return Outcome(exchange.request, tuple(events), stream, b"", (*notices, *failed.notices), describe, failed)
    completion = encode_completion(events, id=ANSWER_ID, created=CREATED, model=conversation.model)
    return Outcome(exchange.request, tuple(events), stream, completion, tuple(notices), describe)


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
