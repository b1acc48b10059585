"""Finds messages, calls, ids and names in the body of a chat request, whatever else it holds."""

from collections.abc import Iterator
from typing import Final

from gateway.core.conversation import Json, JsonObject

# The roles of messages that hold the result of a call.
RESULTS: Final = frozenset({"tool", "function"})
_KINDS: Final = frozenset({"function", "custom"})


def messages_of(body: JsonObject) -> list[JsonObject]:
    """Returns the messages of a request that are objects."""
    return list(objects(body.get("messages")))


def calls_of(message: JsonObject) -> list[JsonObject]:
    """Returns the entries of `tool_calls` of an assistant message; in any other message the field has no meaning."""
    return list(objects(message.get("tool_calls"))) if message.get("role") == "assistant" else []


def older_call_of(message: JsonObject) -> JsonObject:
    """Returns the `function_call` of an assistant message; empty where there is none."""
    return object_of(message.get("function_call")) if message.get("role") == "assistant" else {}


def ids_of(body: JsonObject) -> Iterator[Json]:
    """Yields the ids of all calls and results."""
    for message in messages_of(body):
        yield from (call.get("id") for call in calls_of(message))
        if message.get("role") == "tool":
            yield message.get("tool_call_id")


def names_of(body: JsonObject) -> Iterator[str]:
    """Yields the names of functions from every place of a request that may hold one."""
    offered = [*objects(body.get("tools")), *map(_entry, objects(body.get("functions")))]
    choice, older = body.get("tool_choice"), body.get("function_call")
    if isinstance(choice, dict):
        offered.append(choice)
        offered += objects(object_of(choice.get("allowed_tools")).get("tools"))
    if isinstance(older, dict):
        offered.append(_entry(older))
    for message in messages_of(body):
        offered += calls_of(message)
        offered.append(_entry(older_call_of(message)))
        if message.get("role") in RESULTS:
            offered.append(_entry(message))
    for entry in offered:
        kind = entry.get("type", "function")
        if isinstance(kind, str) and kind in _KINDS:
            name = object_of(entry.get(kind)).get("name")
            if isinstance(name, str):
                yield name


def _entry(function: JsonObject) -> JsonObject:
    return {"type": "function", "function": {"name": function.get("name")}}


def objects(value: Json) -> Iterator[JsonObject]:
    """Yields the entries of an array that are objects; nothing for any other value."""
    return (entry for entry in value if isinstance(entry, dict)) if isinstance(value, list) else iter(())


def object_of(value: Json) -> JsonObject:
    """Returns a value that is an object; an empty one for any other value."""
    return value if isinstance(value, dict) else {}
