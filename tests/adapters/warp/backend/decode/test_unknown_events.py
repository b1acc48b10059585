from adapters.warp.multi_agent_pb2 import ClientAction, Message, ResponseEvent
from gateway.core.events import (
    Finish,
    ResponseStart,
    TextDelta,
)
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    DONE,
    PRELUDE,
    acts,
    add,
    append,
    decode,
    frame,
    heard,
    init,
    mcp_call,
    more,
    output,
    reasoning,
    rules,
)


def unknown_event(number: int) -> bytes:
    return frame(ResponseEvent.FromString(bytes([(number << 3) | 2, 1, 65])))


def test_unknown_variants_are_ignored_and_noted_once_per_kind() -> None:
    action = ClientAction.FromString(b"\x9a\x06\x00")
    message = Message.FromString(b"\x0a\x02m9\xd2\x05\x00")
    strange = unknown_event(15) + unknown_event(15) + acts(action, action, add(message), add(message))
    events = decode(PRELUDE + acts(add(output("a"))) + strange + acts(more("b")) + DONE)
    assert fold(events).text == "ab"
    assert rules(events) == ["UNKNOWN_VARIANT"] * 3


def test_a_finish_with_a_reason_that_nobody_knows_is_told() -> None:
    strange = frame(ResponseEvent.FromString(b"\x1a\x02\x7a\x00"))
    events = decode(PRELUDE + acts(add(output("a"))) + strange)
    assert rules(events) == ["FINISH_REASON_UNKNOWN"]
    assert heard(events)[-1] == Finish("stop")


def test_nothing_is_appended_to_a_message_of_an_unknown_kind() -> None:
    strange = Message.FromString(b"\x0a\x02m9\xd2\x05\x00")
    piece = append(reasoning("x", "m9"), "novelty.text")
    events = decode(PRELUDE + acts(add(strange), piece, add(output("a"))) + DONE)
    assert (fold(events).reasoning, fold(events).text) == ("", "a")
    assert rules(events) == ["UNKNOWN_VARIANT", "UNKNOWN_MASK_PATH"]


def test_a_second_init_does_not_rename_the_conversation() -> None:
    wire = init("c1") + init("c2") + acts(add(mcp_call())) + DONE
    (call,) = fold(decode(wire, encoding="structured")).calls
    assert "c1" in str(call.extra) and "c2" not in str(call.extra)


def test_kinds_that_are_not_content_are_noted_once() -> None:
    found = Message(id="w1", web_search={})
    suggestion = ClientAction(show_suggestions={})
    events = decode(PRELUDE + acts(add(found), suggestion, suggestion, add(output("a"))) + DONE)
    assert (fold(events).text, rules(events)) == ("a", ["MESSAGE_IGNORED", "ACTION_IGNORED"])


def test_an_empty_event_means_nothing() -> None:
    assert decode(
        PRELUDE + b"data:\n\n" + frame(ResponseEvent()) + b"data: [DONE]\n\n" + acts(add(output("a"))) + DONE
    ) == [
        ResponseStart("r1"),
        TextDelta("a"),
        Finish("stop", "done"),
    ]


def test_another_model_than_the_one_asked_for_is_noted() -> None:
    used = Message(id="u1", model_used={"model_id": "small", "is_fallback": True})
    same = Message(id="u2", model_used={"model_id": "big"})
    assert rules(decode(PRELUDE + acts(add(used, same, output("a"))) + DONE)) == ["MODEL_FALLBACK"]
