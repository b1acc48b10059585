"""Lists the events of calls."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.demo.lab.event import LabEvent, everywhere, on
from gateway.demo.lab.model import arguments_of, with_arguments, with_calls
from gateway.demo.scripted_model.dialogue import Reply

# Bytes of an argument that no tool knows.
_HUGE: Final = 64 * 1024


def _arguments(edit: Callable[[str], str]) -> Callable[[Reply], Reply]:
    return lambda reply: with_arguments(reply, edit(arguments_of(reply)))


def _cut(text: str) -> str:
    """Cuts `.md"}`: what is left, completed, names another file that exists."""
    return text[: -len('.md"}')]


def _two_calls(second: str) -> Callable[[Reply], Reply]:
    return lambda reply: with_calls(reply, {}, {"id": second})


def _renamed(reply: Reply) -> Reply:
    return with_calls(reply, {"name": "lab_unknown_tool", "arguments": {}})


def _huge(reply: Reply) -> Reply:
    return with_calls(reply, {"arguments": {"lab_note": "x" * _HUGE, **reply.calls[0].arguments}})


def _beside_text(reply: Reply) -> Reply:
    return msgspec.structs.replace(reply, text="First I read the file.")


# What is odd or wrong in a call.
CALL_EVENTS: Final[tuple[LabEvent, ...]] = (
    LabEvent(
        "two_calls", "two calls at once", "answer", everywhere(""), _two_calls("call_lab_2"), place="call", reads=True
    ),
    LabEvent(
        "interleaved_calls",
        "pieces of two calls in turns",
        "answer",
        on(chat="interleaved", responses="interleaved", messages="interleaved"),
        _two_calls("call_lab_2"),
        place="call",
        reads=True,
        streamed=True,
    ),
    LabEvent(
        "repeated_ids",
        "two calls with one id",
        "answer",
        everywhere(""),
        _two_calls("call_lab_1"),
        place="call",
        reads=True,
    ),
    LabEvent(
        "text_before_call", "text before a call", "answer", everywhere(""), _beside_text, place="call", reads=True
    ),
    LabEvent("unknown_tool", "a call of a tool that does not exist", "answer", everywhere(""), _renamed, place="call"),
    LabEvent(
        "no_arguments",
        "an empty text as arguments",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(lambda _: ""),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "broken_arguments",
        "arguments that are no JSON",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(lambda text: text.replace(":", "", 1)),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "cut_arguments",
        "arguments that break off in a call that ends as if whole",
        "answer",
        on("chat", "responses", "messages"),
        _arguments(_cut),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "cut_in_arguments",
        "the stream ends inside arguments",
        "answer",
        on(chat="truncated", responses="truncated after=5", messages="truncated after=6"),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "disconnected_in_arguments",
        "the connection closes inside arguments",
        "answer",
        on(chat="disconnect", responses="disconnect after=5", messages="disconnect after=6"),
        place="call",
        streamed=True,
    ),
    LabEvent(
        "large_arguments",
        "arguments with an unknown name and 64 KiB",
        "answer",
        everywhere(""),
        _huge,
        place="call",
        reads=True,
    ),
    LabEvent(
        "arguments_object",
        "arguments that are an object, not text",
        "answer",
        on(chat="arguments_object"),
        place="call",
        reads=True,
    ),
    LabEvent(
        "no_call_index",
        "a call without its index",
        "answer",
        on(chat="no_call_index"),
        place="call",
        reads=True,
        streamed=True,
    ),
    LabEvent(
        "no_call_id",
        "a call without an id",
        "answer",
        on(chat="call_without_id"),
        place="call",
        reads=True,
        streamed=True,
    ),
    LabEvent(
        "call_ends_with_stop",
        "a call whose answer ends with stop",
        "answer",
        on(chat="calls_end_with_stop"),
        place="call",
        reads=True,
    ),
    LabEvent(
        "unended_call",
        "an answer that ends before its call does",
        "answer",
        on(responses="lost_call"),
        place="call",
        streamed=True,
    ),
)
