"""Checks the routes of a dialect, and how it reads requests. Each takes a DialectCase and raises AssertionError."""

import re
from typing import Final

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Json
from gateway.core.errors import (
    InvalidRequest,
)
from gateway.core.policy import Policy
from gateway.dialects.document import read_document
from gateway.dialects.openapi import REFERENCE
from gateway.dialects.route_table import RouteTable
from gateway.history.prepare import prepare
from gateway.testing.dialect_case import GREETING, HEAD, DialectCase, DialectCheck, arguments_by_id, greeting
from gateway.testing.strategies import conversations, damaged

LAW: Final = settings(max_examples=60, deadline=None, database=None, report_multiple_bugs=False)


def routes_are_sound(case: DialectCase) -> None:
    """Each route has a method and a path with at most one parameter; an answer and the models have a route."""
    dialect = case.dialect()
    table = RouteTable([dialect])
    for route in dialect.routes:
        assert route.method.isupper() and route.path.startswith("/"), f"{route.method} {route.path} is not a route"
        parameters = re.findall(r"\{\w+\}", route.path)
        named = route.kind == "model" and not route.name_fields
        assert len(parameters) == 1 if named else len(parameters) < 2, route.path
        assert route.kind != "fixed" or route.fixed is not None, f"{route.path} has no fixed answer"
        assert route.fixed is None or route.kind in ("fixed", "model"), f"{route.path} never sends its fixed answer"
        assert (route.refusal is not None) == (route.kind == "refused"), f"{route.path} has no error"
        found = table.find(route.method, route.path.replace("{", "").replace("}", "/x"))
        assert found.kind == route.kind, f"{route.method} {route.path} is found as {found.kind}"
    needed = {"generate", "models"} if case.lists_models else {"generate"}
    assert needed <= {route.kind for route in dialect.routes if route.operation is not None}
    headers = [place.name for place in dialect.key_places if place.where == "header"]
    assert dialect.key_places and all(name == name.lower() for name in (*headers, *dialect.request_id_headers))
    names = [name for name, _ in dialect.stream_encoder(greeting(case), HEAD).headers]
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


def _plain(conversation: Conversation) -> tuple[object, ...]:
    """The conversation without what only its own dialect knows: positions, sources, the split of text into parts."""
    turns = [
        (turn.role, turn.text, arguments_by_id(turn.calls), [(result.call_id, result.text) for result in turn.results])
        for turn in conversation.turns
    ]
    tools = [(tool.name, tool.description, dict(tool.parameters)) for tool in conversation.tools]
    return turns, tools, conversation.model, conversation.stream


CHECKS: Final[tuple[DialectCheck, ...]] = (
    routes_are_sound,
    operations_are_complete,
    example_is_read,
    history_is_read,
    turns_are_shown,
    saved_history_is_read,
    empty_history_is_refused,
    garbage_is_refused,
)
# Those of a history, which a dialect of prompts does not have.
HISTORY_CHECKS: Final[frozenset[DialectCheck]] = frozenset(
    {history_is_read, turns_are_shown, saved_history_is_read, empty_history_is_refused}
)
