"""A signed block of thinking is sent only behind what the backend received when it made the block.

Anthropic, "Preserved thinking": if the system prompt, the tools or the messages before a block have changed since it
was made, the block and all later ones are invalid, and the request is a 400. What the backend received then is what the
messages before the block give as a request of their own.
"""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.notices import Notice
from gateway.core.policy import LoopGuard, Policy, RecentToolResults
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.registry import load_dialect
from tests.fuzz.counted import Work, count_work, growth
from tests.tiers import sample

ADAPTER: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)
DIALECT: Final = load_dialect("anthropic_messages")
TOOLS: Final = [{"name": "f", "input_schema": {"type": "object", "properties": {}}}]

Message = dict[str, Any]


def thinking(number: int) -> Message:
    return {"type": "thinking", "thinking": f"thought {number}", "signature": f"S{number}"}


def call(name: str, value: int = 0) -> Message:
    return {"type": "tool_use", "id": name, "name": "f", "input": {"at": value}}


def result(name: str, text: str = "seen") -> Message:
    return {"type": "tool_result", "tool_use_id": name, "content": text}


def said(role: str, *content: Message) -> Message:
    return {"role": role, "content": list(content)}


def text(words: str) -> Message:
    return {"type": "text", "text": words}


def decoded(messages: list[Message], model: str, **fields: Any) -> Conversation:
    body = {"model": model, "max_tokens": 9, "system": "Be brief.", "tools": TOOLS, "messages": messages, **fields}
    return DIALECT.decode(read_document(json.dumps(body).encode()), RequestHead("/v1/messages")).conversation


def exchange(messages: list[Message], policy: Policy, model: str = "m") -> Exchange:
    return Exchange(ADAPTER, decoded(messages, model), policy)


def sent(messages: list[Message], policy: Policy, model: str = "m") -> Any:
    return json.loads(exchange(messages, policy, model).request.body)


def signed(body: Any) -> dict[str, int]:
    """The signatures in the messages, with the positions of these."""
    return {
        block["signature"]: at
        for at, message in enumerate(body["messages"])
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    }


def signatures(messages: list[Message]) -> dict[str, int]:
    return signed({"messages": messages})


def before(messages: list[Message], at: int) -> list[Message]:
    """The messages before the answer that a message of the assistant is a part of."""
    while at and messages[at - 1]["role"] == "assistant":
        at -= 1
    return messages[:at]


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Rounds of calls, talk and system messages. Results may be late, early, doubled, missing, or of no call."""
    messages = [said("user", text("Begin."))]
    owed: list[str] = []
    chance = st.integers(0, 9)
    for number in range(draw(st.integers(2, 12))):
        content = [thinking(number)] if draw(st.integers(0, 3)) else []
        if draw(st.integers(0, 3)):
            names = [f"c{number}{one}" if draw(chance) else "c00" for one in range(draw(st.integers(1, 2)))]
            messages.append(said("assistant", *content, *[call(name, draw(st.integers(0, 1))) for name in names]))
            kept = [name for name in names if draw(chance)]
            owed += [name for name in names if name not in kept]
            answers = [result(name, draw(st.sampled_from(["seen", "x" * 40]))) for name in kept]
            if owed and draw(chance) < 5:
                answers.append(result(owed.pop(0), "late"))
            if not draw(chance):
                answers.append(result(draw(st.sampled_from(["lost", "c00", "c51", "c70"])), "whose?"))
            if answers:
                messages.append(said("user", *answers))
        else:
            messages += [
                said("assistant", *content, text(f"answer {number}")),
                said("user", text(f"question {number}")),
            ]
        if not draw(st.integers(0, 6)):
            messages.append({"role": "system", "content": f"notice {number}"})
    return messages


POLICIES: Final = st.builds(
    Policy,
    max_tool_results=st.none() | st.integers(0, 6),
    max_history_messages=st.none() | st.integers(0, 12),
    max_tool_result_chars=st.none() | st.just(10),
    trim_step=st.integers(1, 4),
    tool_result_overflow=st.sampled_from(["elide", "drop"]),
    orphaned_results=st.sampled_from(["note", "drop"]),
    profile=st.sampled_from([PROFILES["none"], msgspec.structs.replace(PROFILES["anthropic"], first_turn="user")]),
    loop_guard=st.builds(LoopGuard, repeats=st.integers(1, 3), action=st.sampled_from(["notice", "nudge", "no_tools"])),
    recent_tool_results=st.builds(RecentToolResults, enabled=st.sampled_from([False, False, False, True])),
)


@settings(max_examples=settings().max_examples * 2)
@given(messages=histories(), policy=POLICIES)
def test_the_plan_of_the_messages_before_a_block_gives_what_stands_before_it(
    messages: list[Message], policy: Policy
) -> None:
    body = sent(messages, policy)
    places, kept = signatures(messages), signed(body)
    event("all kept" if places.keys() == kept.keys() else "some kept" if kept else "none kept")
    for signature, at in kept.items():
        made = sent(before(messages, places[signature]), policy)
        assert (made.get("system"), made["messages"]) == (body.get("system"), before(body["messages"], at)), signature


def loop(rounds: int, words: str = "seen") -> list[Message]:
    """A running loop, with thinking before each call."""
    messages = [said("user", text("Begin."))]
    for number in range(rounds):
        messages += [said("assistant", thinking(number), call(f"c{number}", number))]
        messages += [said("user", result(f"c{number}", words))]
    return messages


def rules(messages: list[Message], policy: Policy, model: str = "m") -> list[str]:
    notices = exchange(messages, policy, model).notices
    return [notice.rule for notice in notices if notice.stage == "state" or notice.rule == "BLOCK_BINDING_ADDED"]


def test_blocks_made_after_the_last_step_of_a_limit_are_kept() -> None:
    policy = msgspec.structs.replace(UNLIMITED, max_tool_results=10, trim_step=5)
    assert [
        sorted(signed(sent(loop(rounds), policy)), key=lambda one: int(one[1:])) for rounds in (10, 11, 13, 15)
    ] == [
        [f"S{number}" for number in range(10)],
        # The limit has moved: what stands before the first elided result is as it was.
        ["S0"],
        ["S0", "S11", "S12"],
        ["S0", "S11", "S12", "S13", "S14"],
    ]
    assert rules(loop(10), policy) == []
    assert rules(loop(11), policy) == ["STATE_PREFIX_CHANGED"]


EDITS: Final = {
    "an orphan": (UNLIMITED, said("user", result("lost"))),
    "a result that is cut": (msgspec.structs.replace(UNLIMITED, max_tool_result_chars=10), said("user", text("x"))),
    "a repeated id": (UNLIMITED, said("user", text("x"))),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_that_is_the_same_in_each_request_keeps_them(name: str) -> None:
    policy, added = EDITS[name]
    messages = loop(4, "x" * 50)
    messages = [messages[0], added, *messages[1:]]
    if name == "a repeated id":
        messages = json.loads(json.dumps(messages).replace('"c1"', '"c0"'))
    made = exchange(messages, policy)
    assert {"TOOL_ORPHAN", "TOOL_RESULT_SHORTENED", "CALL_ID_DUPLICATE"} & {notice.rule for notice in made.notices}
    assert [*signed(json.loads(made.request.body))] == ["S0", "S1", "S2", "S3"]


def test_blocks_between_a_call_and_its_late_result_are_left_out() -> None:
    messages = loop(4)
    late = messages[2]["content"].pop()
    messages[2]["content"].append(text("Wait."))
    messages[6]["content"].append(late)
    assert [*signed(sent(messages, UNLIMITED))] == ["S0", "S3"]
    before_it_came = messages[:6]
    assert [*signed(sent(before_it_came, UNLIMITED))] == ["S0", "S1", "S2"]


def test_a_block_that_answers_a_nudge_is_left_out() -> None:
    messages = json.loads(json.dumps(loop(5)).replace('"at": 1', '"at": 0').replace('"at": 2', '"at": 7'))
    policy = msgspec.structs.replace(UNLIMITED, loop_guard=LoopGuard(repeats=2, action="nudge"))
    assert [*signed(sent(messages, policy))] == ["S0", "S1", "S3", "S4"]


def test_recent_results_that_name_other_tools_change_nothing() -> None:
    shown = RecentToolResults(enabled=True, allowed_tool_names=("other",))
    policy = msgspec.structs.replace(UNLIMITED, recent_tool_results=shown)
    assert sent(loop(3), policy) == sent(loop(3), UNLIMITED)
    assert signed(sent(loop(3), policy)) != {}


def test_recent_results_in_the_system_prompt_leave_none() -> None:
    policy = msgspec.structs.replace(UNLIMITED, recent_tool_results=RecentToolResults(enabled=True))
    assert signed(sent(loop(3), policy)) == {}


OLDER: Final = ["claude-sonnet-4-5", "claude-opus-4-8", "us.anthropic.claude-opus-5-v1:0", "claude-fable-5"]
BINDING: Final = ["m", "claude-fable-5-1", "anthropic/claude-opus-5-5", "claude-haiku-5-5-20261001", "claude-opus-6"]


@pytest.mark.parametrize("model", [*OLDER, *BINDING])
def test_only_models_that_bind_thinking_to_its_prefix_lose_it(model: str) -> None:
    policy = msgspec.structs.replace(UNLIMITED, max_tool_results=2, trim_step=1)
    kept = [*signed(sent(loop(4), policy, model))]
    assert kept == (["S0", "S1", "S2", "S3"] if model in OLDER else ["S0"])


def test_other_providers_do_not_bind_it() -> None:
    policy = msgspec.structs.replace(UNLIMITED, max_tool_results=2, trim_step=1, profile=PROFILES["minimax"])
    assert len(signed(sent(loop(4), policy))) == 4


class Summary:
    """Puts one turn in the place of the first three."""

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        first, *rest = conversation.turns
        stands_in = Turn("user", (Text("So far: much."),), synthesized=True, summary=True)
        turns = (first, stands_in, *rest[3:])
        return msgspec.structs.replace(conversation, turns=turns), ()


@pytest.mark.parametrize("fields", [{}, {"thinking": {"type": "adaptive", "display": "omitted"}}])
def test_blocks_behind_a_summary_are_left_out_or_dropped_by_the_api(fields: dict[str, Any]) -> None:
    """No request says when the summary came."""
    made = Exchange(ADAPTER, decoded(loop(4), "m", **fields), UNLIMITED, Summary())
    assert signed(json.loads(made.request.body)) == {}
    made = Exchange(ADAPTER, decoded(loop(4), "claude-fable-5-1", **fields), UNLIMITED, Summary())
    body = json.loads(made.request.body)
    assert [*signed(body)] == ["S1", "S2", "S3"]
    binding = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert body["thinking"] == fields.get("thinking", {"type": "adaptive"}) | binding
    assert made.request.headers["anthropic-beta"] == "thinking-binding-controls-2026-08-01"
    assert "BLOCK_BINDING_ADDED" in {notice.rule for notice in made.notices}


def test_the_states_of_a_chat_client_are_left_out_in_the_same_way() -> None:
    chat = load_dialect("openai_chat")
    messages: list[Message] = [{"role": "user", "content": "Begin."}]
    for number in range(4):
        function = {"name": "f", "arguments": "{}"}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": f"thought {number}",
                "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
                "extra_content": {"anthropic": {"signature": f"S{number}"}},
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "seen"})
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    data = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    conversation = chat.decode(read_document(data), RequestHead("/v1/chat/completions")).conversation
    policy = msgspec.structs.replace(UNLIMITED, max_tool_results=2, trim_step=1)
    assert [*signed(json.loads(Exchange(ADAPTER, conversation, policy).request.body))] == ["S0"]
    assert len(signed(json.loads(Exchange(ADAPTER, conversation, UNLIMITED).request.body))) == 4


@sample()
@pytest.mark.parametrize(
    "policy",
    [
        UNLIMITED,
        msgspec.structs.replace(UNLIMITED, max_tool_results=10),
        msgspec.structs.replace(UNLIMITED, max_history_messages=20, trim_step=4),
        msgspec.structs.replace(UNLIMITED, loop_guard=LoopGuard(repeats=2, action="nudge")),
    ],
    ids=["no limit", "results", "messages", "nudge"],
)
@pytest.mark.parametrize("broken", [False, True])
def test_the_work_grows_with_the_history(policy: Policy, broken: bool) -> None:
    def work(size: int) -> Work:
        messages = loop(size)
        if broken:
            messages[2]["content"] = [result("lost")]
        conversation = decoded(messages, "m")
        return count_work(lambda: Exchange(ADAPTER, conversation, policy))

    work(10)
    assert growth(work(200), work(800)) < 6
