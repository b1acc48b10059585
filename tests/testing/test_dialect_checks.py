"""Each check of the dialect kit finds a dialect that breaks its rule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
import pytest
from hypothesis.errors import HypothesisException

from adapters.openai_chat.client.dialect import OpenAIChatDialect
from adapters.openai_chat.client.stream import ChatStreamEncoder
from gateway.core.conversation import (
    EMPTY,
    Block,
    Conversation,
    Image,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from gateway.core.errors import GatewayError
from gateway.core.events import Event, Finish, TextDelta
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.dialect import (
    AnswerHead,
    ClientRequest,
    ErrorAnswer,
    KeyPlace,
    ListedModels,
    RequestHead,
    Route,
)
from gateway.dialects.document import Document
from gateway.testing import dialect_answer_checks as answer
from gateway.testing import dialect_field_checks as fields
from gateway.testing import dialect_request_checks as request
from gateway.testing.dialect_case import DialectCase
from gateway.testing.dialect_checks import CHECKS, DialectCheck
from tests.adapters.openai_chat.client.test_conformance import CASE
from tests.dialects.cases import CASES
from tests.tiers import sample


def losing(request: ClientRequest, mistake: Callable[[Conversation], Conversation]) -> ClientRequest:
    return msgspec.structs.replace(request, conversation=mistake(request.conversation))


def without_state(conversation: Conversation) -> Conversation:
    return of_blocks(
        lambda block: msgspec.structs.replace(block, extra=EMPTY) if isinstance(block, ToolCall | Reasoning) else block
    )(conversation)


def of_blocks(change: Callable[[Block], Block | None]) -> Callable[[Conversation], Conversation]:
    """A mistake in each block; None: the block is lost."""

    def mistake(conversation: Conversation) -> Conversation:
        turns = [
            turn.changed(*[made for block in turn.blocks if (made := change(block)) is not None])
            for turn in conversation.turns
        ]
        return msgspec.structs.replace(conversation, turns=tuple(turns))

    return mistake


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


class NoTemperature(OpenAIChatDialect):
    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return super().decode(Document({**document.fields, "temperature": None}), head)


class NoState(OpenAIChatDialect):
    def decode(self, document: Document, head: RequestHead) -> ClientRequest:
        return losing(super().decode(document, head), without_state)


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
    (fields.fields_are_read, NoTemperature),
    (fields.state_is_read, NoState),
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


def lost(**values: Any) -> Callable[[Conversation], Conversation]:
    return lambda conversation: msgspec.structs.replace(conversation, **values)


def unsampled(**values: Any) -> Callable[[Conversation], Conversation]:
    return lambda conversation: msgspec.structs.replace(
        conversation, sampling=msgspec.structs.replace(conversation.sampling, **values)
    )


def without_params(*names: str) -> Callable[[Conversation], Conversation]:
    def mistake(conversation: Conversation) -> Conversation:
        params = {name: value for name, value in conversation.params.items() if name not in names}
        return msgspec.structs.replace(conversation, params=params)

    return mistake


def of_tools(**values: Any) -> Callable[[Conversation], Conversation]:
    return lambda conversation: msgspec.structs.replace(
        conversation, tools=tuple([msgspec.structs.replace(tool, **values) for tool in conversation.tools])
    )


def without_turns(*roles: str, behind: int = 0) -> Callable[[Conversation], Conversation]:
    return lambda conversation: msgspec.structs.replace(
        conversation,
        turns=tuple([turn for at, turn in enumerate(conversation.turns) if at < behind or turn.role not in roles]),
    )


PARAMS: Final = ("top_k", "presence_penalty", "frequency_penalty", "reasoning_effort", "service_tier", "user")
# One or two mistakes for each example of the kit.
MISTAKES: Final[Mapping[str, Sequence[Callable[[Conversation], Conversation]]]] = {
    "model": [lost(model="model")],
    "max_tokens": [unsampled(max_tokens=None), without_params("max_tokens", "max_completion_tokens")],
    "temperature": [unsampled(temperature=None), without_params("temperature")],
    "top_p": [unsampled(top_p=None), without_params("top_p")],
    "stop": [unsampled(stop=()), without_params("stop")],
    "seed": [unsampled(seed=None), without_params("seed")],
    **{name: [without_params(name)] for name in (*PARAMS, "response_format")},
    **{name: [lost(tool_choice="auto")] for name in ("tool_choice", "tool_choice none", "tool_choice named")},
    "parallel_tool_calls": [lost(parallel_tool_calls=True)],
    "tools": [lost(tools=()), of_tools(name="look")],
    "tool description": [of_tools(description="")],
    "tool schema": [of_tools(parameters=EMPTY)],
    "strict": [of_tools(strict=None)],
    "image": [of_blocks(lambda block: None if isinstance(block, Image) else block)],
    "system": [without_turns("system")],
    "developer": [without_turns("developer")],
    "later system": [without_turns("system", behind=1)],
    "is_error": [
        of_blocks(lambda one: msgspec.structs.replace(one, is_error=False) if isinstance(one, ToolResult) else one)
    ],
    "reasoning": [of_blocks(lambda block: None if isinstance(block, Reasoning) else block)],
}
PLANTED: Final = [
    (case, name, mistake)
    for case in CASES
    for name, mistakes in MISTAKES.items()
    if name not in case.lacks
    for mistake in mistakes
]


def test_every_example_has_a_mistake() -> None:
    assert MISTAKES.keys() == fields.EXAMPLES.keys()


@sample("name", "case")
@pytest.mark.parametrize(
    ("case", "name", "mistake"), PLANTED, ids=[f"{case}-{name}-{at}" for at, (case, name, _) in enumerate(PLANTED)]
)
def test_a_dialect_that_loses_what_its_clients_write_fails_the_kit(
    case: DialectCase, name: str, mistake: Callable[[Conversation], Conversation]
) -> None:
    sound = type(case.dialect())

    class Losing(sound):  # type: ignore[misc,valid-type]  # a class of a variable
        def decode(self, document: Document, head: RequestHead) -> ClientRequest:
            return losing(super().decode(document, head), mistake)

    with pytest.raises(AssertionError, match="is written and not read"):
        fields.fields_are_read(msgspec.structs.replace(case, dialect=Losing))


@pytest.mark.parametrize("case", [case for case in CASES if case.provider], ids=str)
def test_a_dialect_that_loses_state_fails_the_kit(case: DialectCase) -> None:
    sound = type(case.dialect())

    class Losing(sound):  # type: ignore[misc,valid-type]  # a class of a variable
        def decode(self, document: Document, head: RequestHead) -> ClientRequest:
            return losing(super().decode(document, head), without_state)

    with pytest.raises(AssertionError, match="state of"):
        fields.state_is_read(msgspec.structs.replace(case, dialect=Losing))


def test_a_client_that_writes_less_than_its_case_says_fails_the_kit() -> None:
    with pytest.raises(AssertionError, match="the client writes no is_error"):
        fields.fields_are_read(msgspec.structs.replace(CASE, lacks=frozenset()))
    with pytest.raises(AssertionError, match="no example of tempo"):
        fields.fields_are_read(msgspec.structs.replace(CASE, lacks=frozenset({"tempo"})))
