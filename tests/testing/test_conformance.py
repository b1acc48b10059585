"""Each check of the kit rejects an adapter that breaks its rule."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from itertools import count
from typing import Any, ClassVar, Final

import msgspec
import pytest

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.text.backend import TextAdapter, TextOptions
from gateway.adapter import Adapter, BackendRequest, Capabilities, Decoder, UnsignedRequest
from gateway.core.conversation import Conversation, Json, JsonObject, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.errors import BackendError, BackendRejected
from gateway.core.events import (
    Event,
    Finish,
    PassthroughFields,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.grammar import GrammarError
from gateway.core.policy import Policy
from gateway.testing import declaration_checks, encode_checks, loss_checks
from gateway.testing import decode_checks as answering
from gateway.testing.conformance import CHECKS, AdapterClass, Case, Check
from tests.examples.magpie import MagpieAdapter
from tests.examples.parrot import ParrotAdapter, ParrotDecoder, ParrotOptions
from tests.examples.test_magpie import WIRE as SPOKEN
from tests.examples.test_parrot import WIRE

NUMBERS = count()


class Careless(msgspec.Struct):
    """Takes whatever key it is given."""


class Changing(ParrotAdapter):
    """Sends another request than the Parrot. Subclasses say which."""

    changes: ClassVar[dict[str, object]] = {}

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        return msgspec.structs.replace(super().encode(conversation, policy), **self.changes)


def changing(changes: dict[str, object]) -> AdapterClass:
    made = type("Changed", (Changing,), {"changes": changes, "__module__": __name__})
    assert issubclass(made, Changing)
    return made


def reading(decoder: Callable[[int], Decoder], wire: bytes = WIRE) -> Case:
    """The Parrot with another decoder."""

    class Reading(ParrotAdapter):
        def decoder(self, conversation: Conversation) -> Decoder:
            return decoder(self._max_event)

    return Case("broken", Reading, wire)


class LooseOptions(ParrotAdapter):
    Options: ClassVar[type[msgspec.Struct]] = Careless


class Numbering(ParrotAdapter):
    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        request = super().encode(conversation, policy)
        return msgspec.structs.replace(request, headers={**request.headers, "x-number": str(next(NUMBERS))})


def signing(sign: Callable[[UnsignedRequest, str, datetime], Mapping[str, str]]) -> Case:
    """An adapter that signs so."""

    class Signing(ParrotAdapter):
        def sign(self, request: UnsignedRequest, key: str, now: datetime) -> Mapping[str, str]:
            return sign(request, key, now)

    return Case("signing", Signing, WIRE)


SIGNERS: list[Callable[[UnsignedRequest, str, datetime], Mapping[str, str]]] = [
    lambda request, key, now: {"x-signature": f"{now} {next(NUMBERS)}"},
    lambda request, key, now: {"x-signature": f"{now} {key}"},
    lambda request, key, now: {"x-signature": "always the same"},
    lambda request, key, now: {"X-Signature": str(now)},
    lambda request, key, now: {"x-signature": f"{now}\n"},
    lambda request, key, now: {"content-type": str(now)},
    lambda request, key, now: {"content-length": str(now.day)},
    lambda request, key, now: {**request.headers, "x-signature": str(now)},
]


class Scribbling(ParrotAdapter):
    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        params = conversation.params
        assert isinstance(params, dict)
        params["seen"] = True
        return super().encode(conversation, policy)


class Copying(ParrotAdapter):
    """Sends what the client wrote, whatever it means."""

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        request = super().encode(conversation, policy)
        written = [turn.source.value for turn in conversation.turns if turn.source is not None]
        return msgspec.structs.replace(request, body=msgspec.json.encode(written) if written else request.body)


class Relayed(ParrotAdapter):
    """Sends every parameter, in whatever dialect."""

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        request = super().encode(conversation, policy)
        return msgspec.structs.replace(request, body=request.body + msgspec.json.encode(conversation.params))


class Silent(ParrotAdapter):
    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        last = msgspec.structs.replace(conversation, turns=conversation.turns[-1:])
        return super().encode(last, policy)


class TextOnly(ParrotAdapter):
    """Declares that it takes every part, and takes none."""

    capabilities = Capabilities(tools=False, text_only=True, images=True, files=frozenset({"application/pdf"}))

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        turns = tuple(turn.changed(Text(turn.text)) for turn in conversation.turns)
        return super().encode(msgspec.structs.replace(conversation, turns=turns), policy)


class Arguing(MagpieAdapter):
    """Looks into the arguments of earlier calls. Subclasses say how."""

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        for turn in conversation.turns:
            for call in turn.calls:
                self.read(call.arguments)
        return super().encode(conversation, policy)

    def read(self, arguments: str) -> None:
        raise NotImplementedError


class Parsed(Arguing):
    """Takes them for JSON."""

    def read(self, arguments: str) -> None:
        json.loads(arguments or "{}")


class Keyed(Arguing):
    """Takes them for an object, if they are JSON."""

    def read(self, arguments: str) -> None:
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError):
            return
        value.items()


class Nonempty(Arguing):
    """Takes them for text that begins somehow."""

    def read(self, arguments: str) -> None:
        assert arguments[0]


class Recursive(Arguing):
    """Knows that they may be no JSON, not that they may be deep."""

    def read(self, arguments: str) -> None:
        try:
            json.loads(arguments)
        except ValueError:
            return


class Inventing(MagpieAdapter):
    """Sends nothing instead of arguments that are no object, and reports no notice."""

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        return msgspec.structs.replace(super().encode(conversation, policy), notices=(), body=b'{"history": []}')


class Literalist(MagpieAdapter):
    """Declares that it takes images and files, and knows text only."""

    capabilities = Capabilities(images=True, files=frozenset({"application/pdf"}))

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        for turn in conversation.turns:
            for block in turn.blocks:
                if not isinstance(block, Text | ToolCall | ToolResult | Reasoning):
                    raise TypeError(f"what is a {type(block).__name__}?")
        return super().encode(conversation, policy)


class Modest(Literalist):
    """The same, but it declares what it knows."""

    capabilities = Capabilities()


class Choosy(MagpieAdapter):
    """Refuses to know a field that it does not know, with an exception of its own."""

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        if any(turn.extra for turn in conversation.turns):
            raise KeyError("unknown field")
        return super().encode(conversation, policy)


class Boastful(MagpieAdapter):
    """Declares that it carries a field, and does not."""

    capabilities = Capabilities(carries=frozenset({"unknownmarker", "cache_control"}))


class Fragile(ParrotAdapter):
    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        assert all(turn.text.isascii() for turn in conversation.turns)
        return super().encode(conversation, policy)


class Secretive(ParrotAdapter):
    def describe(self, body: bytes) -> Json:
        return None


class Relaying(ParrotAdapter):
    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return BackendRejected("It failed.", status=status)


class Parsing(ParrotAdapter):
    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return BackendRejected(json.loads(body)["error"]["message"], status=max(status, 400))


class Quoting(ParrotAdapter):
    def decode_error(self, status: int, headers: Mapping[str, str], body: bytes) -> BackendError:
        return BackendRejected(body.decode("latin-1") or "It failed.", status=max(status, 400))


class Chunkwise(ParrotDecoder):
    """Takes every read for one event."""

    def feed(self, data: bytes) -> list[Event]:
        return [TextDelta(data.decode("latin-1"))] if self._started else super().feed(data)


class Trusting(ParrotDecoder):
    """Takes the end of the bytes for the end of the answer."""

    def close(self) -> list[Event]:
        self.done = True
        return [Finish("stop")] if self._started else [ResponseStart(), Finish("stop")]


class Crashing(ParrotDecoder):
    def _piece(self, payload: bytes) -> list[Event]:
        json.loads(payload)
        return super()._piece(payload)


class Forgetful(ParrotDecoder):
    def feed(self, data: bytes) -> list[Event]:
        try:
            return super().feed(data)
        except BackendError as error:
            error.take_events()
            raise


class Endless(ParrotDecoder):
    """Never says that it is done."""

    def feed(self, data: bytes) -> list[Event]:
        events = super().feed(data)
        self.finished = self.done
        self.done = False
        return events

    def close(self) -> list[Event]:
        return []


class Hasty(ParrotDecoder):
    """Says that it is done before it is."""

    def feed(self, data: bytes) -> list[Event]:
        events = super().feed(data)
        self.done = self._started
        return events


class Sharing(ParrotDecoder):
    """Keeps the unread bytes of all answers in one place."""

    buffer: ClassVar[bytearray] = bytearray()

    def feed(self, data: bytes) -> list[Event]:
        self.buffer.extend(data)
        taken, _, rest = bytes(self.buffer).rpartition(b"\n\n")
        self.buffer[:] = rest
        return super().feed(taken + b"\n\n") if taken else []


class Hoarding(ParrotDecoder):
    def __init__(self, max_event: int) -> None:
        super().__init__(1 << 30)


class Showing(ParrotDecoder):
    """Shows every client the backend's own fields."""

    def _piece(self, payload: bytes) -> list[Event]:
        return [PassthroughFields("delta", {"mood": "calm"}), *super()._piece(payload)]


class Nameless(ParrotDecoder):
    """Calls twice with one id."""

    arguments = "{}"
    ids = ("same", "same")

    def _piece(self, payload: bytes) -> list[Event]:
        events = super()._piece(payload)
        if isinstance(events[-1], Finish):
            for index, id_ in enumerate(self.ids):
                call = (ToolCallStart(index, id_, "f"), ToolCallDelta(index, self.arguments), ToolCallEnd(index))
                events[-1:-1] = call
        return events


class Rambling(Nameless):
    """Calls with arguments that are no object."""

    arguments = "[]"
    ids = ("one", "two")


class Late(ParrotDecoder):
    """Opens the answer twice."""

    def _piece(self, payload: bytes) -> list[Event]:
        return [ResponseStart(), *super()._piece(payload)]


PARAMS: JsonObject = {"user": "u"}
WITH_PARAMS = Conversation((Turn("user", (Text("hi"),), index=0),), params=PARAMS)

CHANGES: list[dict[str, object]] = [
    {"path": "http://host/speak"},
    {"path": "speak"},
    {"path": "//host/speak"},
    {"path": "/../speak"},
    {"path": "/speak now"},
    {"method": "DELETE"},
    {"headers": {}},
    {"headers": {"content-type": "text/plain", "Accept": "x"}},
    {"headers": {"content-type": "text/plain\r\nx-injected: 1"}},
    {"headers": {"content-type": "text/plain", "authorization": "Bearer x"}},
    {"headers": {"content-type": "text/plain", "content-length": "3"}},
    {"accepts": ()},
    {"accepts": ("Text/Plain; charset=utf-8",)},
]


class Losing(MagpieAdapter):
    """Sends what the adapter of a real wire sends, without what `lose` takes out of the body."""

    capabilities = OpenAIChatAdapter.capabilities
    real: ClassVar[Adapter] = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
    lose: ClassVar[Callable[[Any], object]]

    def encode(self, conversation: Conversation, policy: Policy) -> BackendRequest:
        request = self.real.encode(conversation, policy)
        body = json.loads(request.body)
        type(self).lose(body)
        return msgspec.structs.replace(request, body=json.dumps(body).encode())


def losing(name: str, lose: Callable[[Any], object], real: Adapter = Losing.real) -> Case:
    """A case with an adapter that leaves something out although it declares it."""
    fields = {"lose": staticmethod(lose), "real": real, "capabilities": real.capabilities, "__module__": __name__}
    made = type("Losing", (Losing,), fields)
    assert issubclass(made, Losing)
    return Case(f"without {name}", made, SPOKEN)


def without(name: str) -> Case:
    return losing(name, lambda body: body.pop(name, None))


def of_tools(name: str) -> Case:
    return losing(name, lambda body: [tool["function"].pop(name, None) for tool in body.get("tools", ())])


def without_later_system(body: Any) -> None:
    body["messages"] = [one for at, one in enumerate(body["messages"]) if at == 0 or one["role"] == "user"]


def of_blocks(name: str) -> Case:
    """Of Messages, a field of blocks."""
    messages = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)

    def lose(body: Any) -> None:
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                block.pop(name, None)

    return losing(name, lose, messages)


class Summed(ParrotDecoder):
    """Reads events with a checksum behind each, and does not look at it."""

    def feed(self, data: bytes) -> list[Event]:
        return super().feed(re.sub(rb"\n: [0-9a-f]{8}", b"", data))


class Prefixed:
    """Reads one message behind its length, whatever that says: four bytes, and one that must be zero."""

    def __init__(self, max_event: int) -> None:
        self.done = False
        self._held = b""

    def feed(self, data: bytes) -> list[Event]:
        self._held += data
        if len(self._held) < 5:
            return []
        if self._held[0]:
            raise BackendRejected("The message is compressed.")
        if len(self._held) < 5 + int.from_bytes(self._held[1:5]):
            return []
        self.done = True
        return [ResponseStart(), TextDelta(self._held[5:].decode("latin-1")), Finish("stop")]

    def close(self) -> list[Event]:
        return []


NUMBERED: Final = TextAdapter(
    TextOptions(
        {"path": "/x", "request": {"id": "$request_id", "prompt": "$prompt"}, "framing": "text", "ends": "close"}
    ),
    1 << 20,
)
PREFIXED: Final = b"\0\0\0\0\2hi"
SUMMED: Final = re.sub(rb"\n\n", lambda _: b"\n: 0123abcd\n\n", WIRE)
BROKEN: list[tuple[Check, Case]] = [
    *[
        (declaration_checks.declared_fields_are_sent, without(name))
        for name in (
            "max_tokens",
            "temperature",
            "top_p",
            "stop",
            "seed",
            "tool_choice",
            "parallel_tool_calls",
            "model",
        )
    ],
    *[(declaration_checks.tools_are_sent_whole, of_tools(name)) for name in ("description", "parameters", "name")],
    (declaration_checks.later_system_text_is_sent, losing("later system text", without_later_system)),
    (declaration_checks.failed_results_are_told, of_blocks("is_error")),
    (declaration_checks.request_ids_are_sent, losing("request_id", lambda body: body.pop("id"), NUMBERED)),
    (declaration_checks.provider_state_is_sent, of_blocks("signature")),
    (answering.damage_is_noticed, msgspec.structs.replace(reading(Summed, SUMMED), checksums=True)),
    (answering.lengths_are_bounded, reading(Prefixed, PREFIXED)),
    (encode_checks.options_are_strict, Case("careless", LooseOptions, WIRE)),
    (encode_checks.imports_only_the_contract, Case("here", changing({}), WIRE)),
    (encode_checks.encoding_is_deterministic, Case("numbering", Numbering, WIRE)),
    (encode_checks.encoding_changes_nothing, Case("scribbling", Scribbling, WIRE, conversation=WITH_PARAMS)),
    *((encode_checks.request_is_well_formed, Case("request", changing(changes), WIRE)) for changes in CHANGES),
    *((encode_checks.signing_is_deterministic, signing(sign)) for sign in SIGNERS),
    (encode_checks.request_is_readable, Case("secretive", Secretive, WIRE)),
    (loss_checks.nothing_is_dropped_in_silence, Case("silent", Silent, WIRE)),
    (loss_checks.a_summary_is_sent, Case("silent", Silent, WIRE)),
    (loss_checks.parts_are_not_dropped_in_silence, Case("text only", TextOnly, WIRE)),
    (loss_checks.parts_are_not_dropped_in_silence, Case("literalist", Literalist, SPOKEN)),
    (loss_checks.any_arguments_can_be_sent, Case("parsed", Parsed, SPOKEN)),
    (loss_checks.any_arguments_can_be_sent, Case("keyed", Keyed, SPOKEN)),
    (loss_checks.any_arguments_can_be_sent, Case("nonempty", Nonempty, SPOKEN)),
    (loss_checks.any_arguments_can_be_sent, Case("recursive", Recursive, SPOKEN)),
    (loss_checks.any_arguments_can_be_sent, Case("inventing", Inventing, SPOKEN)),
    (loss_checks.unknown_fields_are_not_dropped_in_silence, Case("choosy", Choosy, SPOKEN)),
    (loss_checks.unknown_fields_are_not_dropped_in_silence, Case("boastful", Boastful, SPOKEN)),
    (loss_checks.other_dialects_are_not_sent, Case("copying", Copying, WIRE)),
    (loss_checks.other_dialects_are_not_sent, Case("relayed", Relayed, WIRE)),
    (encode_checks.any_history_can_be_sent, Case("fragile", Fragile, WIRE)),
    (answering.answer_is_read, Case("other", ParrotAdapter, WIRE, (ResponseStart(), TextDelta("x"), Finish("stop")))),
    (answering.answer_is_read, reading(Late)),
    (answering.cuts_change_nothing, reading(Chunkwise)),
    (answering.truncation_is_noticed, reading(Trusting)),
    (answering.garbage_is_an_error, reading(Crashing)),
    (answering.nothing_is_lost_before_an_error, reading(Forgetful)),
    (answering.done_ends_the_answer, reading(Endless)),
    (answering.done_ends_the_answer, reading(Hasty)),
    (answering.decoders_share_nothing, reading(Sharing)),
    (answering.only_its_own_dialect_sees_its_fields, reading(Showing)),
    (answering.calls_are_usable, reading(Nameless)),
    (answering.calls_are_usable, reading(Rambling)),
    (answering.events_are_bounded, reading(Hoarding)),
    (answering.errors_are_reported, Case("relaying", Relaying, WIRE)),
    (answering.errors_are_reported, Case("parsing", Parsing, WIRE)),
    (answering.errors_are_reported, Case("quoting", Quoting, WIRE)),
]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("check", "case"), BROKEN, ids=[f"{check.__name__}-{case}" for check, case in BROKEN])
def test_a_broken_adapter_is_found(check: Check, case: Case) -> None:
    broken = (AssertionError, GrammarError, BackendError, ValueError, TypeError, KeyError, AttributeError)
    with pytest.raises((*broken, IndexError, RecursionError)):
        # The examples of a check are random, and one run of it may miss the fault.
        for _ in range(5):
            check(case)


def test_an_adapter_that_knows_text_only_conforms_as_soon_as_it_declares_it() -> None:
    loss_checks.parts_are_not_dropped_in_silence(Case("modest", Modest, SPOKEN))


def test_every_check_is_broken_by_somebody() -> None:
    assert {check for check, _ in BROKEN} == set(CHECKS)


def test_a_case_names_itself() -> None:
    assert str(Case("greeting", ParrotAdapter, WIRE)) == "ParrotAdapter-greeting"
    assert Case("x", ParrotAdapter, WIRE, options={"voice": "loud"}).build() is not None
    assert ParrotAdapter(ParrotOptions(), 1).capabilities == Capabilities(
        tools=False, text_only=True, supported_params=frozenset({"temperature"})
    )
