"""Each form of a rule, on messages that tell it from the others."""

import base64
from typing import Any

import pytest

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.proto.backend.token_counts import Counts
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, Finish, TextDelta, UsageReport
from gateway.core.notices import Notice
from gateway.settings import check_options
from gateway.testing.events import fold
from gateway.testing.replay import replay
from tests.adapters.proto.backend.mappings import DELTAS, PARTS, SINGLE, TALK, Entry
from tests.adapters.proto.backend.services import WRITERS, answer, b64

ASKED = Conversation((Turn("user", (Text("?"),), index=0),))


def events(service: str, entry: Entry, *messages: dict[str, Any], carrier: str = "frames_u32") -> list[Event]:
    """What the messages of a response become. (Any: protobuf's JSON.)"""
    adapter = ProtoAdapter(check_options({**entry, "carrier": carrier}, ProtoOptions, "options"), 1 << 20)
    wire = WRITERS[carrier]([answer(service, message) for message in messages])
    return replay(adapter.decoder(ASKED), [wire])


def deltas(rule: dict[str, Any], *outputs: dict[str, Any]) -> list[Event]:
    """The same for one rule for the outputs of `deltas`, whose text is read as well."""
    request = {key: value for key, value in DELTAS["request"].items() if key != "functions" or "call" in rule}
    read = [{"each": "outputs", "text": "content", **rule}]
    entry = {**DELTAS, "request": request, "read": read}
    return events("deltas", entry, *({"outputs": [output]} for output in outputs))


def rules(found: list[Event]) -> list[str]:
    return [event.rule for event in found if isinstance(event, Notice)]


def finish_of(found: list[Event]) -> tuple[str, str | None]:
    ended = fold(found).finish
    assert ended is not None
    return ended.reason, ended.raw


@pytest.mark.parametrize(
    ("rule", "last", "ended"),
    [
        ({"at": "reason", "none": ["running"]}, {"reason": "stop"}, ("stop", "stop")),
        ({"at": "reason"}, {"reason": "LENGTH"}, ("length", "LENGTH")),
        ({"at": "reason", "reasons": {"full": "length"}}, {"reason": "full"}, ("length", "full")),
        ({"when": {"index": 9}, "reason": "length"}, {"index": 9}, ("length", None)),
        ({"when": {"reason": "set", "thinking": "unset"}, "reason": "stop"}, {"reason": "x"}, ("stop", None)),
    ],
)
def test_the_end_is_told_by_the_rule(rule: dict[str, Any], last: dict[str, Any], ended: tuple[str, str | None]) -> None:
    found = deltas({"finish": rule}, {"content": b64("a")}, last)
    assert finish_of(found) == ended and fold(found).text == "a"


def test_an_unknown_word_is_a_stop_with_a_notice() -> None:
    found = deltas({"finish": {"at": "reason"}}, {"content": b64("a"), "reason": "tired"})
    assert finish_of(found) == ("stop", "tired")
    assert rules(found) == ["FINISH_REASON_UNKNOWN"]


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ({}, "error"),
        ({"failures": ["tired"]}, "tired"),
        *[
            ({}, word)
            for word in ("failed", "FAILURE", "internal_error", "InternalError", "EngineFailed", "err.timeout")
        ],
        ({"reasons": {"full": "length"}}, "FINISH_REASON_ERROR"),
    ],
)
def test_a_word_that_means_a_failure_is_an_error(rule: Entry, word: str) -> None:
    with pytest.raises(BackendError) as failed:
        deltas({"finish": {"at": "reason", **rule}}, {"content": b64("a"), "reason": word})
    assert failed.value.code == "upstream_stream_truncated"
    assert fold(failed.value.events).text == "a"


@pytest.mark.parametrize(("word", "reason"), [("no_error", "stop"), ("unfailing", "stop")])
def test_a_word_with_a_declared_meaning_has_it(word: str, reason: str) -> None:
    rule = {"at": "reason", "reasons": {word: reason}}
    assert finish_of(deltas({"finish": rule}, {"content": b64("a"), "reason": word})) == (reason, word)


def test_a_number_of_an_enum_that_the_schema_lacks_may_have_a_meaning() -> None:
    finish = TALK["read"][1]["finish"]
    numbers = {"reasons": {**finish["reasons"], "7": "content_filter"}, "failures": [*finish["failures"], "8"]}
    entry = {**TALK, "read": [TALK["read"][0], {**TALK["read"][1], "finish": {**finish, **numbers, "none": ["9"]}}]}
    found = events("talk", entry, {"soFar": "a", "ending": 9}, {"soFar": "ab", "ending": 7})
    assert finish_of(found) == ("content_filter", "7") and fold(found).text == "ab"
    assert rules(found) == []
    with pytest.raises(BackendError) as failed:
        events("talk", entry, {"soFar": "a", "ending": 8})
    assert failed.value.code == "upstream_stream_truncated"
    assert finish_of(events("talk", entry, {"soFar": "a", "ending": 10})) == ("stop", "10")


@pytest.mark.parametrize("mode", ["delta", "total"])
@pytest.mark.parametrize("key", ["index", "id"])
def test_the_pieces_of_calls_are_joined_by_their_key(mode: str, key: str) -> None:
    rule = {
        "call": {"each": "calls", key: key, "name": "name", "arguments": "arguments", "mode": mode},
        "finish": {"at": "reason"},
    }
    begun = {"index": 1, "id": "c", "name": "look", "arguments": b64('{"at": ')}
    more = '"door"}' if mode == "delta" else '{"at": "door"}'
    found = deltas(
        rule,
        {"calls": [begun]},
        {"calls": [{"index": 1, "id": "c", "arguments": b64(more)}]},
        {"reason": "tool_calls"},
    )
    assert [(call.name, call.arguments) for call in fold(found).calls] == [("look", '{"at": "door"}')]


def test_a_character_may_be_split_over_two_messages_of_bytes() -> None:
    first, second = "é".encode()[:1], "é".encode()[1:]
    halves = [{"content": base64.b64encode(half).decode()} for half in (first, second)]
    assert fold(deltas({"finish": {"at": "reason"}}, *halves, {"reason": "stop"})).text == "é"


def test_a_text_so_far_in_bytes_may_end_inside_a_character() -> None:
    whole = "aé".encode()
    totals = [{"content": base64.b64encode(total).decode()} for total in (whole[:2], whole)]
    rule = {"finish": {"at": "reason"}, "mode": "total"}
    assert fold(deltas(rule, *totals, {"content": totals[1]["content"], "reason": "stop"})).text == "aé"


@pytest.mark.parametrize("mode", ["delta", "total"])
def test_bytes_that_are_not_utf8_are_replaced_and_told(mode: str) -> None:
    piece = {"content": base64.b64encode(b"a\xffb").decode()}
    found = deltas({"finish": {"at": "reason"}, "mode": mode}, {**piece, "reason": "stop"})
    assert (fold(found).text, rules(found)) == ("a\ufffdb", ["TEXT_MENDED"])
    found = deltas({"finish": {"at": "reason"}, "mode": mode}, {"content": b64("\ufffd"), "reason": "stop"})
    assert (fold(found).text, rules(found)) == ("\ufffd", [])


@pytest.mark.parametrize("mode", ["delta", "total"])
def test_half_a_character_at_the_end_is_told(mode: str) -> None:
    piece = {"content": base64.b64encode("aé".encode()[:2]).decode()}
    found = deltas({"finish": {"at": "reason"}, "mode": mode}, {**piece, "reason": "stop"})
    assert (fold(found).text, rules(found)) == ("a", ["TAIL_BROKEN"])


@pytest.mark.parametrize(("mode", "counts"), [("last", (3, 2)), ("sum", (7, 7)), ("max", (4, 5))])
def test_counts_are_combined_as_the_mode_says(mode: str, counts: tuple[int, int]) -> None:
    entry = {
        **TALK,
        "read": [TALK["read"][0], {**TALK["read"][1], "usage": {**TALK["read"][1]["usage"], "mode": mode}}],
    }
    found = events(
        "talk",
        entry,
        {"soFar": "a", "tokensIn": 4, "tokensOut": 5},
        {"soFar": "a", "tokensIn": 3, "tokensOut": 2, "ending": "ENDING_DONE"},
    )
    assert fold(found).usage == UsageReport(*counts, sum(counts))


def test_tokens_of_the_reasoning_are_added_to_those_of_the_answer() -> None:
    read = [*PARTS["read"][:3], {"usage": {**PARTS["read"][3]["usage"], "answer": "counts.output"}}, PARTS["read"][4]]
    del read[3]["usage"]["completion"]
    entry = {**PARTS, "read": read}
    found = events(
        "parts",
        entry,
        {"parts": [{"text": "a"}], "counts": {"input": 7, "output": 2, "thinking": 100}},
        {"counts": {"input": 7, "output": 5, "thinking": 100}, "ended": {"fully": {}}},
    )
    details: dict[str, Any] = {"completion_tokens_details": {"reasoning_tokens": 100}}
    assert fold(found).usage == UsageReport(7, 105, 112, extra=details)


@pytest.mark.parametrize("carrier", ["frames_u32", "grpc_web", "connect", "grpc_web_text"])
def test_what_follows_the_end_is_told_and_dropped_on_every_carrier(carrier: str) -> None:
    end = {"parts": [{"text": "a"}], "ended": {"fully": {}}}
    late = {"parts": [{"thought": "b"}, {"text": "c"}, {"call": {"name": "look", "fields": {}}}]}
    found = events("parts", PARTS, end, late, {"ended": {"tooLong": {}}}, {"counts": {"output": 5}}, carrier=carrier)
    answer = fold(found)
    assert (answer.text, answer.reasoning, answer.calls) == ("a", "", ())
    assert answer.finish is not None and answer.finish.reason == "stop"
    assert answer.usage == UsageReport(None, 5)
    assert sorted(rules(found)) == ["LATE_CONTENT", "LATE_EVENT"]


def played(carrier: str, *messages: bytes) -> list[Event]:
    """What messages of `parts` become, given as their bytes."""
    adapter = ProtoAdapter(check_options({**PARTS, "carrier": carrier}, ProtoOptions, "options"), 1 << 20)
    return replay(adapter.decoder(ASKED), [WRITERS[carrier](messages)])


@pytest.mark.parametrize("carrier", ["frames_u32", "connect", "grpc_web"])
def test_a_response_may_begin_with_messages_that_the_schema_does_not_know(carrier: str) -> None:
    end = answer("parts", {"parts": [{"text": "a"}], "ended": {"fully": {}}})
    found = played(carrier, b"\xfa\x7c\x00", b"\xf2\x7c\x00", end)
    assert (fold(found).text, rules(found)) == ("a", ["SCHEMA_OUTDATED"] * 2)


@pytest.mark.parametrize("carrier", ["frames_u32", "connect", "grpc_web"])
def test_a_response_of_such_messages_alone_is_of_another_type(carrier: str) -> None:
    with pytest.raises(BackendError, match="another type") as failed:
        played(carrier, b"\xfa\x7c\x00", b"\xf2\x7c\x00")
    assert failed.value.code == "upstream_invalid_event"
    with pytest.raises(BackendError) as failed:
        played(carrier, b"\xfa\x7c\x00", answer("parts", {"counts": {}}))
    assert "another type" not in str(failed.value)


def test_what_a_message_says_beside_the_end_is_no_late_content() -> None:
    read = [PARTS["read"][4], *PARTS["read"][:4]]
    entry = {**PARTS, "read": read}
    end = {"parts": [{"text": "a"}], "ended": {"fully": {}}}
    found = events("parts", entry, end, {"ended": {"fully": {}}}, carrier="connect")
    assert (fold(found).text, rules(found)) == ("a", [])


def test_a_choice_that_was_not_requested_is_told_and_dropped() -> None:
    rule = {"choice": "index", "finish": {"at": "reason"}}
    found = deltas(
        rule,
        {"content": b64("a")},
        {"index": 1, "content": b64("b"), "reason": "stop"},
        {"index": 2, "content": b64("b")},
        {"content": b64("c"), "reason": "length"},
    )
    assert (fold(found).text, finish_of(found), rules(found)) == ("ac", ("length", "length"), ["OTHER_CHOICE"])


def test_what_follows_the_end_is_told_and_dropped() -> None:
    end = {"soFar": "a", "ending": "ENDING_DONE"}
    found = events("talk", TALK, end, {"soFar": "ab"}, {**end, "soFar": "ab"})
    assert fold(found).text == "a"
    assert {event.rule for event in found if isinstance(event, Notice)} == {"LATE_CONTENT", "LATE_EVENT"}


def test_tokens_may_be_counted_behind_the_end() -> None:
    found = events(
        "parts", PARTS, {"parts": [{"text": "a"}], "ended": {"tooLong": {}}}, {"counts": {"input": 1, "output": 2}}
    )
    assert [type(event) for event in found][-2:] == [Finish, UsageReport]


@pytest.mark.parametrize(("carrier", "ends"), [("grpc_web", "status"), ("connect", "status"), ("frames_u32", "close")])
def test_the_carrier_may_tell_the_end(carrier: str, ends: str) -> None:
    entry = {**TALK, "ends": ends, "read": [{"text": "so_far"}]}
    found = events("talk", entry, {"soFar": "a"}, {"soFar": "b"}, carrier=carrier)
    assert finish_of(found) == ("stop", None) and fold(found).text == "ab"


def test_a_carriers_end_is_no_end_where_the_mapping_expects_one() -> None:
    with pytest.raises(BackendError) as failed:
        events("talk", TALK, {"soFar": "a"}, carrier="grpc_web")
    assert (failed.value.code, failed.value.events[-1]) == ("upstream_stream_truncated", TextDelta("a"))


@pytest.mark.parametrize("reason", ["crash", "fully"])
def test_an_error_is_judged_before_all_else(reason: str) -> None:
    crash = {"parts": [{"text": "a"}], "ended": {"crash": {"reason": "context length exceeded"}}}
    if reason == "fully":
        assert fold(events("parts", PARTS, {**crash, "ended": {"fully": {}}})).text == "a"
        return
    with pytest.raises(BackendError) as failed:
        events("parts", PARTS, crash)
    assert (failed.value.status, failed.value.code, failed.value.events) == (400, "context_length_exceeded", ())


@pytest.mark.parametrize("counts", [Counts(), Counts(prompt=1 << 70)])
def test_counts_of_which_none_is_possible_make_no_report(counts: Counts) -> None:
    assert counts.report() is None
    assert Counts(prompt=3, completion=1 << 70).report() == UsageReport(prompt_tokens=3)


# Where one call stands beside a text, and its parts in a message.
CALL: Entry = {"name": "message.function_call.name", "arguments": "message.function_call.arguments"}
LOOK: dict[str, Any] = {"message": {"function_call": {"name": "look", "arguments": '{"at": 1}'}}}


def single(read: list[Entry], *alternatives: dict[str, Any]) -> list[Event]:
    """What answers with these alternatives become."""
    finish: Entry = {"each": "alternatives", "finish": {"at": "finish_reason"}}
    messages = [{"alternatives": [one]} for one in (*alternatives, {"finish_reason": "stop"})]
    return events("single", {**SINGLE, "read": [*read, finish]}, *messages, carrier="frames_u32")


def called(found: list[Event]) -> list[tuple[str, str]]:
    """The calls, in a response without any that are dropped."""
    assert "CALL_EMPTY" not in rules(found)
    return [(one.name, one.arguments) for one in fold(found).calls]


def test_a_message_of_a_call_that_is_not_there_is_no_call() -> None:
    rule: Entry = {"each": "alternatives", "text": "message.content", "call": CALL}
    found = single([rule], {"message": {"content": "Hi"}}, LOOK, {"index": 0})
    assert fold(found).text == "Hi" and called(found) == [("look", '{"at": 1}')]


def test_a_part_without_a_call_has_no_arguments_in_a_struct() -> None:
    call: Entry = {"id": "call.id", "name": "call.name", "arguments": "call.fields"}
    entry = {**PARTS, "read": [{"each": "parts", "text": "text", "call": call}, *PARTS["read"][-2:]]}
    parts = [{"text": "Hi"}, {"call": {"id": "c", "name": "look", "fields": {"at": 1}}}]
    found = events("parts", entry, {"parts": parts}, {"ended": {"fully": {}}})
    assert fold(found).text == "Hi" and called(found) == [("look", '{"at":1}')]


def test_a_call_in_a_message_of_its_own_needs_a_name() -> None:
    rule: Entry = {"each": "alternatives", "text": "message.content", "call": CALL}
    for broken in ({}, {"arguments": "{}"}):
        with pytest.raises(BackendError) as failed:
            single([rule], {"message": {"function_call": broken}})
        assert failed.value.code == "upstream_invalid_tool_call"


def test_an_item_without_the_message_of_its_call_is_no_call() -> None:
    call: Entry = {"each": "alternatives", **CALL}
    found = single([{"each": "alternatives", "text": "message.content"}, {"call": call}], {"index": 0}, LOOK)
    assert called(found) == [("look", '{"at": 1}')]


def test_a_call_without_a_message_of_its_own_is_one_if_anything_is_said_of_it() -> None:
    rule: Entry = {"text": "content", "call": {"name": "reason", "arguments": "thinking"}}
    found = deltas({**rule, "finish": {"when": {"index": 9}, "reason": "stop"}}, {"content": b64("Hi")}, {"index": 9})
    assert fold(found).text == "Hi" and not called(found)
    with pytest.raises(BackendError) as failed:
        deltas({**rule, "finish": {"when": {"index": 9}, "reason": "stop"}}, {"thinking": "{}"}, {"index": 9})
    assert failed.value.code == "upstream_invalid_tool_call"


@pytest.mark.parametrize("value", ["null", "absent"])
def test_a_call_that_a_document_lacks_is_none(value: str) -> None:
    said = '{"text": "Hi", "call": null}' if value == "null" else '{"text": "Hi"}'
    rule: Entry = {
        "each": "alternatives",
        "json": "message.content",
        "text": "text",
        "call": {"name": "call.name", "arguments": "call.arguments"},
    }
    asked = '{"call": {"name": "look", "arguments": {"at": 1}}}'
    found = single([rule], {"message": {"content": said}}, {"message": {"content": asked}})
    assert fold(found).text == "Hi" and called(found) == [("look", '{"at":1}')]
