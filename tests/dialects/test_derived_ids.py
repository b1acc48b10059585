from gateway.core.conversation import Text, ToolCall, ToolResult, Turn
from gateway.dialects.derived_ids import derive_ids


def calling(index: int, *calls: ToolCall) -> Turn:
    return Turn("assistant", calls, index=index)


def answering(index: int, name: str, call_id: str = "") -> Turn:
    return Turn("tool", (ToolResult(call_id, (Text("r"),), id_derived=not call_id),), name, index)


def call(name: str, id: str = "") -> ToolCall:
    return ToolCall(id, name, "{}", id_derived=not id)


def ids(*turns: Turn) -> list[str]:
    derived = derive_ids(turns).turns
    return [block.id if isinstance(block, ToolCall) else block.call_id for turn in derived for block in turn.blocks]  # type: ignore[union-attr]  # the turns have nothing else


def test_every_call_of_a_turn_gets_an_id_of_its_own() -> None:
    assert ids(calling(3, call("f"), call("g", "mine"), call("f"))) == [
        "call_function_3",
        "mine",
        "call_function_3_1",
    ]


def test_results_answer_the_calls_of_their_function_in_order() -> None:
    turns = (calling(0, call("f"), call("g"), call("f")), answering(1, "g"), answering(2, "f"), answering(3, "f"))
    assert ids(*turns)[3:] == ["call_function_0_1", "call_function_0", "call_function_0_2"]


def test_an_id_that_the_client_uses_is_not_derived() -> None:
    turns = (calling(0, call("f"), call("f")), calling(1, call("g", "call_function_0_1")))
    assert ids(*turns)[:2] == ["call_function_0", "call_function_0_1_"]


def test_a_call_that_a_later_result_of_the_batch_names_is_not_open() -> None:
    turns = (calling(0, call("f", "a"), call("f", "b")), answering(1, "f"), answering(2, "f", "a"))
    assert ids(*turns)[2:] == ["b", "a"]


def test_an_id_that_was_answered_in_an_earlier_round_is_open_in_the_next() -> None:
    rounds = (calling(0, call("f", "a")), answering(1, "f", "a"), calling(2, call("f", "a")), answering(3, "f"))
    assert ids(*rounds) == ["a", "a", "a", "a"]


def test_two_calls_with_one_id_are_both_open() -> None:
    turns = (calling(0, call("f", "a"), call("f", "a")), answering(1, "f"), answering(2, "f"))
    assert ids(*turns)[2:] == ["a", "a"]


def test_a_result_that_names_no_call_answers_none() -> None:
    assert ids(calling(0, call("f")), answering(1, "g")) == ["call_function_0", "call_function_1"]


def test_results_that_answer_a_call_with_an_id_are_told() -> None:
    derived = derive_ids((calling(0, call("f", "k")), answering(1, "f"), answering(2, "g")))
    assert derived.turns[1].results[0].call_id == "k"
    assert derived.mixed == (1,)


def test_turns_without_calls_stay_the_same() -> None:
    turn = Turn("user", (Text("hi"),), index=0)
    assert derive_ids((turn,)).turns[0] is turn
