"""Defines the interface of a format for tool calls as text (its prompt, its rendering of a history, its parser), and
the part of the prompt that no format changes: the list of tools, and when to call them."""

import hashlib
import json
from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from gateway.core.conversation import (
    Conversation,
    Json,
    JsonObject,
    NamedTool,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    have_derived,
    kept,
)
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser

# Writes JSON with blanks, as models were trained on it, and every character as it is.
write_json: Final = json.JSONEncoder(ensure_ascii=False).encode


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
        (`id_prefix`). `also` adds marks, such as those of `gateway.tool_calls.parsers.labelled_call`.
        """
        ...

    def grammar(self, tools: Sequence[ToolSpec], choice: ToolChoice) -> Constraint | None:
        """Returns the constraint for a required call; None when no call is required, or the format has no schema."""
        ...


def id_prefix(conversation: Conversation) -> str:
    """Derives the prefix of a response's call ids from its conversation; equal only for equal conversations.

    Returns `call_`, sixteen digits and `_`: no other turn of a growing conversation gets the same prefix.
    """
    # The digest of all turns up to one is kept with it, and with the digest of those before it. `digest` is that of
    # this conversation alone, behind a turn that is not kept.
    state, digest = _BEGUN, None
    again = have_derived(conversation.turns)
    for turn in conversation.turns:
        known = getattr(turn, "derived", None) if again and digest is None else None
        if known is not None and _DIGEST in known and known[_DIGEST][0] is state:
            state = known[_DIGEST][1]
            continue
        texts: list[str] = []
        calls: list[str] = []
        results: list[ToolResult] = []
        for block in turn.blocks:
            if type(block) is Text:
                texts.append(block.text)
            elif type(block) is ToolCall:
                calls.append(block.id)
            elif type(block) is ToolResult:
                results.append(block)
        answers = [result.call_id for result in results]
        written = repr((turn.role, "\n".join(texts), calls, answers, [result.text for result in results]))
        before = state
        state = state.copy() if digest is None else state
        state.update(written.encode("utf-8", "surrogatepass"))
        if known is not None:
            # Not before the digest is whole: another thread may serve the next request of the conversation.
            known[_DIGEST] = (before, state)
        elif digest is None:
            digest = state
    return f"call_{state.hexdigest()}_"


_BEGUN: Final = hashlib.blake2s(digest_size=8)
# Under which name a digest is kept with its turn.
_DIGEST: Final = "digest"


def listed(tools: Sequence[ToolSpec]) -> str:
    """Returns one JSON object a line."""
    return "\n".join(kept(tool, "line", _line) for tool in tools)


def rules(choice: ToolChoice, parallel: bool, several: str = "") -> str:
    """Returns when to call, and how often. `several` is the format's instruction for more than one call."""
    return "\n".join(
        [when_to_call(choice), several if parallel else "Call at most one function, then wait for its result."]
    )


def _line(tool: ToolSpec) -> str:
    parameters: Json = dict(tool.parameters) or {"type": "object", "properties": {}}
    written: Json = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return write_json(written)


def when_to_call(choice: ToolChoice) -> str:
    """Returns whether a call must be made now."""
    if isinstance(choice, NamedTool):
        return f"You must call the function {choice.name} now, and write nothing else."
    if choice == "required":
        return "You must call a function now, and write nothing else."
    return "Call a function only when you need it; otherwise answer in plain text. Never invent a function's result."
