"""Tests that the measured requests of agents are what agents send: whole, distinct, and longer with each turn."""

import base64
import json
from itertools import pairwise
from typing import Any

import pytest

from adapters.openai_chat.client.decode import decode
from bench.agent_body import SIZES, TURNS, agent_body
from gateway.core.policy import Policy
from gateway.history.prepare import prepare

LARGE = [name for name, size in SIZES.items() if size.size]


def request(size: str, conversation: int = 1, turn: int = 0, stream: bool = False) -> Any:
    return json.loads(agent_body(size, "any", stream=stream).request(conversation, turn))


@pytest.mark.parametrize("size", LARGE)
def test_a_first_request_has_its_size_and_its_tools(size: str) -> None:
    length = len(agent_body(size, "any", stream=False).request(1, 0))
    assert length == pytest.approx(SIZES[size].size, rel=0.1)
    assert len(request(size)["tools"]) == SIZES[size].tools


@pytest.mark.parametrize("size", LARGE)
def test_it_has_single_calls_parallel_calls_results_and_pictures(size: str) -> None:
    messages = request(size)["messages"]
    calls = [message["tool_calls"] for message in messages if message.get("tool_calls")]
    assert {len(made) for made in calls} == {1, 3}
    made = [call["id"] for group in calls for call in group]
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == made
    assert len(set(made)) == len(made)
    pictures = [part for message in messages if message["role"] == "user" for part in message["content"][1:2]]
    urls = [part["image_url"]["url"] for part in pictures if isinstance(part, dict)]
    assert urls and len(set(urls)) == len(urls)
    assert all(base64.b64decode(url.partition(",")[2]).startswith(b"\x89PNG") for url in urls)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("turn", [0, TURNS])
def test_nothing_has_to_be_repaired(size: str, turn: int) -> None:
    conversation = decode(agent_body(size, "any", stream=False).request(1, turn))
    prepared = prepare(conversation, Policy(max_tool_results=None, max_history_messages=None))
    assert [notice for notice in prepared.notices if notice.action != "seen"] == []


def test_each_turn_is_the_one_before_with_a_call_and_its_result() -> None:
    turns = [request("60", turn=turn)["messages"] for turn in range(TURNS + 1)]
    for before, after in pairwise(turns):
        assert after[: len(before)] == before
        assert [message["role"] for message in after[len(before) :]] == ["assistant", "tool"]
    assert request("60", turn=TURNS)["tools"] == request("60")["tools"]


def test_two_conversations_share_the_system_prompt_and_the_tools_and_no_other_text() -> None:
    one, other = request("500", 1), request("500", 2)
    assert one["tools"] == other["tools"]
    same = [message for message in one["messages"] if message in other["messages"]]
    assert [message["role"] for message in same] == ["system"]


def test_they_differ_only_in_whether_they_are_streamed() -> None:
    assert {**request("60", stream=True), "stream": False} == request("60")
