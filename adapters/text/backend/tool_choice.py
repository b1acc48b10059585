"""Plans how one request asks for tool calls and how its response is read, from what the backend supports."""

import msgspec

from adapters.text.backend.wire import Wire
from gateway.core.conversation import Conversation, NamedTool, ToolSpec
from gateway.core.errors import Unsupported
from gateway.tool_calls.parsers.format import Constraint, ToolFormat
from gateway.tool_calls.parsers.schema import closed


class ToolChoicePlan(msgspec.Struct, frozen=True):
    """`tools` are those that may be called now. `forced`: a response without a call is an error. `constraint` limits
    the backend's output to one call; it is None where only the prompt asks for the call. `prefill` is the beginning of
    the response."""

    tools: tuple[ToolSpec, ...]
    forced: bool = False
    constraint: Constraint | None = None
    prefill: str = ""


_PROBE = (ToolSpec("f"),)


def can_force(wire: Wire, tool_format: ToolFormat) -> bool:
    """Returns whether the backend's output can be constrained to a call in this format."""
    return wire.constrains and tool_format.grammar(_PROBE, "required") is not None


def plan_tool_choice(conversation: Conversation, wire: Wire, tool_format: ToolFormat) -> ToolChoicePlan:
    """Plans the tool calls. Raises Unsupported for a choice that names no tool of the conversation."""
    choice = conversation.tool_choice
    if choice == "none" or not conversation.tools:
        return ToolChoicePlan(())
    if isinstance(choice, NamedTool) and all(tool.name != choice.name for tool in conversation.tools):
        param = conversation.paths.param("tool_choice")
        raise Unsupported(f"{param} names a function that is not among the tools.", param=param)
    if choice == "auto":
        return ToolChoicePlan(conversation.tools)
    constraint = tool_format.grammar(tuple(map(closed, conversation.tools)), choice)
    if constraint is None:
        return ToolChoicePlan(conversation.tools, True)
    if not wire.constrains:
        return ToolChoicePlan(conversation.tools, True, None, constraint.prefill if wire.has_cue else "")
    return ToolChoicePlan(conversation.tools, True, constraint, constraint.prefill)
