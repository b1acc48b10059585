"""Estimates the token counts of a response when the backend reports none.

A token counts as four bytes of UTF-8, which is about right for English prose (OpenAI's help page on tokens: "one token
is approximately 4 characters"). Code and JSON have more tokens than that, other scripts more or fewer, depending on the
model. Images, files and the text that a template adds around the messages are not counted.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.events import Event, ReasoningDelta, TextDelta, ToolCallDelta, ToolCallStart, UsageReport
from gateway.core.notices import Notice

BYTES_PER_TOKEN: Final = 4
_TOLD: Final = Notice(
    "backend",
    "added",
    "USAGE_ESTIMATED",
    "the backend reported no token counts; they are estimated at four bytes a token",
    level="debug",
)


def answer_size(events: Iterable[Event]) -> int:
    """Returns the size of the content of these events in bytes."""
    return sum(map(_size, _spoken(events)))


def prompt_size(conversation: Conversation) -> int:
    """The bytes of what a conversation says."""
    return sum(map(_size, _prompt_texts(conversation)))


def prompt_tokens(conversation: Conversation) -> int:
    """Returns the estimated tokens of what a conversation says, tools among it."""
    return _tokens(prompt_size(conversation))


def estimate_usage(prompt_bytes: int, answer_bytes: int) -> tuple[Event, Event]:
    """The counts of an answer to a prompt, of these sizes, marked as estimated, and the notice of them."""
    prompt, completion = _tokens(prompt_bytes), _tokens(answer_bytes)
    return _TOLD, UsageReport(prompt, completion, prompt + completion, estimated=True)


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _spoken(events: Iterable[Event]) -> Iterator[str]:
    for event in events:
        if type(event) is TextDelta or type(event) is ReasoningDelta:
            yield event.text
        elif type(event) is ToolCallDelta:
            yield event.arguments
        elif type(event) is ToolCallStart:
            yield event.name


def _prompt_texts(conversation: Conversation) -> Iterator[str]:
    for turn in conversation.turns:
        yield from _turn_texts(turn)
    for tool in conversation.tools:
        yield tool.name
        yield tool.description
        yield msgspec.json.encode(tool.parameters).decode()


def _turn_texts(turn: Turn) -> Iterator[str]:
    for block in turn.blocks:
        if isinstance(block, Text | Reasoning):
            yield block.text
        elif isinstance(block, ToolCall):
            yield block.name
            yield block.arguments
        elif isinstance(block, ToolResult):
            yield block.text
