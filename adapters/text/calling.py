"""A conversation and what its backend can do in, how calls are asked for and read in this one exchange out."""

import msgspec

from adapters.text.wire import Wire
from gateway.errors import Unsupported
from gateway.tools.prompted.format import Constraint, ToolFormat
from gateway.types import Conversation, NamedTool, ToolSpec


class Calling(msgspec.Struct, frozen=True):
    """`tools` are those that may be called now. `forced`: an answer without a call is none. `constraint` holds the
    backend to one call, and is None where words alone ask for it. `prefill` is how the answer begins."""

    tools: tuple[ToolSpec, ...]
    forced: bool = False
    constraint: Constraint | None = None
    prefill: str = ""


_PROBE = (ToolSpec("f"),)


def can_force(wire: Wire, tool_format: ToolFormat) -> bool:
    """Whether the backend can be held to a call in this format."""
    return wire.constrains and tool_format.grammar(_PROBE, "required") is not None


def writes_raw(tool_format: ToolFormat) -> bool:
    """Whether a call of this format may hold lines as they are, so that a label in it opens no turn."""
    return "\nUser: x" in tool_format.render_call("f", '{"text": "\\nUser: x"}')


def calling_of(conversation: Conversation, wire: Wire, tool_format: ToolFormat) -> Calling:
    """Raises Unsupported for a choice that names no tool of the conversation."""
    choice = conversation.tool_choice
    if choice == "none" or not conversation.tools:
        return Calling(())
    if isinstance(choice, NamedTool) and all(tool.name != choice.name for tool in conversation.tools):
        raise Unsupported("tool_choice names a function that is not among the tools.", param="tool_choice")
    if choice == "auto":
        return Calling(conversation.tools)
    constraint = tool_format.grammar(conversation.tools, choice)
    if constraint is None:
        return Calling(conversation.tools, True)
    if not wire.constrains:
        return Calling(conversation.tools, True, None, constraint.prefill if wire.has_cue else "")
    return Calling(conversation.tools, True, constraint, constraint.prefill)
