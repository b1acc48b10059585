"""Each check of the dialect kit finds a dialect that breaks its rule."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Final

import msgspec
import pytest
from hypothesis.errors import HypothesisException

from gateway.core.conversation import Conversation, JsonObject, Text, Turn
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, TextDelta
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.dialects.base import (
    AnswerHead,
    ClientRequest,
    ErrorAnswer,
    KeyPlace,
    ListedModels,
    RequestHead,
    Route,
)
from gateway.dialects.document import Document
from gateway.dialects.openai_chat.dialect import OpenAIChatDialect
from gateway.dialects.openai_chat.stream import ChatStreamEncoder
from gateway.testing import dialect_answer_checks as answer
from gateway.testing import dialect_request_checks as request
from gateway.testing.dialect_checks import CHECKS, DialectCheck
from tests.dialects.openai_chat.test_conformance import CASE


class NoModels(OpenAIChatDialect):
    routes: ClassVar[tuple[Route, ...]] = OpenAIChatDialect.routes[:2]


class LoudKeyPlace(OpenAIChatDialect):
    key_places: ClassVar[tuple[KeyPlace, ...]] = (KeyPlace(b"X-Key"),)


class UnpublishedTypes(OpenAIChatDialect):
    routes: ClassVar[tuple[Route, ...]] = tuple(
        msgspec.structs.replace(route, operation=route.operation and msgspec.structs.replace(route.operation, types=()))
        for route in OpenAIChatDialect.routes
    )


class StreamsAlways(OpenAIChatDialect):
    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return ClientRequest(msgspec.structs.replace(super().decode(document, head).conversation, stream=True))


class LosesTurns(OpenAIChatDialect):
    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        asked = super().decode(document, head).conversation
        return ClientRequest(msgspec.structs.replace(asked, turns=asked.turns[-3:]))


class Stumbles(OpenAIChatDialect):
    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return ClientRequest(Conversation((Turn("user", (Text(str(document.fields["messages"][0]["content"])),)),)))  # type: ignore[index,call-overload]  # what it stumbles over


class OtherHistoryField(OpenAIChatDialect):
    paths: ClassVar[FieldPaths] = msgspec.structs.replace(CANONICAL_PATHS, params={"messages": "model"})


class OtherTurnPath(OpenAIChatDialect):
    paths: ClassVar[FieldPaths] = msgspec.structs.replace(CANONICAL_PATHS, turn="items[{turn}]")


class AcceptsNothing(OpenAIChatDialect):
    """Reads a request without messages as one with an empty message."""

    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        messages = document.fields["messages"] or [{"role": "user", "content": ""}]
        return super().decode(Document({**document.fields, "messages": messages}), head)


class ShowsNoCalls(OpenAIChatDialect):
    def encode_turn(self, turn: Turn) -> list[JsonObject]:
        return [{"role": "user", "content": turn.text}]


class LosesText(OpenAIChatDialect):
    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return super().encode_answer(request, head, [event for event in events if not isinstance(event, TextDelta)])


class CallsAllStop(OpenAIChatDialect):
    def encode_answer(self, request: ClientRequest, head: AnswerHead, events: Sequence[Event]) -> bytes:
        return super().encode_answer(request, head, [*events, Finish("stop")])


class PlainErrors(OpenAIChatDialect):
    def encode_error(self, error: GatewayError, request_id: str = "") -> ErrorAnswer:
        return super().encode_error(error, request_id)._replace(headers={})


class NoMissingModels(OpenAIChatDialect):
    def encode_models(self, models: ListedModels) -> bytes:
        return super().encode_models(ListedModels(sorted(models.models, key=lambda model: model.name)))


class EncodedOtherwise(OpenAIChatDialect):
    """A dialect whose stream encoder is another one."""

    encoder: ClassVar[type[ChatStreamEncoder]] = ChatStreamEncoder

    def stream_encoder(self, request: ClientRequest, head: AnswerHead) -> ChatStreamEncoder:
        return self.encoder("id", 1, "m", diagnostics=head.diagnostics)


class Forgetful(ChatStreamEncoder):
    """Writes only the last of the events that come together."""

    def feed(self, events: Iterable[Event]) -> bytes:
        return super().feed([*events][-1:])


class Talkative(ChatStreamEncoder):
    def quiet(self) -> bytes:
        return super().feed([TextDelta(" ")])


class Hasty(ChatStreamEncoder):
    def feed(self, events: Iterable[Event]) -> bytes:
        return b": begun\n\n" + super().feed(events)


class Euphemistic(ChatStreamEncoder):
    """Ends a failed answer as a complete one."""

    def fail(self, error: GatewayError) -> bytes:
        return super().feed([Finish("stop")]) + super().close()


class Silent(ChatStreamEncoder):
    def close(self) -> bytes:
        return super().close()[-len(b"data: [DONE]\n\n") :]


class Shared(ChatStreamEncoder):
    """Counts in the class what belongs to one stream."""

    count: ClassVar[int] = 0

    def close(self) -> bytes:
        Shared.count += 1
        return b": %d\n\n" % Shared.count + super().close()


class EarlyEnd(ChatStreamEncoder):
    """Says that the stream is over before it is."""

    def feed(self, events: Iterable[Event]) -> bytes:
        data = super().feed(events)
        return data + b"data: [DONE]\n\n" if b'"finish_reason":"' in data else data

    def close(self) -> bytes:
        return b": the end\n\n"


def encoding(encoder: type[ChatStreamEncoder]) -> type[OpenAIChatDialect]:
    return type(encoder.__name__, (EncodedOtherwise,), {"encoder": encoder})


BROKEN: Final[list[tuple[DialectCheck, type[OpenAIChatDialect]]]] = [
    (request.routes_are_sound, NoModels),
    (request.routes_are_sound, LoudKeyPlace),
    (request.operations_are_complete, UnpublishedTypes),
    (request.example_is_read, StreamsAlways),
    (request.history_is_read, LosesTurns),
    (request.history_is_read, OtherTurnPath),
    (request.turns_are_shown, ShowsNoCalls),
    (request.saved_history_is_read, OtherHistoryField),
    (request.saved_history_is_read, OtherTurnPath),
    (request.empty_history_is_refused, AcceptsNothing),
    (request.empty_history_is_refused, OtherHistoryField),
    (request.garbage_is_refused, Stumbles),
    (answer.answers_are_read, LosesText),
    (answer.cuts_change_nothing, encoding(Forgetful)),
    (answer.cuts_change_nothing, encoding(Talkative)),
    (answer.nothing_is_sent_before_content, encoding(Hasty)),
    (answer.every_finish_is_reported, CallsAllStop),
    (answer.early_errors_are_reported, PlainErrors),
    (answer.late_errors_are_reported, encoding(Euphemistic)),
    (answer.cut_streams_are_incomplete, encoding(EarlyEnd)),
    (answer.notices_are_told_on_demand, encoding(Silent)),
    (answer.encoders_share_nothing, encoding(Shared)),
    (answer.models_are_listed, NoMissingModels),
]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("check", "dialect"), BROKEN, ids=lambda value: value.__name__)
def test_a_check_finds_what_breaks_its_rule(check: DialectCheck, dialect: Callable[[], OpenAIChatDialect]) -> None:
    with pytest.raises((AssertionError, ValueError, KeyError, TypeError, IndexError)) as caught:
        # The examples of a check are random, and one run of it may miss the fault.
        for _ in range(5):
            check(msgspec.structs.replace(CASE, dialect=dialect))
    assert not isinstance(caught.value, HypothesisException)


def test_every_check_has_a_dialect_that_breaks_it() -> None:
    assert {check for check, _ in BROKEN} == set(CHECKS)
