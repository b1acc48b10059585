"""Checks the rules that every dialect must keep. Each check takes a DialectCase and raises AssertionError.

from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck

CASE = DialectCase(MyDialect, write, read_stream, read_whole, read_error, read_models, {"stop": "end", ...})

@pytest.mark.parametrize("check", CHECKS)
def test_my_dialect_conforms(check: DialectCheck) -> None:
    check(CASE)
"""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeAlias, get_args

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Json, Text, ToolCall, Turn
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
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.dialects.base import AnswerHead, ClientRequest, ListedModels, ModelInfo
from gateway.dialects.document import read_document
from gateway.dialects.openapi import REFERENCE
from gateway.dialects.route_table import RouteTable
from gateway.history.prepare import prepare
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from gateway.testing.events import fold
from gateway.testing.strategies import answers, arguments, conversations, damaged

__all__ = ["CHECKS", "PROMPT_CHECKS", "ClientAnswer", "DialectCase", "DialectCheck"]

DialectCheck: TypeAlias = Callable[[DialectCase], None]

LAW: Final = settings(max_examples=60, deadline=None, database=None, report_multiple_bugs=False)
HEAD: Final = AnswerHead("0123456789abcdef01234567", 1_700_000_000, "a model/of any:name", lambda: 1_700_000_002)
GREETING: Final = Conversation(
    (Turn("user", (Text("Good morning."),)),), model="model", stream=True, include_usage=True
)
NOTICES: Final = tuple(Notice("repair", "added", rule, "one sentence") for rule in ("RULE_ONE", "RULE_TWO"))
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


def routes_are_sound(case: DialectCase) -> None:
    """Each route has a method and a path with at most one parameter; an answer and the models have a route."""
    dialect = case.dialect()
    table = RouteTable([dialect])
    for route in dialect.routes:
        assert route.method.isupper() and route.path.startswith("/"), f"{route.method} {route.path} is not a route"
        parameters = re.findall(r"\{\w+\}", route.path)
        named = route.kind == "model" and not route.name_fields
        assert len(parameters) == 1 if named else len(parameters) < 2, route.path
        assert (route.fixed is not None) == (route.kind == "fixed"), f"{route.path} has no fixed answer"
        assert (route.refusal is not None) == (route.kind == "refused"), f"{route.path} has no error"
        found = table.find(route.method, route.path.replace("{", "").replace("}", "/x"))
        assert found.kind == route.kind, f"{route.method} {route.path} is found as {found.kind}"
    needed = {"generate", "models"} if case.lists_models else {"generate"}
    assert needed <= {route.kind for route in dialect.routes if route.operation is not None}
    headers = [place.name for place in dialect.key_places if place.where == "header"]
    assert dialect.key_places and all(name == name.lower() for name in (*headers, *dialect.request_id_headers))
    names = [name for name, _ in dialect.stream_encoder(_greeting(case), HEAD).headers]
    assert b"content-type" in names and all(name == name.lower() for name in names)


def operations_are_complete(case: DialectCase) -> None:
    """Every type that an operation refers to is published with it."""
    dialect = case.dialect()
    for operation in (route.operation for route in dialect.routes):
        if operation is not None:
            assert operation.answers, f"{operation.name} has no answer"
            known = {kind.__name__ for kind in (*operation.types, dialect.error_type)}
            named = set(re.findall(REFERENCE.format(name=r"(\w+)"), msgspec.json.encode(operation.answers).decode()))
            assert named <= known, f"{operation.name} refers to {named - known}"


def example_is_read(case: DialectCase) -> None:
    """The example is a request of one user turn, and gets a stream only where that is the default."""
    conversation = case.decode_saved(msgspec.json.encode(case.dialect().example("some-model"))).conversation
    assert (conversation.model, conversation.stream) == ("some-model", case.streams_by_default)
    assert [(turn.role, turn.text) for turn in conversation.turns] == [("user", "Hello")]
    assert not conversation.faults


def history_is_read(case: DialectCase) -> None:
    """A conversation that a client writes is decoded to the same conversation, and every time alike."""

    dialect = case.dialect()

    @LAW
    @given(conversations())
    def law(conversation: Conversation) -> None:
        body = case.write(conversation)
        read = case.decode(body, conversation).conversation
        assert _plain(read) == _plain(conversation)
        assert not read.faults, f"a sound history has faults: {read.faults}"
        sources = [turn.source for turn in read.turns if turn.source is not None]
        assert {read.dialect, *(source.dialect for source in sources)} == {dialect.name}
        assert read.paths == dialect.paths, "errors would name places that the client does not have"
        assert case.decode(body, conversation).conversation == read

    law()


def turns_are_shown(case: DialectCase) -> None:
    """A turn is shown as a client would write it: the same history is decoded from all of them."""
    dialect = case.dialect()
    history = dialect.paths.param("messages")

    @LAW
    @given(conversations())
    def law(conversation: Conversation) -> None:
        body = case.write(conversation)
        shown = [item for turn in conversation.turns for item in dialect.encode_turn(turn)]
        fields = {**read_document(body).fields, history: shown}
        assert _plain(case.decode(msgspec.json.encode(fields), conversation).conversation) == _plain(conversation)

    law()


def saved_history_is_read(case: DialectCase) -> None:
    """The field with the history is the one that the dialect names, and the path of a turn leads into it."""
    paths = case.dialect().paths
    history = paths.param("messages")
    assert isinstance(read_document(case.write(GREETING)).fields[history], list)
    assert paths.turn.startswith(f"{history}["), f"{paths.turn} is not in {history}"


def empty_history_is_refused(case: DialectCase) -> None:
    """A request without messages breaks MESSAGES_EMPTY, at the field that the client knows, or gets an empty answer
    without a model."""
    dialect = case.dialect()
    history = dialect.paths.param("messages")
    fields = read_document(case.write(GREETING)).fields
    try:
        request = case.decode(msgspec.json.encode({**fields, history: []}), GREETING)
        if not request.generates:
            empty = case.read_whole(dialect.encode_answer(request, HEAD, ()))
            assert (empty.text, empty.reasoning, empty.calls) == ("", "", ())
            return
        prepare(request.conversation, Policy())
    except InvalidRequest as error:
        assert (error.extra.get("rule"), error.param) == ("MESSAGES_EMPTY", history)
    else:
        raise AssertionError("a request without messages is accepted")


def garbage_is_refused(case: DialectCase) -> None:
    """Any JSON object is a request, or refused with a message; no other exception is raised."""
    sound = case.write(GREETING)
    scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    value = st.recursive(
        scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner), max_leaves=6
    )
    fields = list(read_document(sound).fields)

    @LAW
    @given(damaged(sound), st.dictionaries(st.sampled_from(fields), value))
    def law(broken: bytes, wrong: dict[str, Json]) -> None:
        for body in (broken, msgspec.json.encode({**read_document(sound).fields, **wrong})):
            try:
                case.decode(body, GREETING)
            except InvalidRequest as error:
                assert error.message and 400 <= error.status < 500

    law()


def answers_are_read(case: DialectCase) -> None:
    """A client reads in the stream what the events tell, and in the whole answer the same."""

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
    encoder = case.dialect().stream_encoder(_greeting(case), HEAD)
    assert encoder.feed(NOTICES) == encoder.feed([]) == encoder.feed([ResponseStart()]) == b""
    assert encoder.feed([TextDelta("x")])


def every_finish_is_reported(case: DialectCase) -> None:
    """Each finish reason is the dialect's own word, streamed and whole."""
    for reason in REASONS:
        events: list[Event] = [ResponseStart(), TextDelta("x"), Finish(reason)]
        assert case.read_stream(_stream(case, events)).finish == case.finishes[reason], f"{reason}, streamed"
        assert case.read_whole(_whole(case, events)).finish == case.finishes[reason], f"{reason}, whole"


def early_errors_are_reported(case: DialectCase) -> None:
    """An error before the answer keeps its status and headers, and its message can be read."""
    for make in ERRORS:
        error = make()
        answer = case.dialect().encode_error(error)
        assert answer.status == error.status and answer.media_type
        assert {name.lower(): value for name, value in error.headers.items()}.items() <= {
            name.lower(): value for name, value in answer.headers.items()
        }.items(), "a header is missing"
        assert case.read_error(answer.body) == error.message


def late_errors_are_reported(case: DialectCase) -> None:
    """An error ends the stream, which is then incomplete; what came before it stays, and so does its message."""
    for make in ERRORS:
        for events in ((), MIDDLE[:2], MIDDLE):
            for quiet in (True, False):
                encoder = case.dialect().stream_encoder(_greeting(case), HEAD)
                data = (encoder.quiet() if quiet or not events else b"") + encoder.feed(events)
                read = case.read_stream(data + encoder.fail(make()))
                assert read.finish is None, "a failed answer looks complete"
                assert read.error == make().text(in_stream=True).message
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
        rules = ("RULE_ONE", "RULE_TWO", "RULE_ONE") if asks else ()
        assert case.read_stream(_stream(case, events, head=head)).notices == rules
        assert case.read_whole(_whole(case, events, head)).notices == rules


def encoders_share_nothing(case: DialectCase) -> None:
    """Two streams at the same time do not affect each other."""
    dialect = case.dialect()
    streams = [dialect.stream_encoder(_greeting(case), HEAD) for _ in range(2)]
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
        assert model.name in _strings(json.loads(dialect.encode_model(model)))


def _greeting(case: DialectCase) -> ClientRequest:
    return case.decode(case.write(GREETING), GREETING)


def _stream(case: DialectCase, *pieces: Sequence[Event], quiet: bool = False, head: AnswerHead = HEAD) -> bytes:
    encoder = case.dialect().stream_encoder(_greeting(case), head)
    data = b""
    for piece in pieces:
        data += (encoder.quiet() if quiet else b"") + encoder.feed(piece)
    return data + encoder.close()


def _whole(case: DialectCase, events: Sequence[Event], head: AnswerHead = HEAD) -> bytes:
    return case.dialect().encode_answer(_greeting(case), head, events)


def _expected(case: DialectCase, events: Sequence[Event]) -> ClientAnswer:
    """Return what a client should read, without the tokens."""
    answer = fold(events)
    assert answer.finish is not None
    reasoning = answer.reasoning if "reasoning" in case.reads else ""
    calls = answer.calls if "calls" in case.reads else ()
    return ClientAnswer(answer.text, reasoning, calls, case.finishes[answer.finish.reason])


def _comparable(answer: ClientAnswer) -> tuple[object, ...]:
    """The answer without its tokens; calls by their ids, their arguments as values."""
    return (answer.text, answer.reasoning, _calls(answer.calls), answer.finish, answer.notices, answer.error)


def _calls(calls: Sequence[ToolCall]) -> dict[str, tuple[str, Json]]:
    return {call.id: (call.name, json.loads(call.arguments or "{}")) for call in calls}


def _plain(conversation: Conversation) -> tuple[object, ...]:
    """The conversation without what only its own dialect knows: positions, sources, the split of text into parts."""
    turns = [
        (turn.role, turn.text, _calls(turn.calls), [(result.call_id, result.text) for result in turn.results])
        for turn in conversation.turns
    ]
    tools = [(tool.name, tool.description, dict(tool.parameters)) for tool in conversation.tools]
    return turns, tools, conversation.model, conversation.stream


def _strings(value: Json) -> set[str]:
    """Every text in a JSON value."""
    match value:
        case str():
            return {value}
        case list():
            return {text for item in value for text in _strings(item)}
        case dict():
            return {text for item in value.values() for text in _strings(item)}
        case _:
            return set()


CHECKS: Final[tuple[DialectCheck, ...]] = (
    routes_are_sound,
    operations_are_complete,
    example_is_read,
    history_is_read,
    turns_are_shown,
    saved_history_is_read,
    empty_history_is_refused,
    garbage_is_refused,
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
# Those for a dialect whose requests are one prompt: it has no history, no tools and no calls.
PROMPT_CHECKS: Final[tuple[DialectCheck, ...]] = tuple(
    [
        check
        for check in CHECKS
        if check not in (history_is_read, turns_are_shown, saved_history_is_read, empty_history_is_refused)
    ]
)
