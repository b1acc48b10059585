"""Checks each request field against the backend: supported, emulated, refused or reported, never ignored."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gateway.adapter import Capabilities
from gateway.capabilities.prompt_caches import FIELD_NAMES, has_cache
from gateway.core.call_arguments import is_custom_tool
from gateway.core.conversation import Conversation, Json, NamedTool, OtherTool, ToolSpec
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.providers.request_rules import RequestRules, StopRules

# Ignoring one of these changes the meaning of the response. The predicate is true for a value that asks for something.
REFUSED: Final[dict[str, Callable[[Json], bool]]] = {
    "logprobs": bool,
    "top_logprobs": bool,
    "response_format": lambda value: isinstance(value, dict) and value.get("type") not in (None, "text"),
    "modalities": lambda value: isinstance(value, list) and value != ["text"],
    "audio": bool,
    "logit_bias": bool,
    "web_search_options": lambda value: value is not None,
}

# Of what an adapter carries: the tools whose input is free text.
CUSTOM: Final = "custom"
ONE_CALL: Final = "parallel_tool_calls"
# Applied to the response where the backend has no field for them.
EMULATED: Final = frozenset({"stop", ONE_CALL})
GATEWAY_FIELDS: Final = frozenset({"model", "messages", "stream", "stream_options", "tools", "tool_choice", "n"})

# Read as the newer field, where that is not sent as well.
DEPRECATED: Final = {"functions": "tools", "function_call": "tool_choice"}


def check_capabilities(conversation: Conversation, capabilities: Capabilities) -> list[Notice]:
    """Returns notices for the fields without effect. Raises Unsupported for fields that must have one."""
    params = conversation.params
    if (n := params.get("n")) is not None and n != 1:
        raise _unsupported(conversation, "n", "a request gets one choice")
    if conversation.dialect == capabilities.passthrough:
        return []
    for param in conversation.own_fields:
        raise Unsupported(f"{param} is not supported: only a backend of the client's own API has it.", param=param)
    _check_tool_choice(conversation, capabilities)
    custom = [] if CUSTOM in capabilities.carries else [tool for tool in conversation.tools if is_custom_tool(tool)]
    others, deferred = conversation.other_tools, conversation.deferred
    if deferred is not None:
        # A search of the gateway stands for it.
        others = tuple([tool for tool in others if tool.kind not in deferred.searches])
    unsent = map(_tool_unsent, others)
    return [*unsent, *map(_as_function, custom), *_unsent(conversation, capabilities)]


def refused_fields(conversation: Conversation, rules: RequestRules, model: str) -> Iterator[str]:
    """Yields the canonical names of the fields that must have an effect and that the provider refuses by name."""
    for name, asks in REFUSED.items():
        if asks(conversation.params.get(name)) and rules.refuse(name, model):
            yield name


def check_rules(conversation: Conversation, rules: RequestRules, model: str) -> None:
    """Raises Unsupported for a field that must have an effect and that the provider refuses by its name."""
    for name in refused_fields(conversation, rules, model):
        raise _unsupported(conversation, name, "this model's provider refuses it")


def unsent_fields(conversation: Conversation, capabilities: Capabilities) -> tuple[str, ...]:
    """Returns the paths of the request's fields that have no effect at this backend."""
    if conversation.dialect == capabilities.passthrough:
        return ()
    return tuple(conversation.paths.param(name) for name, _ in _without_effect(conversation, capabilities))


def _without_effect(conversation: Conversation, capabilities: Capabilities) -> Iterator[tuple[str, Json]]:
    params = conversation.params
    for name, value in params.items():
        if (
            name in capabilities.supported_params
            or name in capabilities.prompts
            or name in GATEWAY_FIELDS
            or name in EMULATED
            or value is None
            or (name in FIELD_NAMES and has_cache(capabilities))
        ):
            continue
        if name not in DEPRECATED or params.get(DEPRECATED[name]) is not None:
            yield name, value


def _unsent(conversation: Conversation, capabilities: Capabilities) -> Iterator[Notice]:
    """Yields a notice for each field without effect. Raises Unsupported for a field that must have one."""
    for name, value in _without_effect(conversation, capabilities):
        if name in REFUSED:
            if REFUSED[name](value):
                raise _unsupported(conversation, name, "this model's backend has no equivalent")
        else:
            detail = f"the backend has no field for {conversation.paths.param(name)[:40]!r}"
            yield Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=(name[:40],))


def _as_function(tool: ToolSpec) -> Notice:
    detail = f"the custom tool {tool.name[:64]!r} is offered as a function"
    return Notice("encode", "changed", "TOOL_AS_FUNCTION", detail, level="debug")


def _tool_unsent(tool: OtherTool) -> Notice:
    detail = f"the backend has no tool of type {tool.kind[:40]!r}"
    return Notice("encode", "dropped", "TOOL_NOT_SENT", detail, level="warning")


def _check_tool_choice(conversation: Conversation, capabilities: Capabilities) -> None:
    if conversation.tools and not capabilities.tools:
        raise _unsupported(conversation, "tools", "this model's backend cannot call tools")
    if _forces_other_tool(conversation):
        raise _unsupported(conversation, "tool_choice", "it forces a tool that this model's backend does not have")
    forced = conversation.tool_choice == "required" or isinstance(conversation.tool_choice, NamedTool)
    if forced and "tool_choice" not in capabilities.supported_params | capabilities.prompts:
        raise _unsupported(conversation, "tool_choice", "this model's backend cannot be forced to call a tool")


def _forces_other_tool(conversation: Conversation) -> bool:
    """Returns whether only a tool that is no function could satisfy the choice."""
    if not conversation.other_tools:
        return False
    if isinstance(conversation.tool_choice, NamedTool):
        return conversation.tool_choice.name not in [tool.name for tool in conversation.tools]
    return conversation.tool_choice == "required" and not conversation.tools


def _unsupported(conversation: Conversation, name: str, reason: str) -> Unsupported:
    param = conversation.paths.param(name)
    return Unsupported(f"{param} is not supported: {reason}.", param=param)


# Every piece of a response is compared with every sequence, and up to the length of the longest is held back.
# OpenAI accepts four.
MOST_SEQUENCES: Final = 64
LONGEST_SEQUENCE: Final = 4096
_ALL_STOPS: Final = StopRules()


def watched_sequences(
    sequences: Sequence[str], capabilities: Capabilities, of_profile: StopRules | None = None
) -> tuple[str, ...]:
    """Returns the stop sequences for which the response is searched, since the backend does not apply them.
    `of_profile` are those that its provider accepts."""
    if "stop" not in capabilities.supported_params:
        return tuple(sequences)
    rules = of_profile or StopRules(capabilities.max_stops, blank=capabilities.blank_stops)
    if rules == _ALL_STOPS:
        return ()
    sent = frozenset(rules.accepted(sequences))
    return tuple([one for one in sequences if one not in sent])


def check_sequences(sequences: Sequence[str], paths: FieldPaths) -> None:
    """Raises InvalidRequest for more or longer stop sequences than the matcher accepts."""
    if len(sequences) > MOST_SEQUENCES:
        message = f"At most {MOST_SEQUENCES} stop sequences can be used with this model; there are {len(sequences)}."
        raise InvalidRequest(message, param=paths.param("stop"), code="array_above_max_length")
    longest = max(map(len, sequences), default=0)
    if longest > LONGEST_SEQUENCE:
        message = f"A stop sequence may have at most {LONGEST_SEQUENCE} characters with this model; one has {longest}."
        raise InvalidRequest(message, param=paths.param("stop"), code="string_above_max_length")
