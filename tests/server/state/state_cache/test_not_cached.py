"""Answers whose state is not cached: those that were cut or are too large, and all where the cache is off."""

from typing import Any

import pytest

from gateway.server.state.state_cache import MOST_ENTRY
from tests.server.state.state_cache.scene import ASK, LOST, THOUGHT, Scene, call, dropped, results, said


@pytest.mark.parametrize("finish", ["length", "content_filter"])
async def test_an_answer_that_was_cut_leaves_nothing(scene: Scene, finish: str) -> None:
    scene.provider.finish = finish
    await scene.answered(THOUGHT)
    scene.provider.finish = ""
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]
    assert await scene.outcomes("kept") == 0


async def test_a_state_that_is_too_large_is_not_kept(scene: Scene) -> None:
    await scene.answered({**THOUGHT, "reasoning_content": "x" * MOST_ENTRY})
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert (rules, await scene.outcomes("oversize")) == ([LOST], 1)


@pytest.mark.parametrize("off", ["model", "header"])
async def test_off_nothing_is_kept_and_nothing_is_put_back(scene: Scene, off: str) -> None:
    how: dict[str, Any] = {"model": "off"} if off == "model" else {"headers": {"x-dragoman-state": "off"}}
    await scene.answered(THOUGHT, **how)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]
    await scene.answered({**THOUGHT, "tool_calls": [call("call_9")]})
    ((message,), rules) = await scene.sent(ASK, said(call("call_9"), content=""), *results("call_9"), **how)
    assert ("reasoning_content" in message, rules) == (False, [])
