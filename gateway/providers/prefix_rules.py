"""Describes, as data, what the prompt cache of an API depends on beside the tools, the system text and the messages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

# The parts of a prompt in the order in which caches read them. Anthropic, "Prompt caching": tools, system, messages;
# "changes at each level invalidate that level and all subsequent levels".
Part = Literal["tools", "system", "messages"]
PARTS: Final[tuple[Part, ...]] = ("tools", "system", "messages")
# Names that are no fields: whether an image stands anywhere, and the tools that are no functions.
IMAGES: Final = "images"
SERVER_TOOLS: Final = "server tools"


class PrefixRules(msgspec.Struct, frozen=True):
    """What a cached prefix depends on.

    - `fields`: the path of each such field in the body of a request, with the first part that a change of it ends.
    - `least`: a shorter prompt, in tokens, is not cached.
    - `mark`: the field without which nothing is cached; empty: none is needed.
    """

    fields: Mapping[str, Part] = MappingProxyType({SERVER_TOOLS: "tools"})
    least: int = 4096
    mark: str = ""


# Anthropic, "Prompt caching", "What invalidates the cache": the toggle of web search and the speed end the caches of
# system and messages; tool_choice, images, thinking and effort that of the messages (the last two those before it as
# well, of models that the page does not name). "Structured outputs": a change of output_config.format ends the cache,
# since it adds to the system prompt. The least prompt is 512 to 4,096 tokens, by model.
_MESSAGES: Final = PrefixRules(
    fields=MappingProxyType(
        {
            SERVER_TOOLS: "system",
            "speed": "system",
            "output_config.format": "system",
            "tool_choice": "messages",
            "thinking": "messages",
            "output_config.effort": "messages",
            IMAGES: "messages",
        }
    ),
    mark="cache_control",
)
# OpenAI, "Prompt caching": 1,024 tokens at least; "the structured output schema serves as a prefix to the system
# message"; the key is combined with the prefix to find the cache.
_OPENAI: Final = PrefixRules(
    fields=MappingProxyType(
        {SERVER_TOOLS: "tools", "prompt_cache_key": "tools", "response_format": "system", "text.format": "system"}
    ),
    least=1024,
)
_BY_API: Final[Mapping[str | None, PrefixRules]] = MappingProxyType(
    {"anthropic_messages": _MESSAGES, "openai_chat": _OPENAI, "openai_responses": _OPENAI}
)
# Of other APIs nothing of the kind is documented. (Google, "Context caching": 1,024 to 4,096 tokens at least, by
# model.)
_OTHER: Final = PrefixRules()


def prefix_rules(api: str | None) -> PrefixRules:
    """Returns the rules of an API, by the name of its dialect (`Capabilities.passthrough`)."""
    return _BY_API.get(api, _OTHER)
