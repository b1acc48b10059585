"""A conversation in, the text that its backend is given out: system text, tools, transcript, and the model's cue."""

from collections.abc import Iterator

import msgspec

from adapters.text.calling import Calling
from gateway.conversation.classify import is_system
from gateway.conversation.flatten import flatten
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.tools.prompted.format import ToolFormat
from gateway.types import Conversation, Text, ToolCall, Turn


class Prompt(msgspec.Struct, frozen=True):
    """`text` is all of it, with the cue and the beginning of the answer; `transcript` is what follows the leading
    system text, for a wire that has a place of its own for `system`."""

    text: str
    system: str
    transcript: str
    notices: tuple[Notice, ...]


def write_prompt(conversation: Conversation, policy: Policy, tool_format: ToolFormat, calling: Calling) -> Prompt:
    """Raises Unsupported for images and files unless the policy takes placeholders."""
    told = msgspec.structs.replace(conversation, turns=tuple(_told(conversation, tool_format, calling)))
    flattened = flatten(told, policy)
    cue = f"{policy.flatten.labels.assistant}:"
    # No blank behind the cue: tokens begin with their blank, and a model that is given it finds no word to go on with.
    begun = f"{cue} {calling.prefill}" if calling.prefill else cue
    text = f"{flattened.text}\n\n{begun}" if flattened.text else begun
    return Prompt(text, flattened.system_text, flattened.transcript, flattened.notices)


def _told(conversation: Conversation, tool_format: ToolFormat, calling: Calling) -> Iterator[Turn]:
    """The turns with the tools behind the leading system text, and with calls as the model is to write them."""
    section = ""
    if calling.tools:
        choice, parallel = conversation.tool_choice, conversation.parallel_tool_calls
        section = tool_format.render_tools(conversation.tools, choice, parallel)
    for turn in conversation.turns:
        if section and not is_system(turn):
            yield _tools(section)
            section = ""
        yield _with_written_calls(turn, tool_format)
    if section:
        yield _tools(section)


def _tools(section: str) -> Turn:
    return Turn("system", (Text(section),), synthesized=True)


def _with_written_calls(turn: Turn, tool_format: ToolFormat) -> Turn:
    if not turn.calls:
        return turn
    return turn.changed(
        *(
            Text(tool_format.render_call(block.name, block.arguments)) if isinstance(block, ToolCall) else block
            for block in turn.blocks
        )
    )
