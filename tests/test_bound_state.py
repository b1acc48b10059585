"""A signed block of thinking is sent only behind what the backend received when it made the block.

Anthropic, "Preserved thinking": if the system prompt, the tools or the messages before a block have changed since it was
made, the block and all later ones are invalid, and the request is a 400. What the backend received then is what the
messages before the block give as a request of their own.
"""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from adapters.anthropic_messages import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.core.policy import LoopGuard, Policy, RecentToolResults
from gateway.core.profiles import PROFILES
from gateway.dialects.base import RequestHead
from gateway.dialects.document import read_document
from gateway.exchange import Exchange
from gateway.registry import load_dialect
from tests.fuzz.counted import count_work, growth

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


def exchange(messages: list[Message], policy: Policy, model: str = "m") -> Exchange:
    body = {"model": model, "max_tokens": 9, "system": "Be brief.", "tools": TOOLS, "messages": messages}
    conversation = DIALECT.decode(read_document(json.dumps(body).encode()), RequestHead("/v1/messages")).conversation
    return Exchange(ADAPTER, conversation, policy)


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
    for number in range(draw(st.integers(2, 12))):
        content = [thinking(number)] if draw(st.integers(0, 3)) else []
        if draw(st.integers(0, 3)):
            names = [f"c{number}{one}" if draw(st.integers(0, 9)) else "c00" for one in range(draw(st.integers(1, 2)))]
            messages.append(said("assistant", *content, *[call(name, draw(st.integers(0, 1))) for name in names]))
            kept = [name for name in names if draw(st.integers(0, 9))]
            owed += [name for name in names if name not in kept]
            answers = [result(name, draw(st.sampled_from(["seen", "x" * 40]))) for name in kept]
            if owed and draw(st.booleans()):
                answers.append(result(owed.pop(0), "late"))
            if not draw(st.integers(0, 9)):
                answers.append(result(draw(st.sampled_from(["lost", "c00", "c51", "c70"])), "whose?"))
            if answers:
                messages.append(said("user", *answers))
        else:
            messages += [said("assistant", *content, text(f"answer {number}")), said("user", text(f"question {number}"))]
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
