"""The published schema of Open Responses as types, and what the requests of its compliance program are made of."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import openresponses_types
from pydantic import BaseModel, ValidationError

from gateway.core.conversation import Json
from gateway.demo.settings import DEMO_SETTINGS

# What the official SDKs and Codex read has other names in the standard, with the same fields.
NAMES: Final[Mapping[str, str]] = {
    "response.reasoning_text.delta": "response.reasoning.delta",
    "response.reasoning_text.done": "response.reasoning.done",
}
WEATHER: Final[Json] = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a place",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
DEMO: Final = cast("dict[str, Json]", DEMO_SETTINGS)
MODELS: Final = tuple(cast("dict[str, Json]", DEMO["models"]))


def said(role: str, content: Json) -> dict[str, Json]:
    return {"type": "message", "role": role, "content": content}


def _types() -> Iterator[tuple[str, type[BaseModel]]]:
    for name in dir(openresponses_types):
        if name.endswith("StreamingEvent"):
            kind = getattr(openresponses_types, name)
            (word,) = kind.model_fields["type"].annotation
            yield word.value, kind


EVENTS: Final = dict(_types())


def faults(kind: type[BaseModel], value: object) -> list[str]:
    """What is wrong with a value of this type."""
    try:
        kind.model_validate(value)
    except ValidationError as error:
        return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    return []


def event_faults(event: dict[str, Any]) -> list[str]:
    """What is wrong with an event."""
    name = NAMES.get(event["type"], event["type"])
    if name not in EVENTS:
        return [f"no event of the standard: {name}"]
    return [f"{name}: {fault}" for fault in faults(EVENTS[name], {**event, "type": name})]
