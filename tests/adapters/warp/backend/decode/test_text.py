import pytest

from adapters.warp.backend.decode import tasks
from adapters.warp.multi_agent_pb2 import ClientAction, Message
from gateway.core.errors import BackendProtocolError
from gateway.core.events import (
    Finish,
    TextDelta,
)
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    STREAMED,
    acts,
    add,
    append,
    decode,
    decoder,
    more,
    output,
    rules,
    update,
)


def test_text_streams_as_it_grows() -> None:
    machine = decoder()
    machine.feed(PRELUDE)
    assert machine.feed(acts(add(output("He")))) == [TextDelta("He")]
    assert machine.feed(acts(more("llo"))) == [TextDelta("llo")]


@pytest.mark.parametrize("rollback", ["buffer", "stream"])
def test_whether_a_transaction_holds_its_text_is_a_setting(rollback: str) -> None:
    machine = decoder(STREAMED, rollback=rollback)
    machine.feed(PRELUDE + acts(BEGIN))
    early = machine.feed(acts(add(output("He")))) + machine.feed(acts(more("llo")))
    late = machine.feed(acts(COMMIT))
    shown, held = ([TextDelta("He"), TextDelta("llo")], []) if rollback == "stream" else ([], [TextDelta("Hello")])
    assert (early, late) == (shown, held)


@pytest.mark.parametrize(
    ("text", "shown", "noted"),
    [
        ("Hello world", "Hello world", []),
        ("Hello", "Hello", []),
        ("Hell", "Hello", ["SHOWN_TEXT_REPLACED"]),
        ("Goodbye", "Hello", ["SHOWN_TEXT_REPLACED"]),
    ],
)
def test_a_replaced_text_is_not_said_twice(text: str, shown: str, noted: list[str]) -> None:
    events = decode(PRELUDE + acts(add(output("Hello")), update(output(text), "agent_output.text")) + DONE)
    assert fold(events).text == shown
    assert rules(events) == noted


def test_held_text_may_be_replaced_freely() -> None:
    events = decode(PRELUDE + acts(BEGIN, add(output("wrong")), update(output("right"), "agent_output"), COMMIT) + DONE)
    assert (fold(events).text, rules(events)) == ("right", [])


def test_an_update_of_an_unknown_message_adds_it_whole() -> None:
    events = decode(PRELUDE + acts(update(output("new"), "server_message_data")) + DONE)
    assert fold(events).text == "new"


def test_an_update_of_a_message_from_the_sent_history_says_nothing_new() -> None:
    old = update(output("from an earlier answer", "t1-1"), "server_message_data")
    events = decode(PRELUDE + acts(old, add(output("new"))) + DONE, encoding="structured")
    assert fold(events).text == "new"


def test_a_message_that_comes_twice_is_said_once() -> None:
    events = decode(PRELUDE + acts(add(output("one")), add(output("one two"))) + DONE)
    assert fold(events).text == "one two"


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        (append(output("x"), "agent_output.mood"), "UNKNOWN_MASK_PATH"),
        (append(output("x", "nobody"), "agent_output.text"), "ACTION_SKIPPED"),
        (append(output("x"), "agent_output"), "ACTION_SKIPPED"),
        (append(output("x"), "timestamp.seconds.deep"), "UNKNOWN_MASK_PATH"),
        (append(output("x")), None),
    ],
)
def test_what_an_append_cannot_mean_is_skipped(action: ClientAction, rule: str | None) -> None:
    events = decode(PRELUDE + acts(add(output("a")), action, more("b")) + DONE)
    assert fold(events).text == "ab"
    assert rules(events) == ([rule] if rule else [])


def test_an_update_through_lists_of_unequal_length_is_skipped() -> None:
    seen = Message(id="q2", user_query={"context": {"images": [{"mime_type": "a"}]}})
    none = Message(id="q2", user_query={"context": {}})
    wire = PRELUDE + acts(add(seen), update(none, "user_query.context.images.mime_type"), add(output("a"))) + DONE
    assert rules(decode(wire)) == ["ACTION_SKIPPED"]


def test_an_append_of_nothing_changes_nothing() -> None:
    assert fold(decode(PRELUDE + acts(add(output("a")), more(""), more("b")) + DONE)).text == "ab"


def test_a_mask_may_name_several_paths() -> None:
    piece = Message(id="m1", agent_output={"text": "b"}, server_message_data="y")
    events = decode(PRELUDE + acts(add(output("a")), append(piece, "server_message_data", "agent_output.text")) + DONE)
    assert fold(events).text == "ab"


def test_several_messages_are_said_in_their_order() -> None:
    wire = PRELUDE + acts(BEGIN, add(output("a")), add(output("c", "m2")), more("b"), COMMIT) + DONE
    assert fold(decode(wire)).text == "abc"


def test_long_unicode_text_arrives_unchanged() -> None:
    text = "\U0001f468\u200d\U0001f469\u200d\U0001f467 日本 e\u0301 \u2028 \x00 " * 4000
    pieces = [text[start : start + 999] for start in range(0, len(text), 999)]
    wire = PRELUDE + acts(add(output(""))) + b"".join(acts(more(piece)) for piece in pieces) + DONE
    assert fold(decode(wire)).text == text


def test_an_answer_is_not_rewritten_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MOST_REWRITTEN", 20_000)
    rewrite = update(Message(id="m1", server_message_data="x"), "server_message_data")
    assert isinstance(decode(PRELUDE + acts(add(output("x" * 1_000)), *[rewrite] * 4) + DONE)[-1], Finish)
    with pytest.raises(BackendProtocolError) as caught:
        decode(PRELUDE + acts(add(output("x" * 1_000)), *[rewrite] * 40) + DONE)
    assert caught.value.code == "upstream_response_too_large"
