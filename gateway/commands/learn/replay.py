"""Replays recorded exchanges with a backend's entry: the request that it sends, field by field, and the answer that the
recorded response becomes."""

import json
from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from adapters.proto.learn import KnownAnswer, KnownError, RecordedExchange
from gateway.adapter import Adapter
from gateway.core.answer import read_answer
from gateway.core.conversation import Json, ToolCall
from gateway.core.errors import BackendError, BackendRejected, GatewayError
from gateway.core.events import UsageReport
from gateway.core.notices import Notice
from gateway.diagnostics.trial import Trial, try_response
from gateway.exchange import Exchange

_SHOWN: Final = 80


class Difference(msgspec.Struct, frozen=True):
    """A place at which a replay differs: a field of the request, or a part of the answer. `recorded` and `made` are
    texts of the two values, empty where there is none."""

    place: str
    recorded: str
    made: str

    def text(self) -> str:
        """Returns one line."""
        return f"{self.place}: recorded {self.recorded or 'nothing'}, made {self.made or 'nothing'}"


class Replay(msgspec.Struct, frozen=True):
    """The result of one exchange. `compared`: it is known what the client got, so that the answer is not only read.
    `outdated` is what the schema does not know of the response."""

    name: str
    request: tuple[Difference, ...]
    answer: tuple[Difference, ...]
    compared: bool
    outdated: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return not self.request and not self.answer


def replay(adapter: Adapter, recorded: RecordedExchange) -> Replay:
    """Returns the differences of one exchange."""
    known = recorded.known
    compared = known is not None and known.error != KnownError()
    try:
        exchange = Exchange(adapter, recorded.conversation, recorded.policy)
    except GatewayError as error:
        refused = Difference("request", "a request", f"a refusal: {error.message}")
        return Replay(recorded.name, (refused,), (), compared)
    sent = tuple(_fields(adapter.describe(recorded.body), adapter.describe(exchange.request.body), "request"))
    trial = try_response(exchange, recorded.answer, recorded.trailers or {"grpc-status": "0"})
    read = tuple(_read(trial)) if known is None else tuple(_answer(known, trial, recorded.answer))
    events = [event for arrival in trial.arrivals for event in arrival.events]
    outdated = (event.detail for event in events if isinstance(event, Notice) and event.rule == "SCHEMA_OUTDATED")
    return Replay(recorded.name, sent, read, compared, tuple(outdated))


def _fields(recorded: Json, made: Json, place: str) -> Iterator[Difference]:
    """Yields the places at which two JSON values differ; texts that hold the same JSON do not."""
    match recorded, made:
        case dict(), dict():
            for key in dict.fromkeys([*recorded, *made]):
                yield from _fields(recorded.get(key), made.get(key), f"{place}.{key}")
        case list(), list() if len(recorded) == len(made):
            for position, (one, other) in enumerate(zip(recorded, made, strict=True)):
                yield from _fields(one, other, f"{place}[{position}]")
        case _:
            if recorded != made and not _same_json(recorded, made):
                yield Difference(place, _shown(recorded), _shown(made))


def _same_json(recorded: Json, made: Json) -> bool:
    if not (isinstance(recorded, str) and isinstance(made, str) and recorded[:1] in "{[" and made[:1] in "{["):
        return False
    try:
        return bool(json.loads(recorded) == json.loads(made))
    except ValueError:
        return False


def _answer(known: KnownAnswer, trial: Trial, body: bytes) -> Iterator[Difference]:
    if (known.error is not None) is not (trial.error is not None):
        made = "an answer" if trial.error is None else f"the error {trial.error.message}"
        yield Difference("answer", "an answer" if known.error is None else "an error", made)
        return
    if known.error is not None and trial.error is not None:
        yield from _error(known.error, trial.error, body)
        return
    answer = read_answer(event for arrival in trial.arrivals for event in arrival.events)
    yield from _different("answer.text", known.text, answer.text)
    yield from _different("answer.reasoning", known.reasoning, answer.reasoning)
    yield from _different("answer.calls", _calls(known.calls), _calls(tuple(call.block for call in answer.calls)))
    if known.finish is not None:
        yield from _different("answer.finish", known.finish, None if answer.finish is None else answer.finish.reason)
    if known.usage is not None:
        yield from _different("answer.usage", _counts(known.usage), _counts(answer.usage))


def _error(known: KnownError, made: BackendError, body: bytes) -> Iterator[Difference]:
    """Yields what differs of an error. A response that only cannot be read tells none, unless the client got that, too.
    The code and the message count where the gateway passes on those of the backend."""
    if known.code != made.code and not isinstance(made, BackendRejected):
        yield Difference("answer.error", "an error", f"a response that is none: {made.message}")
    if known.status:
        yield from _different("answer.error.status", known.status, made.status)
    if known.code and made.own_words is not None:
        yield from _different("answer.error.code", known.code, made.code)
    if known.message and known.message.encode() in body and made.own_words is not None:
        yield from _different("answer.error.message", known.message, made.message)


def _read(trial: Trial) -> Iterator[Difference]:
    """Yields what is wrong with an answer of which nothing else is known."""
    if trial.error is not None:
        yield Difference("answer", "a response", f"the error {trial.error.message}")
        return
    answer = read_answer(event for arrival in trial.arrivals for event in arrival.events)
    if not answer.parts:
        yield Difference("answer", "a response", "an answer without text or calls")


_Value = TypeVar("_Value")


def _different(place: str, recorded: _Value, made: _Value) -> Iterator[Difference]:
    if recorded != made:
        yield Difference(place, _shown(recorded), _shown(made))


def _calls(calls: tuple[ToolCall, ...]) -> list[tuple[str, Json]]:
    return [(call.name, _arguments(call.arguments)) for call in calls]


def _arguments(text: str) -> Json:
    try:
        found: Json = json.loads(text) if text.strip() else {}
    except ValueError:
        return text
    return found


def _counts(usage: UsageReport | None) -> tuple[int | None, ...]:
    if usage is None or usage.estimated:
        return (None, None, None)
    return (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)


def _shown(value: object) -> str:
    text = "" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
