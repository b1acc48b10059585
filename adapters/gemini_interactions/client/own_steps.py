"""Reads `input` as the steps of a request, whichever of its forms a client writes."""

from collections.abc import Iterator
from itertools import groupby
from typing import Final, NamedTuple

from adapters.gemini_interactions.client.contents import is_content
from adapters.gemini_interactions.table import INPUT
from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import InvalidRequest
from gateway.dialects.document import kind_of

Step = dict[str, Json]

USER: Final = "user_input"
MODEL: Final = "model_output"
THOUGHT: Final = "thought"
CALL: Final = "function_call"
RESULT: Final = "function_result"


class OwnStep(NamedTuple):
    """A step of a request, and its place: the index in `input` at which it stands or begins."""

    place: int
    step: Json


def own_steps(value: Json) -> list[OwnStep]:
    """Returns the steps of `input`: a text, a content or an array, whose neighbouring contents are one step. Raises
    InvalidRequest for another value."""
    if isinstance(value, str):
        value = {"type": "text", "text": value}
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        message = f"{INPUT} must be text, an object or an array; it is {kind_of(value)}."
        raise InvalidRequest(message, code="invalid_type", param=INPUT)
    steps: list[OwnStep] = []
    open_step: list[Json] | None = None
    for index, item in enumerate(value):
        if is_content(item):
            if open_step is None:
                open_step = []
                steps.append(OwnStep(index, {"type": USER, "content": open_step}))
            open_step.append(item)
            continue
        open_step = None
        if isinstance(item, dict) and item.get("type") is None and isinstance(role := item.get("role"), str):
            steps += [OwnStep(index, step) for step in _older_turn(item, role)]
        else:
            steps.append(OwnStep(index, item))
    return steps


def _older_turn(turn: JsonObject, role: str) -> Iterator[Json]:
    """Yields the steps of a turn of the form before May 2026: its role says whose it is, and among its contents stand
    what are steps of their own now."""
    said = {name: value for name, value in turn.items() if name not in ("type", "role")}
    step: Step = {"type": MODEL if role in ("model", "assistant") else USER, **said}
    contents = turn.get("content")
    if not isinstance(contents, list) or not any(map(_is_step, contents)):
        yield step
        return
    for are_steps, group in groupby(contents, _is_step):
        if are_steps:
            yield from group
        else:
            yield {**step, "content": [*group]}


def _is_step(content: Json) -> bool:
    """Returns whether what stands among contents is a step, by its type."""
    kind = content.get("type") if isinstance(content, dict) else None
    return isinstance(kind, str) and (kind == THOUGHT or kind.endswith(("_call", "_result")))
