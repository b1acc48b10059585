"""Defines the trial request of a template: a conversation with every kind of turn, of which nothing may get lost."""

from typing import Final

from adapters.proto.backend.mapping_error import mapping_error
from gateway.core.conversation import (
    Conversation,
    Image,
    NamedTool,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.provider_state import with_provider_state

TRIAL_TEXT: Final = Conversation(
    (Turn("system", (Text("a rule of the system"),)), Turn("user", (Text("a question of the user"),))), model="model"
)


def check_texts(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops all text of a role. What is in the trial request is what counts."""
    for turn in trial.turns:
        texts = [block.text for block in turn.blocks if isinstance(block, Text | ToolResult)]
        if not all(text.encode() in request for text in texts):
            beside = " beside calls" if turn.calls else ""
            raise mapping_error("request", f"no field gets the text of the role {turn.role!r}{beside}")


def check_calls(request: bytes, trial: Conversation) -> None:
    """Refuses a template that drops calls. `trial` has no results, which may have the names of their calls."""
    for turn in trial.turns:
        if not all(call.name.encode() in request for call in turn.calls):
            beside = "beside" if turn.text else "without"
            raise mapping_error("request", f"no field gets the calls of a turn {beside} text")


def trial_conversation(provider: str, field: str, *, tools: bool) -> Conversation:
    """Returns a request with every kind of turn and part, each with a text of its own; without `tools` there are no
    calls of several at once, and no results."""
    state = with_provider_state(provider, {field: "c3RhdGU="})
    turns: tuple[Turn, ...] = (
        Turn("system", (Text("a rule of the system"),)),
        Turn("user", (Text("a question of the user"), Image("data:image/png;base64,aW1hZ2U="))),
        Turn(
            "assistant",
            (
                Reasoning("reason", extra=state),
                Text("a plan of the assistant"),
                ToolCall("call_1", "first_tool", "{}", state),
            ),
        ),
    )
    if tools:
        turns += (
            Turn("tool", (ToolResult("call_1", (Text("a first result"),)),)),
            Turn("assistant", (ToolCall("call_2", "second_tool", "{}"), ToolCall("call_3", "third_tool", "{}"))),
            Turn("tool", (ToolResult("call_2", (Text("a second result"),)),)),
            Turn("tool", (ToolResult("call_3", (Text("a third result"),)),)),
        )
    turns += (
        Turn("assistant", (Text("an answer of the assistant"),)),
        Turn("user", (Text("another question of the user"),)),
    )
    offered = ToolSpec("offered_tool", "description", {"type": "object"})
    return Conversation(turns, (offered,), NamedTool("offered_tool"), model="model")
