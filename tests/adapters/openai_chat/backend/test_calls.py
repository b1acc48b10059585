import json

import pytest

from adapters.openai_chat.backend.decoder import ChatDecoder
from gateway.core.conversation import Json
from gateway.core.errors import BackendProtocolError
from gateway.core.events import Event, ToolCallStart
from gateway.core.notices import Notice
from gateway.framing.json_text import decode_json
from gateway.testing.events import fold
from gateway.testing.replay import cuttings, replay
from gateway.wires import call_tracker
from tests.adapters.openai_chat.backend.wires import call, chunk, completion, entry, sse

Calls = list[tuple[str, str, str]]


def read(wire: bytes) -> list[Event]:
    return replay(ChatDecoder(1 << 20, 5), [wire])


def calls_of(events: list[Event]) -> Calls:
    return [(call.id, call.name, call.arguments) for call in fold(events).calls]


def rules_of(events: list[Event]) -> list[str]:
    return [event.rule for event in events if isinstance(event, Notice)]


HABITS: dict[str, tuple[list[Json], Calls, list[str]]] = {
    "as published": (
        [call(0, "a", "f", ""), call(0, arguments="{"), call(0, arguments="}"), call(1, "b", "g", "{}")],
        [("a", "f", "{}"), ("b", "g", "{}")],
        [],
    ),
    "interleaved": (
        [
            call(0, "a", "f"),
            call(1, "b", "g"),
            call(0, arguments='{"x":'),
            call(1, arguments="{}"),
            call(0, arguments="1}"),
        ],
        [("a", "f", '{"x":1}'), ("b", "g", "{}")],
        [],
    ),
    "numbered from one, with a gap": (
        [call(1, "a", "f", "{}"), call(4, "b", "g", "{}")],
        [("a", "f", "{}"), ("b", "g", "{}")],
        [],
    ),
    "nothing behind complete arguments, then another call": (
        [call(0, None, "f", "{}"), call(0, arguments=""), call(0, None, "f", "{}")],
        [("call_5_0", "f", "{}"), ("call_5_1", "f", "{}")],
        ["CALL_ID_ADDED", "CALL_ID_ADDED"],
    ),
    "no index, one call": (
        [call(None, "a", "f", "{"), call(arguments="}")],
        [("a", "f", "{}")],
        [],
    ),
    "no index, two calls": (
        [call(None, "a", "f", "{}"), call(None, "b", "g", "{"), call(arguments="}")],
        [("a", "f", "{}"), ("b", "g", "{}")],
        [],
    ),
    "no index, no id, two calls": (
        [call(None, None, "f", "{}"), call(None, None, "g", '{"a":1}')],
        [("call_5_0", "f", "{}"), ("call_5_1", "g", '{"a":1}')],
        ["CALL_ID_ADDED", "CALL_ID_ADDED"],
    ),
    "id and name with every piece": (
        [call(0, "a", "f", '{"x"'), call(0, "a", "f", ":1"), call(0, "a", "f", "}"), call(0, "a", "f", "")],
        [("a", "f", '{"x":1}')],
        [],
    ),
    "every call at index zero": (
        [call(0, "a", "f", "{}"), call(0, "b", "f", "{}"), call(0, "c", "g", "{}")],
        [("a", "f", "{}"), ("b", "f", "{}"), ("c", "g", "{}")],
        [],
    ),
    "every call at index zero without ids": (
        [call(0, None, "f", '{"n":1}'), call(0, None, "f", '{"n":2}'), call(0, None, "g", "{}")],
        [("call_5_0", "f", '{"n":1}'), ("call_5_1", "f", '{"n":2}'), ("call_5_2", "g", "{}")],
        ["CALL_ID_ADDED"] * 3,
    ),
    "one id for all calls": (
        [call(0, "a", "f", "{}"), call(1, "a", "g", "{"), call(1, arguments="}")],
        [("a", "f", "{}"), ("a_5_1", "g", "{}")],
        ["CALL_ID_RENAMED"],
    ),
    "one id for all calls, in every piece": (
        [call(0, "a", "f", "{"), call(1, "a", "g", "{"), call(0, "a", None, "}"), call(1, "a", None, "}")],
        [("a", "f", "{}"), ("a_5_1", "g", "{}")],
        ["CALL_ID_RENAMED"],
    ),
    "one id for three calls": (
        [call(0, "a", "f", "{}"), call(1, "a", "f", "{}"), call(2, "a", "f", "{}")],
        [("a", "f", "{}"), ("a_5_1", "f", "{}"), ("a_5_2", "f", "{}")],
        ["CALL_ID_RENAMED", "CALL_ID_RENAMED"],
    ),
    "id after the name": (
        [call(0, None, "f"), call(0, "a", None, "{}")],
        [("a", "f", "{}")],
        [],
    ),
    "id never": (
        [call(0, None, "f", "{"), call(0, arguments='"x"'), call(0, arguments=":1}")],
        [("call_5_0", "f", '{"x":1}')],
        ["CALL_ID_ADDED"],
    ),
    "empty id, then the id": (
        [call(0, "", "f"), call(0, "a", "", "{}")],
        [("a", "f", "{}")],
        [],
    ),
    "empty name later": (
        [call(0, "a", "f", ""), call(0, "", "", "{}")],
        [("a", "f", "{}")],
        [],
    ),
    "name after the id": (
        [call(0, "a"), call(0, None, "f"), call(0, arguments="{}")],
        [("a", "f", "{}")],
        [],
    ),
    "the same name again before the arguments are whole": (
        [call(0, None, "f", '{"x":{}'), call(0, None, "f", "{}"), call(0, arguments="}")],
        [("call_5_0", "f", '{"x":{}{}}')],
        ["CALL_ID_ADDED"],
    ),
    "an id like a derived one": (
        [call(0, "call_5_1", "f", "{}"), call(1, None, "g", "{}")],
        [("call_5_1", "f", "{}"), ("call_5_2", "g", "{}")],
        ["CALL_ID_ADDED"],
    ),
    "arguments as an object": ([call(0, "a", "f", {"x": "é"})], [("a", "f", '{"x":"é"}')], []),
    "no arguments": ([call(0, "a", "f")], [("a", "f", "{}")], []),
    "an empty stub": ([call(0), call(1, "a", "f", "{}")], [("a", "f", "{}")], ["CALL_EMPTY"]),
    "the deprecated field": (
        [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": "{}"}}],
        [("call_5_0", "f", "{}")],
        ["CALL_ID_ADDED"],
    ),
    "broken arguments pass untouched": ([call(0, "a", "f", '{"x": ')], [("a", "f", '{"x": ')], []),
    "several in one chunk": (
        [{"tool_calls": [entry(0, "a", "f", "{}"), entry(1, "b", "g", "{}")]}],
        [("a", "f", "{}"), ("b", "g", "{}")],
        [],
    ),
}


@pytest.mark.parametrize("habit", HABITS)
def test_calls_are_told_apart(habit: str) -> None:
    deltas, expected, rules = HABITS[habit]
    wire = sse(*(chunk(delta) for delta in deltas), chunk(finish="tool_calls"))
    for cutting in cuttings(wire, 1):
        events = replay(ChatDecoder(1 << 20, 5), cutting)
        assert calls_of(events) == expected
        assert rules_of(events) == rules


STUB: Json = {"type": "function", "function": {"name": "", "arguments": None}}
LOST: dict[str, list[Json]] = {
    "an id and nothing else": [call(0, "a")],
    "arguments and nothing else": [call(0, arguments="{}")],
    "a field that nobody knows and nothing else": [{"tool_calls": [{"index": 0, "signature": "s"}]}],
    "an id beside text": [{"content": "I look.", "tool_calls": [entry(0, "a")]}],
    "an id beside a call": [call(0, "a", "f", "{}"), call(1, "b")],
    "nothing at all": [call(0)],
    "empty fields": [{"tool_calls": [STUB]}],
    "an empty object": [{"tool_calls": [{}]}],
    "the deprecated field, empty": [{"function_call": {}}],
    "the deprecated field without a name": [{"function_call": {"name": "", "arguments": "{}"}}],
}


@pytest.mark.parametrize("finish", ["tool_calls", "stop"])
@pytest.mark.parametrize("case", LOST)
def test_a_call_without_a_function_is_an_error(case: str, finish: str) -> None:
    wire = sse(*(chunk(delta) for delta in LOST[case]), chunk(finish=finish))
    for cutting in cuttings(wire, 1):
        with pytest.raises(BackendProtocolError) as caught:
            replay(ChatDecoder(1 << 20, 5), cutting)
        assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")


@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
@pytest.mark.parametrize("case", LOST)
def test_a_call_without_a_function_is_an_error_in_a_whole_answer(case: str, finish: str | None) -> None:
    message: dict[str, Json] = {"role": "assistant", "content": None}
    calls: list[Json] = []
    for delta in LOST[case]:
        assert isinstance(delta, dict)
        message |= delta
        made = delta.get("tool_calls")
        calls += made if isinstance(made, list) else []
    message |= {"tool_calls": calls} if calls else {}
    with pytest.raises(BackendProtocolError) as caught:
        read(completion(message, finish))
    assert (caught.value.status, caught.value.code) == (502, "upstream_invalid_tool_call")


def test_an_empty_stub_beside_text_is_left_out() -> None:
    events = read(sse(chunk({"content": "Hi", "tool_calls": [STUB]}), chunk({"content": "!"}), chunk(finish="stop")))
    assert (fold(events).text, rules_of(events)) == ("Hi!", ["CALL_EMPTY"])


def test_unknown_fields_of_a_call_stay_with_it() -> None:
    signed: Json = {**entry(0, "a", "f", "{}"), "extra_content": {"google": {"thought_signature": "s"}}}
    (made,) = fold(read(sse(chunk({"tool_calls": [signed]}), chunk(finish="stop")))).calls
    assert made.extra == {"extra_content": {"google": {"thought_signature": "s"}}}


def test_a_late_unknown_field_is_reported() -> None:
    late: Json = {"tool_calls": [{"index": 0, "signature": "s"}]}
    events = read(sse(chunk(call(0, "a", "f", "{}")), chunk(late), chunk(finish="stop")))
    assert rules_of(events) == ["CALL_FIELD_LATE"]


_EMPTY_CUSTOM: list[Json] = [None, {}, {"name": "", "input": ""}, {"name": None, "input": None}]


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("custom", _EMPTY_CUSTOM)
def test_a_function_beside_an_empty_custom_body_is_a_function(custom: Json, typed: bool) -> None:
    """As Snowflake writes calls: every entry has both bodies, in a stream each delta."""
    kind: dict[str, Json] = {"type": "function"} if typed else {}
    bodies: list[dict[str, Json]] = [{"name": "f", "arguments": ""}, {"arguments": '{"n":'}, {"arguments": "1}"}]
    entries: list[dict[str, Json]] = [{"index": 0, **kind, "function": body, "custom": custom} for body in bodies]
    deltas = [chunk({"tool_calls": [{**entry, **({"id": "a"} if n == 0 else {})}]}) for n, entry in enumerate(entries)]
    whole = completion({"tool_calls": [{**entries[0], "id": "a", "function": {"name": "f", "arguments": '{"n":1}'}}]})
    for wire in (sse(*deltas, chunk(finish="tool_calls")), whole):
        events = read(wire)
        (made,) = fold(events).calls
        assert (made.id, made.name, made.arguments, made.extra) == ("a", "f", '{"n":1}', {})
        assert not [event for event in events if isinstance(event, Notice)]


def test_a_custom_body_with_content_beside_an_empty_function_is_a_custom_call() -> None:
    custom: Json = {"index": 0, "id": "a", "function": None, "custom": {"name": "f", "input": "free"}}
    (made,) = fold(read(sse(chunk({"tool_calls": [custom]}), chunk(finish="tool_calls")))).calls
    assert (made.name, made.arguments, made.extra) == ("f", "free", {"type": "custom"})


def test_custom_calls_keep_their_type() -> None:
    custom: Json = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "free text"}}
    (made,) = fold(read(sse(chunk({"tool_calls": [custom]}), chunk(finish="stop")))).calls
    assert (made.name, made.arguments, made.extra) == ("f", "free text", {"type": "custom"})


def test_calls_of_a_whole_answer_are_separate_whatever_their_ids() -> None:
    entries: Json = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"function": {"name": "f", "arguments": {"n": 1}}},
    ]
    events = read(completion({"content": None, "tool_calls": entries}, "tool_calls"))
    assert calls_of(events) == [("a", "f", "{}"), ("a_5_1", "f", "{}"), ("call_5_2", "f", '{"n":1}')]


@pytest.mark.parametrize(
    "delta",
    [
        {"tool_calls": {}},
        {"tool_calls": ["f"]},
        {"tool_calls": [{"function": "f"}]},
        {"tool_calls": [{"index": 0, "id": "a", "function": {"arguments": "{}"}}]},
    ],
    ids=json.dumps,
)
def test_calls_that_cannot_be_made_fail_the_stream(delta: Json) -> None:
    with pytest.raises(BackendProtocolError):
        read(sse(chunk(delta), chunk(finish="tool_calls")))


@pytest.mark.parametrize("piece", ['{"n":1}', "{}", '{"'])
@pytest.mark.parametrize("begin", ["{", '{"text":"', "{}"])
def test_arguments_are_judged_by_work_that_grows_with_their_size(
    begin: str, piece: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def judge(data: bytes) -> Json:
        judged.append(len(data))
        return decode_json(data)

    monkeypatch.setattr(call_tracker, "decode_json", judge)
    tracker = call_tracker.CallTracker(1)
    fed = 0
    for arguments in (begin, *(piece for _ in range(5000))):
        tracker.feed([entry(0, "a", "f", arguments)])
        fed += len(arguments)
    assert sum(judged) <= 100 * fed


def test_long_arguments_are_not_read_again_with_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[int] = []

    def judge(data: bytes) -> Json:
        judged.append(len(data))
        return decode_json(data)

    monkeypatch.setattr(call_tracker, "decode_json", judge)
    tracker = call_tracker.CallTracker(1)
    fed = 0
    for arguments in ('{"text":"', *["{" + "x" * 300_000 + "}"] * 10):
        tracker.feed([entry(0, "a", "f", arguments)])
        fed += len(arguments)
    assert 0 < sum(judged) <= fed


class _Looked(dict[str, call_tracker._Call]):
    times = 0

    def __contains__(self, key: object) -> bool:
        self.times += 1
        return super().__contains__(key)


def test_an_id_is_derived_without_trying_all_that_are_taken() -> None:
    tracker = call_tracker.CallTracker(1)
    tracker._by_id = looked = _Looked()
    n = 500
    tracker.feed([entry(at, f"a_1_{n + at}", "f", "{}") for at in range(n)])
    events = tracker.feed([entry(n + at, "a", "f", "{}") for at in range(n + 1)])
    derived = [event.id for event in events if isinstance(event, ToolCallStart)]
    assert derived == ["a", *(f"a_1_{2 * n + at}" for at in range(n))]
    assert looked.times < 10 * n


def test_calls_of_a_message_in_place_of_the_delta() -> None:
    message: Json = {"tool_calls": [entry(name="a", arguments="{}"), entry(name="b", arguments="{}")]}
    made: Json = {**chunk(), "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    calls = fold(replay(ChatDecoder(1 << 16, 1), [sse(made)])).calls
    assert [call.name for call in calls] == ["a", "b"]
