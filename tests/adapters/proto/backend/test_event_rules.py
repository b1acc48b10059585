"""Rules for a service of events: errors at any depth, counts that are sums, and wrappers read as their values."""

from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import BackendError
from gateway.core.events import Event, UsageReport
from gateway.core.notices import Notice
from gateway.testing.events import fold
from tests.adapters.proto.backend.mappings import SET, Entry
from tests.adapters.proto.backend.services import b64
from tests.adapters.proto.backend.test_mistakes import refusal
from tests.adapters.proto.backend.test_read_rules import events

EVENTS: Final[Entry] = {
    "schema": {"set": SET},
    "carrier": "grpc_web",
    "method": "acme.events.v1.Events/Answer",
    "ends": "status",
    "request": {"text": "$prompt"},
}
# The same service with turns and tools.
CALLING: Final[Entry] = {
    **EVENTS,
    "request": {
        "lines": {
            "$each": "$turns",
            "by": "$role",
            "system": {"text": "$text"},
            "user": {"text": "$text"},
            "assistant": {"text": "$text", "calls": {"$each": "$calls", "as": {"$json": ["$name", "$arguments"]}}},
            "tool": {"text": "$text"},
        },
        "tools": {"$each": "$tools", "as": {"$json": ["$name", "$parameters"]}},
    },
}
TEXT: Final[Entry] = {"each": "events", "text": "text"}
HELLO: Final[dict[str, Json]] = {"text": "Hello"}


def read(rules: list[Entry], *messages: dict[str, Any], entry: Entry = EVENTS) -> list[Event]:
    """What these messages become by these rules. (Any: protobuf's JSON.)"""
    return events("events", {**entry, "read": rules}, *messages, carrier="grpc_web")


def failed(rules: list[Entry], *messages: dict[str, Any]) -> BackendError:
    with pytest.raises(BackendError) as found:
        read(rules, *messages)
    return found.value


def refused(*rules: Entry, entry: Entry = EVENTS) -> str:
    return refusal({**entry, "read": [*rules]})


FAILED: Final[Entry] = {"when": {"failure": "set"}, "message": "failure.text"}
# Every place at which an error may stand for a failure among the events.
PLACES: Final[dict[str, Entry]] = {
    "each": {"each": "events", "error": FAILED},
    "each beside text": {"each": "events", "text": "text", "error": FAILED},
    "inner rule": {"each": "events", "rules": [{"text": "text"}, {"error": FAILED}]},
    "inner rule with a condition": {"each": "events", "rules": [{"when": {"failure": "set"}, "error": FAILED}]},
    "inner rule of a rule without items": {"rules": [{"each": "events", "error": FAILED}]},
}


@pytest.mark.parametrize("place", PLACES)
def test_an_error_may_stand_anywhere_and_is_judged_before_all_else(place: str) -> None:
    rules = [TEXT, PLACES[place]] if "text" not in PLACES[place] else [PLACES[place]]
    if place == "inner rule":
        rules = [PLACES[place]]
    assert fold(read(rules, {"events": [HELLO]}, {"events": [HELLO]})).text == "HelloHello"
    error = failed(rules, {"events": [HELLO]}, {"events": [HELLO, {"failure": {"text": "prompt is too long"}}]})
    assert (error.status, error.code) == (400, "context_length_exceeded")
    # That of the first message alone.
    assert fold(error.events).text == "Hello"


def test_the_condition_of_a_rule_is_one_of_its_error_too() -> None:
    rules = [TEXT, {"when": {"over": True}, "error": {"when": {"why": "set"}, "message": "why"}}]
    assert fold(read(rules, {"events": [HELLO], "why": "x"})).text == "Hello"
    assert failed(rules, {"events": [HELLO], "why": "x", "over": True}).code == "upstream_error"


def test_an_error_of_a_rule_with_a_choice_is_that_of_the_first_one() -> None:
    rules = [{"each": "events", "choice": "choice", "text": "text", "error": FAILED}]
    found = read(rules, {"events": [HELLO, {"choice": 1, "failure": {"text": "x"}}]})
    assert fold(found).text == "Hello"
    assert [event.rule for event in found if isinstance(event, Notice)] == ["OTHER_CHOICE"]
    assert failed(rules, {"events": [{"failure": {"text": "x"}}]}).code == "upstream_error"


def test_an_error_may_stand_in_the_items_of_a_document() -> None:
    below: Entry = {"each": "steps", "error": {"when": {"bad": "set"}, "message": "bad.why", "code": "bad.code"}}
    rules = [TEXT, {"json": "document", "rules": [below]}]
    assert fold(read(rules, {"events": [HELLO], "document": '{"steps": [{}]}'})).text == "Hello"
    document = '{"steps": [{}, {"bad": {"why": "slower", "code": 429}}]}'
    error = failed(rules, {"events": [HELLO], "document": document})
    assert (error.status, error.message, error.events) == (429, "slower", ())


def test_errors_come_in_the_order_of_the_rules_and_of_the_items() -> None:
    first, second = [{"failure": {"text": word, "number": 429}} for word in ("one", "two")]
    rule: Entry = {"each": "events", "error": {**FAILED, "status": "failure.number"}}
    assert failed([TEXT, rule], {"events": [first, second]}).message == "one"


RATE_LIMIT: Final = (429, "rate_limit_exceeded")
UNSAID: Final = (502, "upstream_error")


@pytest.mark.parametrize(
    ("path", "failure", "told"),
    [
        ("failure.code", {"code": "CODE_RESOURCE_EXHAUSTED"}, RATE_LIMIT),
        ("failure.code", {"code": "CODE_UNAVAILABLE"}, (503, "upstream_overloaded")),
        ("failure.code", {"code": "CODE_TOO_LARGE"}, (413, "request_too_large")),
        ("failure.code", {"code": "CODE_BORED"}, UNSAID),
        ("failure.code", {"code": 77}, UNSAID),
        ("failure.code", {"code": 503}, (503, "upstream_overloaded")),
        ("failure.code", {}, UNSAID),
        ("failure.number", {"number": 8}, RATE_LIMIT),
        ("failure.number", {"number": 429}, RATE_LIMIT),
        ("failure.number", {"number": 5}, (404, "model_not_found")),
        ("failure.number", {"number": 15}, (502, "upstream_invalid_response")),
        ("failure.number", {"number": 200}, UNSAID),
        ("failure.number", {"number": 17}, UNSAID),
        ("failure.number", {"number": -1}, UNSAID),
        ("failure.wrapped", {"wrapped": 504}, (504, "upstream_timeout")),
        ("failure.word", {"word": "RESOURCE_EXHAUSTED"}, RATE_LIMIT),
        ("failure.word", {"word": "resource_exhausted"}, RATE_LIMIT),
        ("failure.word", {"word": "ResourceExhausted"}, RATE_LIMIT),
        ("failure.word", {"word": "CANCELLED"}, UNSAID),
        ("failure.word", {"word": "ERROR_TOO_MANY_REQUESTS"}, RATE_LIMIT),
        ("failure.word", {"word": "Too Many Requests"}, RATE_LIMIT),
        ("failure.word", {"word": "too-many-requests"}, RATE_LIMIT),
        ("failure.word", {"word": "StatusCode.RESOURCE_EXHAUSTED"}, RATE_LIMIT),
        ("failure.word", {"word": "HTTP 429"}, RATE_LIMIT),
        ("failure.word", {"word": "REQUEST_ENTITY_TOO_LARGE"}, (413, "request_too_large")),
        ("failure.word", {"word": "PayloadTooLarge"}, (413, "request_too_large")),
        ("failure.word", {"word": "429"}, RATE_LIMIT),
        ("failure.word", {"word": "8"}, RATE_LIMIT),
        ("failure.word", {"word": "tired"}, UNSAID),
        ("failure.word", {"word": "X_" * 40 + "NOT_FOUND"}, UNSAID),
        (503, {}, (503, "upstream_overloaded")),
    ],
)
def test_the_status_of_an_error_is_a_number_or_a_path(
    path: str | int, failure: dict[str, Json], told: tuple[int, str]
) -> None:
    """Source of the codes and their names: gRPC, "Status codes and their use in gRPC"; Connect, "Error codes"."""
    rules = [TEXT, {"each": "events", "error": {**FAILED, "status": path}}]
    error = failed(rules, {"events": [{"failure": {"text": "not now", **failure}}]})
    assert (error.status, error.code) == told
    assert error.words == "not now"


def test_the_status_in_a_document_is_a_number_or_a_text() -> None:
    rules = [TEXT, {"json": "document", "error": {"when": {"error": "set"}, "status": "error.code"}}]
    for code in ("429", '"429"', '"RESOURCE_EXHAUSTED"', "8"):
        assert failed(rules, {"document": f'{{"error": {{"code": {code}}}}}'}).status == 429
    assert failed(rules, {"document": '{"error": {"code": true}}'}).status == 502


def test_a_code_of_the_backend_is_kept_beside_the_status() -> None:
    rule: Entry = {**FAILED, "status": "failure.number", "code": "failure.word"}
    failure: dict[str, Json] = {"text": "no credit", "word": "insufficient_quota"}
    for number in (8, 429):
        error = failed(
            [TEXT, {"each": "events", "error": rule}], {"events": [{"failure": {**failure, "number": number}}]}
        )
        assert (error.status, error.code) == (429, "insufficient_quota")
    failure = {"text": "bad", "word": "bad_image"}
    for number in (3, 400):
        error = failed(
            [TEXT, {"each": "events", "error": rule}], {"events": [{"failure": {**failure, "number": number}}]}
        )
        assert (error.status, error.code, error.message) == (400, "bad_image", "bad")


@pytest.mark.parametrize("number", [8, 429])
def test_a_code_of_digits_is_no_word_for_the_client(number: int) -> None:
    codes: list[Entry] = [{"code": "failure.word"}, {"status": "failure.number", "code": "failure.number"}]
    for rule in codes:
        failure: dict[str, Json] = {"text": "slower", "word": str(number), "number": number}
        error = failed([TEXT, {"each": "events", "error": {**FAILED, **rule}}], {"events": [{"failure": failure}]})
        assert (error.status, error.code) in (RATE_LIMIT, UNSAID)


def test_a_status_of_another_method_is_told_as_the_operators_matter() -> None:
    rules = [TEXT, {"each": "events", "error": {**FAILED, "status": "failure.number"}}]
    error = failed(rules, {"events": [{"failure": {"number": 12}}]})
    assert (error.status, [notice.rule for notice in error.notices]) == (502, ["METHOD_UNIMPLEMENTED"])


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        ({"prompt": ["counts.fresh", "counts.kept", "counts.written"]}, {"fresh": 3, "kept": "40", "written": 2}),
        ({"prompt": ["counts.fresh", "counts.kept"]}, {"kept": "45"}),
        ({"prompt": ["counts.fresh", "counts.thought"]}, {"fresh": 45, "thought": "-4"}),
        ({"prompt": ["counts.kept"]}, {"kept": "45"}),
    ],
)
def test_a_count_may_be_the_sum_of_several(usage: Entry, counts: dict[str, Json]) -> None:
    rules = [TEXT, {"usage": {**usage, "completion": "counts.thought", "cached": "counts.kept"}}]
    found = read(rules, {"events": [HELLO], "counts": {"thought": "5", **counts}})
    cached = int(str(counts.get("kept", 0)))
    extra: dict[str, Json] = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
    completion = 5 if "thought" not in counts else None
    assert fold(found).usage == UsageReport(45, completion, 50 if completion else None, extra=extra)


def test_sums_of_several_messages_are_combined_as_the_mode_says() -> None:
    usage = {"completion": ["counts.fresh", "counts.written"], "mode": "sum"}
    messages = [{"events": [HELLO], "counts": {"fresh": 1, "written": written}} for written in (2, 4)]
    assert fold(read([TEXT, {"usage": usage}], *messages)).usage == UsageReport(None, 8)


def test_text_in_wrappers_is_read_as_its_value() -> None:
    assert (
        fold(read([{"each": "events", "text": "said"}], {"events": [{"said": "a"}, {"said": ""}, {"said": "b"}]})).text
        == "ab"
    )
    assert fold(read([{"text": "so_far", "mode": "total"}], {"soFar": "a"}, {}, {"soFar": "ab"})).text == "ab"
    halves = [{"raw": b64("a")}, {"raw": "w6k="[:4]}]
    assert fold(read([{"text": "raw"}], *halves)).text == "aé"
    assert fold(read([{"text": 'labels["said"]'}], {"labels": {"said": "a"}}, {"labels": {"other": "b"}})).text == "a"
    assert fold(read([{"text": "notes[0]"}], {"notes": ["a", "b"]}, {})).text == "a"
    # The path to the value itself stays one.
    assert fold(read([{"text": "so_far.value", "reasoning": "why.value"}], {"soFar": "a", "why": "b"})).text == "a"


@pytest.mark.parametrize(
    ("at", "last", "ended"), [("over", {"over": True}, "stop"), ("why", {"why": "length"}, "length")]
)
def test_the_end_in_a_wrapper_is_read_as_its_value(at: str, last: dict[str, Json], ended: str) -> None:
    rules = [TEXT, {"finish": {"at": at, "none": ["running"]} if at == "why" else {"at": at}}]
    quiet: dict[str, Json] = {"over": False, "why": "running"}
    found = fold(events("events", {**EVENTS, "ends": "finish", "read": rules}, {"events": [HELLO], **quiet}, last))
    assert found.finish is not None and (found.finish.reason, found.text) == (ended, "Hello")


@pytest.mark.parametrize(
    ("when", "shown", "hidden"),
    [
        ({"over": True}, {"over": True}, {"over": False}),
        ({"over": False}, {"over": False}, {"over": True}),
        ({"why": "x"}, {"why": "x"}, {"why": "y"}),
        ({"why": "set"}, {"why": ""}, {}),
        ({"why": "unset"}, {}, {"why": ""}),
        ({"counts.kept": 7}, {"counts": {"kept": "7"}}, {"counts": {"kept": "8"}}),
        ({"counts.kept": "set"}, {"counts": {"kept": "0"}}, {"counts": {}}),
        ({"heat": 2}, {"heat": 2}, {"heat": 2.5}),
        ({"raw": "a"}, {"raw": b64("a")}, {"raw": b64("b")}),
        ({"notes[0]": "set"}, {"notes": [""]}, {}),
        ({'labels["a"]': "b"}, {"labels": {"a": "b"}}, {"labels": {"a": "c"}}),
    ],
)
def test_conditions_read_wrappers_as_their_value(when: Entry, shown: dict[str, Any], hidden: dict[str, Any]) -> None:
    rules = [{"when": when, "rules": [TEXT]}]
    found = read(rules, {"events": [{"text": "a"}], **shown}, {"events": [{"text": "b"}], **hidden})
    assert fold(found).text == "a"


def test_calls_in_wrappers_are_read_as_their_values() -> None:
    call: Entry = {"id": "call.id", "name": "call.name", "arguments": "call.arguments"}
    rules = [TEXT, {"each": "events", "when": {"call": "set"}, "call": call}]
    message = {"events": [{"call": {"id": "c1", "name": "look", "arguments": '{"at": 1}'}}, {"call": {"name": "go"}}]}
    found = fold(read(rules, message, entry=CALLING))
    assert [(one.name, one.arguments) for one in found.calls] == [("look", '{"at": 1}'), ("go", "{}")]
    pieces = {**call, "index": "call.index", "arguments": "call.piece", "mode": "delta"}
    rules = [TEXT, {"each": "events", "when": {"call": "set"}, "call": pieces}]
    parts = [{"name": "look", "piece": b64('{"at"')}, {"piece": b64(": 1}")}]
    messages = [{"events": [{"call": {"index": 1, "id": "c1", **part}}]} for part in parts]
    found = fold(read(rules, *messages, entry=CALLING))
    assert [(one.name, one.arguments) for one in found.calls] == [("look", '{"at": 1}')]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"text": "heat"}, "text: 'heat' is of google.protobuf.DoubleValue; it must be text or bytes"),
        ({"text": "over"}, "text: 'over' is of google.protobuf.BoolValue; it must be text or bytes"),
        ({"text": "notes"}, "text: 'notes' is repeated; use each"),
        (
            {"usage": {"prompt": "why"}},
            "usage.prompt: 'why' is of google.protobuf.StringValue; it must be a whole number",
        ),
        ({"usage": {"prompt": "heat"}}, "usage.prompt: 'heat' is of google.protobuf.DoubleValue; it must be a whole"),
        ({"usage": {"prompt": ["counts.fresh", "counts.kep"]}}, "usage.prompt[1]: acme.events.v1.Counts has no field"),
        ({"usage": {"prompt": []}}, "usage.prompt: name at least one path"),
        ({"finish": {"at": "heat"}}, "finish.at: 'heat' is of google.protobuf.DoubleValue; it must be an enum or text"),
        ({"finish": {"oneof": "why.x"}}, "finish.oneof: 'why' is of google.protobuf.StringValue; it must be a message"),
        ({"when": {"why": 3}, "text": "why"}, "when.why: 3 is no value of google.protobuf.StringValue"),
        ({"when": {"heat": "x"}, "text": "why"}, "when.heat: 'x' is no value of google.protobuf.DoubleValue"),
        ({"when": {"counts": 3}, "text": "why"}, "when.counts: 3 is no value of acme.events.v1.Counts"),
        (
            {"each": "events", "call": {"name": "call.name", "arguments": "call.number"}},
            "call.arguments: 'number' is of google.protobuf.Int64Value; it must be text or bytes",
        ),
        ({"each": "events", "error": {"when": {}}}, "error.when: an error needs a condition"),
        (
            {"each": "events", "error": {**FAILED, "message": "failure.txt"}},
            "error.message: acme.events.v1.Failure has",
        ),
        ({"each": "events", "error": {**FAILED, "status": 200}}, "error.status: 200 is no status of an error"),
        (
            {"each": "events", "error": {**FAILED, "status": "failure.cod"}},
            "error.status: acme.events.v1.Failure has no",
        ),
        ({"each": "events", "error": {**FAILED, "status": "failure"}}, "error.status: 'failure' is of acme.events.v1."),
        (
            {"each": "events", "error": {**FAILED, "status": "failure.mood"}},
            "error.status: no value of acme.events.v1.Mood is named after a status of gRPC or HTTP, or has",
        ),
        ({"each": "event", "error": FAILED}, "each: acme.events.v1.Batch has no field 'event'; did you mean 'events'?"),
        ({"json": "documen", "error": FAILED}, "json: acme.events.v1.Batch has no field 'documen'; did you mean"),
    ],
)
def test_a_rule_that_cannot_work_is_refused_with_its_place(rule: Entry, said: str) -> None:
    assert refused(rule).startswith(f"backends.x.read[0].{said}")


def test_an_error_in_an_inner_rule_is_refused_with_its_place() -> None:
    inner: Entry = {"each": "events", "rules": [{"error": {"when": {"failure": "on"}}}]}
    assert refused(TEXT, inner).startswith("backends.x.read[1].rules[0].error.when.failure: 'on' is no value of")
