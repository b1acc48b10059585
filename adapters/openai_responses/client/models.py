"""Encodes models as the list that Codex reads, and as single objects."""

from typing import Final

import msgspec

from adapters.openai_responses.response_models import (
    CodexEffort,
    CodexModel,
    CodexTruncation,
    ResponsesModel,
    ResponsesModelList,
    UnlistedModels,
)
from gateway.dialect import ListedModels, ModelInfo

# An entry must have instructions, and they replace the prompt of Codex, so that these say what any model must know to
# work with its tools. What Codex says of the sandbox, of approvals and of the folder follows in messages of its own.
INSTRUCTIONS: Final = """\
You are a coding agent. You work in a terminal, in a folder of the user, through the tools of this request.

- Do what the user asks, in full, and stop when it is done. Ask only when you cannot go on without an answer.
- Read before you write: look at the files concerned, and keep to the style and the habits of what is there.
- Files named AGENTS.md hold instructions for the folder that they are in and for all below it. Follow them; those of
  the user come first.
- Change no more than the task needs, and nothing of which you do not know who made it. Undo no work of the user.
- Change files with the tool for patches where there is one, otherwise with commands.
- Check what you have done, with the tests of the project where it has some. Report failures as failures.
- At the end say in a few sentences what you did, what you did not do, and how it was checked.
"""
# What Codex takes for a model that it does not know.
_TRUNCATION: Final = CodexTruncation("bytes", 10_000)


def encode_models(listed: ListedModels) -> bytes:
    """Returns the list of models. Only those whose context is known are described to Codex: one without a window it
    would never compact, whereas it takes one for a model that it does not find."""
    missing = msgspec.UNSET if listed.missing is None else UnlistedModels(listed.missing)
    data = [_model(model) for model in listed.models]
    described = [(model, model.context_length) for model in listed.models]
    models = [_codex_model(model, length, place) for place, (model, length) in enumerate(described) if length]
    return msgspec.json.encode(ResponsesModelList(data=data, models=models, dragoman=missing))


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model(model))


def _model(model: ModelInfo) -> ResponsesModel:
    return ResponsesModel(id=model.name, created=model.created)


def _codex_model(model: ModelInfo, length: int, place: int) -> CodexModel:
    """Returns a model in the terms of Codex, which shows the models in the order of their places."""
    efforts = model.efforts or ()
    return CodexModel(
        slug=model.name,
        display_name=model.title,
        default_reasoning_level=msgspec.UNSET if model.default_effort is None else model.default_effort,
        supported_reasoning_levels=[CodexEffort(effort, "") for effort in efforts],
        shell_type="default" if model.tools else "disabled",
        priority=place,
        base_instructions=INSTRUCTIONS,
        supports_reasoning_summaries=bool(efforts),
        support_verbosity=False,
        apply_patch_tool_type="freeform" if model.apply_patch == "freeform" else None,
        truncation_policy=_TRUNCATION,
        supports_parallel_tool_calls=model.parallel_calls,
        context_window=length,
        max_context_window=length,
        auto_compact_token_limit=msgspec.UNSET if model.compact_at is None else model.compact_at,
        experimental_supported_tools=[],
        input_modalities=["text", "image"] if model.images else ["text"],
    )
