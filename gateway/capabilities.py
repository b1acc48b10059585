"""What the client asks against what the backend can do: honoured, emulated, refused or reported, never ignored."""

from collections.abc import Callable, Iterator
from typing import Final

from gateway.adapter import Capabilities
from gateway.errors import Unsupported
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation, Image, Json, JsonObject, NamedTool

# Ignoring one of these would change what the answer means. The predicate says whether the value asks for anything.
REFUSED: Final[dict[str, Callable[[Json], bool]]] = {
    "logprobs": bool,
    "top_logprobs": bool,
    "response_format": lambda value: isinstance(value, dict) and value.get("type") not in (None, "text"),
    "modalities": lambda value: isinstance(value, list) and value != ["text"],
    "audio": bool,
    "logit_bias": bool,
    "web_search_options": lambda value: value is not None,
}

# Fields that steer the backend or its bookkeeping: an answer without them is still an answer, so they are reported.
EMULATED: Final = frozenset({"stop"})
OURS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools", "tool_choice", "n"})

# Read as the newer field, where that is not sent as well.
DEPRECATED: Final = {"functions": "tools", "function_call": "tool_choice"}


def check_capabilities(conversation: Conversation, capabilities: Capabilities, policy: Policy) -> list[Notice]:
    """Notices for the fields that will have no effect. Raises Unsupported for those that must have one."""
    source = conversation.source or {}
    if (n := source.get("n")) is not None and n != 1:
        raise _unsupported("n", "one answer per request is given")
    if capabilities.passthrough:
        return []
    _check_images(conversation, capabilities, policy)
    _check_tool_choice(conversation, capabilities)
    return [*_other_tools(source.get("tools")), *_unsent(conversation, source, capabilities)]


def _unsent(conversation: Conversation, source: JsonObject, capabilities: Capabilities) -> Iterator[Notice]:
    """A notice for each field that has no effect. Raises Unsupported for one that must have one."""
    for name, value in source.items():
        if name in capabilities.honours or name in OURS or name in EMULATED or value is None:
            continue
        if name in DEPRECATED and source.get(DEPRECATED[name]) is None:
            continue
        if name in REFUSED:
            if REFUSED[name](value):
                raise _unsupported(name, "this model's backend cannot honour it")
        elif name == "parallel_tool_calls":
            if value is False and conversation.tools:
                raise _unsupported(name, "this model's backend cannot limit itself to one call")
        else:
            detail = f"the backend has no field for {name[:40]!r}"
            yield Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug")


def _other_tools(tools: Json) -> list[Notice]:
    """Tools that are no functions of the client's, like `web_search`: only the provider they are made for has them."""
    entries = tools if isinstance(tools, list) else []
    kinds = [str(entry.get("type", "function"))[:40] for entry in entries if isinstance(entry, dict)]
    return [
        Notice("encode", "dropped", "TOOL_NOT_SENT", f"the backend has no tool of type {kind!r}", level="warning")
        for kind in kinds
        if kind != "function"
    ]


def _check_tool_choice(conversation: Conversation, capabilities: Capabilities) -> None:
    if conversation.tools and not capabilities.tools:
        raise _unsupported("tools", "this model's backend cannot call tools")
    forced = conversation.tool_choice == "required" or isinstance(conversation.tool_choice, NamedTool)
    if forced and "tool_choice" not in capabilities.honours:
        raise _unsupported("tool_choice", "this model's backend cannot be forced to call a tool")


def _check_images(conversation: Conversation, capabilities: Capabilities, policy: Policy) -> None:
    if capabilities.images or policy.images == "placeholder":
        return
    for position, turn in enumerate(conversation.turns):
        for part, block in enumerate(turn.blocks):
            if isinstance(block, Image):
                index = position if turn.index is None else turn.index
                raise _unsupported(f"messages[{index}].content[{part}]", "this model's backend takes no images")


def _unsupported(param: str, reason: str) -> Unsupported:
    return Unsupported(f"{param} is not supported here: {reason}.", param=param)
