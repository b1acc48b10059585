"""Checks how a dialect writes answers, errors, notices and models. Each takes a DialectCase and raises
AssertionError."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.errors import (
    BackendError,
    BackendRejected,
    BackendTimeout,
    BackendTruncated,
    GatewayError,
    InvalidRequest,
    OwnWords,
    ServerShutdown,
    Unsupported,
)
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice, NoticeRule
from gateway.dialect import AnswerHead, ListedModels, ModelInfo
from gateway.testing.dialect_case import (
    HEAD,
    ClientAnswer,
    DialectCase,
    DialectCheck,
    arguments_by_id,
    greeting,
    texts_of,
)
from gateway.testing.events import fold
from gateway.testing.strategies import answers, arguments

LAW: Final = settings(max_examples=60, deadline=None, database=None, report_multiple_bugs=False)
_RULES: Final[tuple[NoticeRule, ...]] = ("CALL_ID_ADDED", "BRIDGE_ADDED")
NOTICES: Final = tuple(Notice("repair", "added", rule, "one sentence") for rule in _RULES)
REASONS: Final[tuple[Reason, ...]] = get_args(Reason)
ANSWERS: Final = answers(arguments())
PLACES: Final = st.lists(st.integers(0, 40), max_size=4).map(sorted)
MIDDLE: Final[tuple[Event, ...]] = (
    ResponseStart(),
    TextDelta("Hel"),
    ToolCallStart(3, "k", "f"),
    ToolCallDelta(3, "{"),
)


def _rejected() -> BackendError:
    error = BackendRejected("their words", status=429, kind="rate_limit", headers={"retry-after": "3"})
    error.own_words = OwnWords("our words", "rate_limit_exceeded")
    return error


ERRORS: Final[tuple[Callable[[], GatewayError], ...]] = (
    lambda: GatewayError("a bug"),
    lambda: InvalidRequest("no", param="model", extra={"violations": [{"rule": "X"}], "violation_count": 1}),
    lambda: InvalidRequest("no key", status=401, code="invalid_api_key", headers={"www-authenticate": "Bearer"}),
    lambda: InvalidRequest("not yours", status=403, code="model_not_allowed"),
    lambda: InvalidRequest("unknown", status=404, code="model_not_found"),
    lambda: InvalidRequest("too much", status=413, code="request_too_large", headers={"connection": "close"}),
    lambda: Unsupported("not here", param="n"),
    lambda: GatewayError("slower", status=429, kind="rate_limit", code="rate_limit_exceeded"),
    lambda: GatewayError("full", status=503, code="overloaded", headers={"retry-after": "1"}),
    lambda: ServerShutdown("stopping"),
    lambda: BackendTimeout("too late"),
    lambda: BackendTruncated("cut \u2028 off \U0001f600"),
    _rejected,
)


def answers_are_read(case: DialectCase) -> None:
    """A client reads in the stream what the events contain, and in the whole answer the same."""

    @LAW
    @given(ANSWERS)
    def law(events: list[Event]) -> None:
        streamed = case.read_stream(_stream(case, events))
        whole = case.read_whole(_whole(case, events))
        assert _comparable(streamed) == _comparable(whole) == _comparable(_expected(case, events))
        assert streamed.usage in (None, whole.usage), "the stream counts otherwise than the whole answer"

    law()


def cuts_change_nothing(case: DialectCase) -> None:
    """The answer does not depend on which events are fed together, nor on keep-alives between them."""

    @LAW
    @given(ANSWERS, PLACES)
    def law(events: list[Event], places: list[int]) -> None:
        expected = case.read_stream(_stream(case, events))
        pieces = [events[start:end] for start, end in pairwise([0, *places, len(events)])]
        assert case.read_stream(_stream(case, *pieces)) == expected
        assert case.read_stream(_stream(case, *pieces, quiet=True)) == expected, "a keep-alive changes the answer"

    law()


def nothing_is_sent_before_content(case: DialectCase) -> None:
    """As long as nothing can be shown, nothing is sent, so that a failure can still be a status."""
    encoder = case.dialect().stream_encoder(greeting(case), HEAD)
    assert encoder.feed(NOTICES) == encoder.feed([]) == encoder.feed([ResponseStart()]) == b""
    assert encoder.feed([TextDelta("x")])


def every_finish_is_reported(case: DialectCase) -> None:
    """Each finish reason is the dialect's own word, streamed and whole."""
    for reason in REASONS:
        events: list[Event] = [ResponseStart(), TextDelta("x"), Finish(reason)]
        assert case.read_stream(_stream(case, events)).finish == case.finishes[reason], f"{reason}, streamed"
        assert case.read_whole(_whole(case, events)).finish == case.finishes[reason], f"{reason}, whole"


def early_errors_are_reported(case: DialectCase) -> None:
    """An error before the answer keeps its headers, and its status unless the dialect has another one for it, and its
    message can be read."""
    for make in ERRORS:
        error = make()
        answer = case.dialect().encode_error(error)
        assert answer.status == case.statuses.get(error.status, error.status) and answer.media_type
        assert {name.lower(): value for name, value in error.headers.items()}.items() <= {
            name.lower(): value for name, value in answer.headers.items()
        }.items(), "a header is missing"
        assert case.read_error(answer.body) == error.message


def late_errors_are_reported(case: DialectCase) -> None:
    """An error ends the stream, which is then incomplete; what came before it stays, and so does its message, beside
    words by which clients know a failure that may pass."""
    for make in ERRORS:
        for events in ((), MIDDLE[:2], MIDDLE):
            for quiet in (True, False):
                encoder = case.dialect().stream_encoder(greeting(case), HEAD)
                data = (encoder.quiet() if quiet or not events else b"") + encoder.feed(events)
                read = case.read_stream(data + encoder.fail(make()))
                assert read.finish is None, "a failed answer looks complete"
                assert read.error is not None and make().text(in_stream=True).message in read.error
                assert read.text == fold(events).text


def cut_streams_are_incomplete(case: DialectCase) -> None:
    """A stream that is cut off anywhere does not look complete."""
    events = [*MIDDLE, ToolCallDelta(3, "}"), ToolCallEnd(3), Finish("tool_calls")]
    data = _stream(case, events)
    for end in range(len(data.rstrip())):
        assert case.read_stream(data[:end]).finish is None, (
            f"cut off after {end} of {len(data)} bytes, it looks complete"
        )
    assert case.read_stream(data).finish == case.finishes["tool_calls"]


def notices_are_told_on_demand(case: DialectCase) -> None:
    """The notices are in the answer when the client asks for them, and else not."""
    events: list[Event] = [*NOTICES, ResponseStart(), TextDelta("x"), NOTICES[0], Finish("stop")]
    for asks in (True, False):
        head = msgspec.structs.replace(HEAD, diagnostics=asks)
        rules = (*_RULES, _RULES[0]) if asks else ()
        assert case.read_stream(_stream(case, events, head=head)).notices == rules
        assert case.read_whole(_whole(case, events, head)).notices == rules


def encoders_share_nothing(case: DialectCase) -> None:
    """Two streams at the same time do not affect each other."""
    dialect = case.dialect()
    streams = [dialect.stream_encoder(greeting(case), HEAD) for _ in range(2)]
    events = [*MIDDLE, ToolCallDelta(3, "}"), ToolCallEnd(3), Finish("tool_calls")]
    data = [b"", b""]
    for event in events:
        for number, encoder in enumerate(streams):
            data[number] += encoder.feed([event])
    ended = [sent + encoder.close() for sent, encoder in zip(data, streams, strict=True)]
    assert ended[0] == ended[1]
    assert _comparable(case.read_stream(ended[0])) == _comparable(_expected(case, events))


def models_are_listed(case: DialectCase) -> None:
    """Every name is in the list, in the same order, and in the body of its own."""
    names = ("plain", "with/slash:7b", 'a "quoted" one', "日本")
    dialect = case.dialect()
    models = [ModelInfo(name, 7) for name in names]
    assert tuple(case.read_models(dialect.encode_models(ListedModels(models)))) == names
    assert tuple(case.read_models(dialect.encode_models(ListedModels((), "they are not listed")))) == ()
    for model in models:
        assert model.name in texts_of(json.loads(dialect.encode_model(model)))


def _stream(case: DialectCase, *pieces: Sequence[Event], quiet: bool = False, head: AnswerHead = HEAD) -> bytes:
    encoder = case.dialect().stream_encoder(greeting(case), head)
    data = b""
    for piece in pieces:
        data += (encoder.quiet() if quiet else b"") + encoder.feed(piece)
    return data + encoder.close()


def _whole(case: DialectCase, events: Sequence[Event], head: AnswerHead = HEAD) -> bytes:
    return case.dialect().encode_answer(greeting(case), head, events)


def _expected(case: DialectCase, events: Sequence[Event]) -> ClientAnswer:
    """Returns the answer that a client should read, without the tokens."""
    answer = fold(events)
    assert answer.finish is not None
    reasoning = answer.reasoning if "reasoning" in case.reads else ""
    calls = answer.calls if "calls" in case.reads else ()
    return ClientAnswer(answer.text, reasoning, calls, case.finishes[answer.finish.reason])


def _comparable(answer: ClientAnswer) -> tuple[object, ...]:
    """The answer without its tokens; calls by their ids, their arguments as values."""
    return (answer.text, answer.reasoning, arguments_by_id(answer.calls), answer.finish, answer.notices, answer.error)


CHECKS: Final[tuple[DialectCheck, ...]] = (
    answers_are_read,
    cuts_change_nothing,
    nothing_is_sent_before_content,
    every_finish_is_reported,
    early_errors_are_reported,
    late_errors_are_reported,
    cut_streams_are_incomplete,
    notices_are_told_on_demand,
    encoders_share_nothing,
    models_are_listed,
)
