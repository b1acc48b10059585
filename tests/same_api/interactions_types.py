"""Prints the JSON Schemas of Google's published types, for `gemini_interactions.json`: run it where the SDK is
installed.

python -m tests.same_api.interactions_types > tests/same_api/gemini_interactions.json

The SDK reads what it does not know as well. Here nothing is known but what is published: words of enumerations, fields,
and the variants of steps, pieces and contents that are no tools of Google's.
"""

import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any

_ROOTS = ("InteractionSSEEvent", "Interaction")
_STEPS = frozenset({"UserInputStep", "ModelOutputStep", "ThoughtStep", "FunctionCallStep", "FunctionResultStep"})
_DELTAS = frozenset({"TextDelta", "ThoughtSummaryDelta", "ThoughtSignatureDelta", "ArgumentsDelta"})
# The names of Google's own models and agents are no rule here. What an answer repeats of its request is left out.
_NAMES = frozenset({"model", "agent"})
_REPEATED = frozenset({"model", "input", "previous_interaction_id"})
_NO_RULE = frozenset({"title", "description", "default", "deprecated"})


def published() -> dict[str, Any]:  # Any: a JSON Schema is untyped
    """Returns the version of the SDK, the schema of what it receives, and the fields of what it sends."""
    types = importlib.import_module("google.genai.interactions")
    adapter = importlib.import_module("pydantic").TypeAdapter
    schemas = {name: adapter(getattr(types, name)).json_schema(ref_template="#/$defs/{model}") for name in _ROOTS}
    found = {name: made for schema in schemas.values() for name, made in schema.get("$defs", {}).items()}
    found |= {name: {key: value for key, value in made.items() if key != "$defs"} for name, made in schemas.items()}
    strict = {name: _strict(made) for name, made in found.items()}
    request = {*types.CreateModelInteraction.model_fields, "agent_config"} - _REPEATED
    answer = strict["Interaction"]["properties"]
    strict["Interaction"]["properties"] = {name: made for name, made in answer.items() if name not in request}
    reached = _reached(strict, _ROOTS)
    return {
        "sdk": f"google-genai {importlib.import_module('google.genai').__version__}",
        "$defs": {name: strict[name] for name in sorted(reached)},
        "request": sorted(types.CreateModelInteraction.model_fields),
        "generation_config": sorted(types.GenerationConfig.model_fields),
    }


def _strict(value: Any) -> Any:
    if isinstance(value, list):
        return [_strict(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {name: _strict(inner) for name, inner in value.items() if name not in _NO_RULE or isinstance(inner, dict)}
    if "anyOf" in made:
        made["anyOf"] = [one for one in made["anyOf"] if _is_kept(one, made["anyOf"])]
    if made.get("type") == "object" and "properties" in made:
        made["additionalProperties"] = False
        made["properties"] |= {name: {"type": "string"} for name in _NAMES & made["properties"].keys()}
        constant = [name for name, inner in made["properties"].items() if "const" in inner]
        made["required"] = sorted({*made.get("required", ()), *constant})
    return made


def _is_kept(one: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    if one.get("type") == "string" and "enum" not in one:
        return not any("enum" in other for other in others)
    name = str(one.get("$ref", "")).rpartition("/")[2]
    if name.endswith("Step"):
        return name in _STEPS
    if name.endswith("Delta") and name != "StepDelta":
        return name in _DELTAS
    return not name.startswith(("Unknown", "Unrecognized"))


def _reached(found: dict[str, Any], names: tuple[str, ...]) -> set[str]:
    reached: set[str] = set()
    waiting = [*names]
    while waiting:
        if (name := waiting.pop()) not in reached:
            reached.add(name)
            waiting += _references(found[name])
    return reached


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(reference := value.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


if __name__ == "__main__":
    json.dump(published(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
