"""What exchanges do not decide is said, with the alternatives; nothing is guessed in silence."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import pytest

from adapters.proto.backend.carriers import find_carrier
from adapters.proto.backend.schema import Schema, message_class
from adapters.proto.learn import Doubt, KnownAnswer, Proposal, RecordedExchange, propose
from gateway.core.errors import SettingsError
from tests.adapters.proto.backend.services import answer as message
from tests.adapters.proto.backend.services import grpc_web
from tests.adapters.proto.learn.recorded import options_of, recorded

Change = Callable[[Any], object]
WORD: Final = "Kyoto"


def learned(service: str, exchanges: Sequence[RecordedExchange]) -> Proposal:
    options = options_of(service)
    return propose(options.schema, options.method, options.carrier, exchanges)


def doubt(proposal: Proposal, place: str) -> Doubt:
    """The one doubt about a place."""
    (found,) = [one for one in proposal.doubts if one.place == place]
    return found


def sent(service: str, exchange: RecordedExchange, change: Change) -> RecordedExchange:
    """The exchange with another message in its request."""
    options = options_of(service)
    method = Schema(options.schema).method(options.method)
    carrier = find_carrier(options.carrier, method)
    made = message_class(method.request).FromString(carrier.read(exchange.body))
    change(made)
    return msgspec.structs.replace(exchange, body=carrier.write(made.SerializeToString()))


def without(*kinds: str, service: str) -> list[RecordedExchange]:
    return [one for one in recorded(service, WORD) if one.name not in kinds]


def test_a_value_that_nothing_explains_is_open_with_its_place() -> None:
    numbers = iter(range(5))
    exchanges = [
        sent("talk", one, lambda made: setattr(made, "engine", f"engine {next(numbers)}"))
        for one in recorded("talk", WORD)
    ]
    found = doubt(learned("talk", exchanges), "request.engine")
    assert found.kind == "open" and "no name has its values" in found.reason
    assert found.alternatives == ("$request_id",)


def test_a_value_that_is_sent_only_sometimes_names_the_condition_and_the_others() -> None:
    def mark(one: RecordedExchange) -> RecordedExchange:
        seeded = one.conversation.sampling.seed is not None
        return sent("parts", one, lambda made: made.labels.update({"seeded": "yes"}) if seeded else None)

    found = doubt(learned("parts", [mark(one) for one in recorded("parts", WORD)]), "request.labels.seeded")
    assert found.kind == "open"


def test_two_names_with_one_value_are_told_as_alternatives() -> None:
    def same(one: RecordedExchange) -> RecordedExchange:
        limit = one.conversation.sampling.max_tokens
        conversation = msgspec.structs.replace(
            one.conversation, sampling=msgspec.structs.replace(one.conversation.sampling, seed=limit)
        )
        changed = sent("talk", one, lambda made: made.ClearField("seed"))
        return msgspec.structs.replace(changed, conversation=conversation)

    found = doubt(learned("talk", [same(one) for one in recorded("talk", WORD)]), "request.limits.most_tokens")
    assert (found.kind, found.alternatives) == ("chosen", ("$seed",))


def test_a_constant_that_may_be_a_field_of_the_client_is_told() -> None:
    def named(one: RecordedExchange) -> RecordedExchange:
        conversation = msgspec.structs.replace(one.conversation, params={**one.conversation.params, "user": "gateway"})
        return msgspec.structs.replace(one, conversation=conversation)

    exchanges = [
        named(sent("talk", one, lambda made: setattr(made, "engine", "gateway"))) for one in recorded("talk", WORD)
    ]
    found = doubt(learned("talk", exchanges), "request.engine")
    assert (found.kind, found.alternatives) == ("chosen", ("$request.user",))


def test_a_choice_that_no_exchange_shows_is_open() -> None:
    proposal = learned("parts", without("parallel", service="parts"))
    found = doubt(proposal, "request.choice.mode")
    assert found.kind == "open" and found.reason == "no exchange shows $choice as auto, named"


def test_one_word_of_a_choice_is_not_taken_for_a_field_of_the_client() -> None:
    """Only a request with `tool_choice` has the field, and it is `none`."""
    proposal = learned("parts", without("parallel", "tool", service="parts"))
    found = doubt(proposal, "request.choice")
    assert found.kind == "open" and found.reason == "no exchange shows $choice as required, named"


def test_a_kind_of_turn_that_no_exchange_has_is_open() -> None:
    exchanges = [one for one in recorded("parts", WORD) if one.name in ("plain", "tool", "error")]
    proposal = learned("parts", exchanges)
    found = doubt(proposal, "request.turns.assistant")
    assert found.kind == "open" and "no exchange has an item 'assistant' of $turns" in found.reason


def test_ends_that_no_exchange_shows_are_assumed_by_their_names() -> None:
    found = doubt(learned("demo", recorded("demo", WORD)), "read.finish")
    assert (found.kind, found.alternatives) == ("assumed", ("FINISH_FILTERED: content_filter",))


def test_an_end_whose_name_says_nothing_is_a_failure() -> None:
    exchanges = [one for one in recorded("warp", WORD) if one.name != "error"]
    found = doubt(learned("warp", exchanges), "read.finish")
    assert "other: failures" in found.alternatives


def test_a_text_that_comes_whole_does_not_tell_pieces_from_the_text_so_far() -> None:
    exchanges = [one for one in recorded("talk", WORD) if one.name in ("plain", "error")]
    once = grpc_web([message("talk", {"soFar": "One word.", "ending": "ENDING_DONE"})])
    plain = msgspec.structs.replace(exchanges[0], answer=once, known=KnownAnswer("One word.", finish="stop"))
    found = doubt(learned("talk", [plain, exchanges[1]]), "read.text.mode")
    assert (found.kind, found.alternatives) == ("chosen", ('"total"',))


def test_what_no_rule_reads_is_told() -> None:
    exchanges = [msgspec.structs.replace(one, known=_without_usage(one.known)) for one in recorded("demo", WORD)]
    proposal = learned("demo", exchanges)
    assert {one.place for one in proposal.doubts if one.kind == "unread"} == {
        "usage.prompt_tokens",
        "usage.completion_tokens",
        "usage.reasoning_tokens",
    }


def _without_usage(known: KnownAnswer | None) -> KnownAnswer | None:
    return None if known is None else msgspec.structs.replace(known, usage=None)


def test_turns_that_are_several_messages_in_a_way_of_their_own_say_what_to_write() -> None:
    def split(made: Any) -> None:
        turns = [*made.turns]
        del made.turns[:]
        for turn in turns:
            for part in turn.parts:
                made.turns.add(speaker=turn.speaker, parts=[part])

    exchanges = [sent("parts", one, split) for one in recorded("parts", WORD)]
    with pytest.raises(SettingsError, match=r"no field of the recorded .* request\.turns: .* several messages"):
        learned("parts", exchanges)


def test_bytes_that_are_no_message_name_their_exchange() -> None:
    first, *others = recorded("parts", WORD)
    broken = msgspec.structs.replace(first, body=b"\0\0\0\0\x03\x0a\xff\xff")
    with pytest.raises(SettingsError, match=r"plain: the request is no acme\.parts\.v1\.Request over 'connect'"):
        learned("parts", [broken, *others])
