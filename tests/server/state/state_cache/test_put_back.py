"""What the state cache puts back into a history: which state, of which turn, and where it cannot tell."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import pytest

from tests.server.backend import END, HEAD, Connection, chunk
from tests.server.state.state_cache.scene import (
    ASK,
    LOST,
    PLAIN,
    THOUGHT,
    Message,
    Scene,
    Start,
    call,
    dropped,
    results,
    said,
)


async def test_a_client_that_keeps_the_state_is_left_alone(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, {**THOUGHT, "reasoning_content": "Mine."}, *results("call_1"))
    assert (message["reasoning_content"], rules) == ("Mine.", ["STATE_PRESENT"])
    assert await scene.outcomes("present") == 1


async def test_dropped_reasoning_is_put_back(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert message == {**THOUGHT, "reasoning_content": "Rome it is."}
    assert rules == ["STATE_RESTORED"]
    assert (await scene.outcomes("kept"), await scene.outcomes("restored")) == (1, 1)


@pytest.mark.parametrize("field", [{}, {"reasoning_content": ""}])
async def test_an_empty_reasoning_that_the_provider_requires_is_put_back(scene: Scene, field: Message) -> None:
    await scene.answered(said(call(), content="", **field))
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert (message["reasoning_content"], rules) == ("", ["STATE_RESTORED"])


async def test_a_turn_without_calls_needs_no_reasoning(scene: Scene) -> None:
    await scene.answered(said(content="Hi.", reasoning_content="A greeting."))
    ((message,), rules) = await scene.sent(ASK, said(content="Hi."), ASK)
    assert (message, rules) == (said(content="Hi."), [])
    assert await scene.outcomes("kept") == 0


EDITS: Final[Mapping[str, tuple[Sequence[Message], bool]]] = {
    "its text": ((ASK, {**dropped(THOUGHT), "content": "I look it up."}), True),
    "the ids": ((ASK, said(call("other"), content="")), True),
    "the question": (({**ASK, "content": "What about Rome?"}, dropped(THOUGHT)), True),
    "the ids and the question": (({**ASK, "content": "What about Rome?"}, said(call("other"), content="")), False),
    "the arguments": ((ASK, said(call(arguments='{"city": "Paris"}'), content="")), False),
    "the number of calls": ((ASK, said(call(), call("call_2"), content="")), False),
}


@pytest.mark.parametrize("edit", EDITS)
async def test_what_a_client_may_edit(scene: Scene, edit: str) -> None:
    messages, found = EDITS[edit]
    await scene.answered(THOUGHT)
    ids = [one["id"] for one in messages[1]["tool_calls"]]
    ((message,), rules) = await scene.sent(*messages, *results(*ids))
    assert rules == (["STATE_RESTORED"] if found else [LOST])
    assert message.get("reasoning_content") == ("Rome it is." if found else None)


async def test_what_trim_removes_takes_its_state_along(start: Start) -> None:
    scene = await start(models={"m": {"backend": "m", "max_history_messages": 2, "trim_step": 1}})
    await scene.answered(THOUGHT)
    history = [
        ASK,
        dropped(THOUGHT),
        *results("call_1"),
        said(content="Sunny."),
        ASK,
        said(content="Still sunny."),
        ASK,
    ]
    messages, rules = await scene.sent(*history)
    assert messages == [said(content="Still sunny.")]
    assert rules == ["STATE_RESTORED"]


async def test_parallel_calls_get_the_state_of_the_first(scene: Scene) -> None:
    signed = call("a", extra_content={"google": {"thought_signature": "sig"}})
    await scene.answered(said(signed, call("b", '{"city": "Paris"}'), content=""), model="g")
    bare = said(call("a"), call("b", '{"city": "Paris"}'), content="")
    ((message,), rules) = await scene.sent(ASK, bare, *results("a", "b"), model="g")
    assert message["tool_calls"] == [signed, call("b", '{"city": "Paris"}')]
    assert rules == ["STATE_RESTORED"]


async def test_details_of_reasoning_are_put_back_unmodified(scene: Scene) -> None:
    details = [{"type": "reasoning.encrypted", "data": "x", "index": 0}]
    await scene.answered(said(content="Hi.", reasoning_details=details), model="o")
    ((message,), rules) = await scene.sent(ASK, said(content="Hi."), ASK, model="o")
    assert (message["reasoning_details"], rules) == (details, ["STATE_RESTORED"])


@pytest.mark.parametrize("profile", PLAIN)
async def test_each_provider_gets_the_reasoning_of_the_turns_that_it_wants(scene: Scene, profile: str) -> None:
    second = said(call("call_2", '{"city": "Paris"}'), content="", reasoning_content="Paris as well.")
    await scene.answered(THOUGHT, model=profile)
    history = [ASK, dropped(THOUGHT), *results("call_1"), said(content="Sunny."), {**ASK, "content": "And in Paris?"}]
    await scene.answered(second, *history, model=profile)
    messages, rules = await scene.sent(*history, dropped(second), *results("call_2"), model=profile)
    sent = [message.get("reasoning_content") for message in messages]
    assert sent == ["Rome it is." if PLAIN[profile] > 1 else None, None, "Paris as well."]
    assert rules == ["STATE_RESTORED"] * PLAIN[profile]


async def test_no_more_is_put_into_a_request_than_one_chat_may_have(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = said(call("call_2"), content="", reasoning_content="Once more.")
    await scene.answered(THOUGHT)
    await scene.answered(second, ASK, THOUGHT, *results("call_1"))
    monkeypatch.setattr("gateway.server.state.state_cache.MOST_CHAT", 40)
    messages, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), dropped(second), *results("call_2"))
    assert [message.get("reasoning_content") for message in messages] == [None, "Once more."]
    assert rules == [LOST, "STATE_RESTORED"]


@pytest.mark.full
async def test_details_that_come_in_pieces_return_whole(scene: Scene) -> None:
    async def streaming(connection: Connection) -> None:
        pieces = [{"type": "reasoning.text", "index": 0, "text": text} for text in ("I ", "greet.")]
        deltas: list[Message] = [{"reasoning_details": [piece]} for piece in pieces]
        deltas += [
            {"reasoning_details": [{"type": "reasoning.text", "index": 0, "signature": "s"}]},
            {"content": "Hi."},
        ]
        chunks = [{"id": "c", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        frames = [chunk(b"data: " + msgspec.json.encode(one) + b"\n\n") for one in chunks]
        await connection.send(HEAD, *frames, chunk(b"data: [DONE]\n\n"), END)

    scene.provider.script = streaming
    asked = {"model": "o", "messages": [ASK], "stream": True}
    assert (await scene.gateway.client.post("/v1/chat/completions", json=asked)).text.endswith("data: [DONE]\n\n")
    scene.provider.script = None
    ((message,), _) = await scene.sent(ASK, said(content="Hi."), ASK, model="o")
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "text": "I greet.", "signature": "s"}
    ]


async def test_repeated_ids_are_told_apart_by_what_stands_before_them(scene: Scene) -> None:
    paris = {**ASK, "content": "And again?"}
    await scene.answered(THOUGHT)
    again = {**THOUGHT, "reasoning_content": "Once more."}
    history = [ASK, dropped(THOUGHT), *results("call_1"), said(content="Sunny."), paris]
    await scene.answered(again, *history)
    (messages, rules) = await scene.sent(*history, dropped(again), *results("call_1"))
    assert [one.get("reasoning_content") for one in messages] == ["Rome it is.", None, "Once more."]
    assert rules == ["STATE_RESTORED", "STATE_RESTORED"]


async def test_answers_that_look_the_same_are_ambiguous_and_neither_is_put_back(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    await scene.answered({**THOUGHT, "reasoning_content": "Other thoughts."})
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert ("reasoning_content" in message, rules) == (False, ["STATE_AMBIGUOUS"])


async def test_the_same_answer_twice_is_not_ambiguous(scene: Scene) -> None:
    for _ in range(2):
        await scene.answered(THOUGHT)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == ["STATE_RESTORED"]
