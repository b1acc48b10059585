"""Renders a conversation as the backend's prompt: system text, tools, transcript, and the model's cue."""

from collections.abc import Iterator
from typing import Final

import msgspec

from adapters.text.backend.tool_choice import ToolChoicePlan
from gateway.core.conversation import Block, Conversation, Text, ToolCall, Turn, have_derived, is_system, keep_derived
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.history.transcript.render import Flattened, flatten, in_call_order
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.format import ToolFormat
from gateway.tool_calls.parsers.mark_escape import escaped


class Prompt(msgspec.Struct, frozen=True):
    """A rendered prompt. `text` is all of it, with the cue and the beginning of the response; without these it is
    `flattened`."""

    text: str
    system: str
    flattened: Flattened
    notices: tuple[Notice, ...]

    @property
    def transcript(self) -> str:
        """The part after the leading system text, for a wire that has a separate place for `system`."""
        return self.flattened.transcript


def write_prompt(
    conversation: Conversation, policy: Policy, tool_format: ToolFormat, calling: ToolChoicePlan
) -> Prompt:
    """Renders the prompt. Raises Unsupported for images and files unless the policy allows placeholders."""
    # Rendering turns the calls, whose order determines the order of results, into text.
    turns, notices = in_call_order(conversation.turns)
    ordered = msgspec.structs.replace(conversation, turns=turns)
    shown = msgspec.structs.replace(ordered, turns=tuple(_with_tools(ordered, tool_format, calling, notices)))
    flattened = flatten(shown, policy)
    cue = f"{policy.flatten.labels.assistant}:"
    # The cue has no trailing blank: tokens begin with their blank, so that a model has no matching token after one.
    begun = f"{cue} {calling.prefill}" if calling.prefill else cue
    text = f"{flattened.text}\n\n{begun}" if flattened.text else begun
    return Prompt(text, flattened.system_text, flattened, (*notices, *flattened.notices))


def _with_tools(
    conversation: Conversation, tool_format: ToolFormat, calling: ToolChoicePlan, notices: list[Notice]
) -> Iterator[Turn]:
    """Yields the turns with the tools after the leading system text, and with calls in the format that the model must
    write."""
    section = ""
    again = have_derived(conversation.turns)
    declared = Declared(calling.tools)
    if declared:
        choice, parallel = conversation.tool_choice, conversation.parallel_tool_calls
        section = tool_format.render_tools(conversation.tools, choice, parallel)
    for turn in conversation.turns:
        if section and not is_system(turn):
            yield _tools(section)
            section = ""
        if turn.role != "assistant":
            yield turn
        elif again and getattr(turn, "derived", None) is not None:
            yield _as_text(turn, tool_format, declared, notices)
        else:
            yield _written(turn, tool_format, declared, notices)
    if section:
        yield _tools(section)


def _tools(section: str) -> Turn:
    return Turn("system", (Text(section),), synthesized=True)


def _as_text(turn: Turn, tool_format: ToolFormat, tools: Declared, notices: list[Notice]) -> Turn:
    """A turn of the model as `_written` returns it. One without the mark of a call is the same for all tools, and is
    kept with the turn."""
    known = turn.derived.get("as text")
    if known is not None and known[0] is tool_format:
        written: Turn = known[1]
        return written
    written = _written(turn, tool_format, tools, notices)
    if not any([mark.text in block.text for block in turn.blocks if type(block) is Text for mark in tool_format.marks]):
        # Its sections are kept with it.
        keep_derived(written)
        turn.derived["as text"] = (tool_format, written)
    return written


def _written(turn: Turn, tool_format: ToolFormat, tools: Declared, notices: list[Notice]) -> Turn:
    """A turn of the model with its calls as it is to write them, and nothing in its words that looks like one."""
    blocks: list[Block] = []
    for block in turn.blocks:
        match block:
            case ToolCall():
                blocks.append(Text(tool_format.render_call(block.name, block.arguments)))
            case Text() if tools and (text := escaped(block.text, tool_format.marks, tools)) != block.text:
                blocks.append(Text(text))
                notices.append(Notice("flatten", "changed", "CALL_MARK_ESCAPED", _ESCAPED, index=turn.index))
            case _:
                blocks.append(block)
    return turn.changed(*blocks)


_ESCAPED: Final = "text of the assistant looks like a tool call; its marker was escaped with a backslash"
