"""Defines the interface of a format for tool calls as text: its prompt, its rendering of a history, its parser."""

import hashlib
from collections.abc import Sequence
from typing import Protocol

import msgspec

from gateway.core.conversation import Conversation, JsonObject, ToolChoice, ToolSpec
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser


class Constraint(msgspec.Struct, frozen=True):
    """The constraint for a backend that can constrain its decoding, so that the response is exactly one call.

    The prompt ends with `prefill`; the backend writes one JSON value that fits `schema`, and ends where it closes. No
    stop sequence may end it: the text that closes a call may stand in its arguments. Feed `prefill` to the parser
    before the first piece of the response.
    """

    schema: JsonObject
    prefill: str = ""


class ToolFormat(Protocol):
    """One format, without state. `FORMATS` in `gateway.tool_calls.parsers.formats` lists them by name."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Returns the texts by which a call begins; the prompt uses the first one."""
        ...

    @property
    def ends(self) -> tuple[str, ...]:
        """Returns the texts by which a model begins to write the tool's result itself; its parser ends before them.

        They are no stop sequences for a backend, which cannot distinguish them from the same words in a call's
        arguments.
        """
        ...

    def render_tools(self, tools: Sequence[ToolSpec], choice: ToolChoice, parallel: bool) -> str:
        """Returns the section for the system text: the tools and how to call them.

        Empty without tools, or when the choice is none. The same input gives the same text.
        """
        ...

    def render_call(self, name: str, arguments: str) -> str:
        """Returns a call of the history in the parser's syntax. Shows arguments that are no JSON object, too."""
        ...

    def parser(
        self, tools: Sequence[ToolSpec], id_prefix: str, choice: ToolChoice = "auto", also: Sequence[Mark] = ()
    ) -> ToolCallParser:
        """Returns a parser for one response. Without tools, or when the choice is none, it passes every text unchanged.

        The ids of its calls are the prefix and a number, so the prefix must differ from response to response
        (`id_prefix`). `also` adds marks, such as those of `gateway.tool_calls.parsers.transcript_calls`.
        """
        ...

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """Returns the constraint for a required call; None when no call is required, or the format has no schema."""
        ...


def id_prefix(conversation: Conversation) -> str:
    """Derives the prefix of a response's call ids from its conversation; equal only for equal conversations.

    Returns `call_`, sixteen digits and `_`: no other turn of a growing conversation gets the same prefix.
    """
    digest = hashlib.blake2s(digest_size=8)
    for turn in conversation.turns:
        answers = [result.call_id for result in turn.results]
        written = repr(
            (turn.role, turn.text, [call.id for call in turn.calls], answers, [r.text for r in turn.results])
        )
        digest.update(written.encode("utf-8", "surrogatepass"))
    return f"call_{digest.hexdigest()}_"
