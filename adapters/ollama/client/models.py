"""Encodes models as the bodies of `GET /api/tags` and `POST /api/show`."""

import hashlib
from collections.abc import Container
from typing import Final

import msgspec

from adapters.ollama.client.answer import time_text
from adapters.ollama.client.response_models import (
    OllamaListedModel,
    OllamaModel,
    OllamaModelDetails,
    OllamaModelList,
)
from adapters.ollama.table import ANSWER_SIZE, CONTEXT_SIZE
from gateway.dialect import ListedModels, ModelInfo
from gateway.dialects.dragoman_field import Unlisted

# The family of a model names the fields of `model_info`; no client looks for a particular one.
FAMILY: Final = "dragoman"


def encode_models(models: ListedModels) -> bytes:
    """Returns the list of models."""
    unlisted = msgspec.UNSET if models.missing is None else Unlisted(models.missing)
    names = {model.name for model in models.models}
    return msgspec.json.encode(OllamaModelList([_listed(model, names) for model in models.models], unlisted))


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    info: dict[str, str | int] = {"general.architecture": FAMILY, "general.basename": model.name}
    if model.context_length is not None:
        info[f"{FAMILY}.context_length"] = model.context_length
    shown = OllamaModel(
        _details(model), info, _capabilities(model), time_text(model.created), parameters=_parameters(model)
    )
    return msgspec.json.encode(shown)


def _listed(model: ModelInfo, names: Container[str]) -> OllamaListedModel:
    name = _tagged(model.name, names)
    # Clients tell models apart by it, and show the beginning of its 64 digits.
    digest = hashlib.sha256(model.name.encode()).hexdigest()
    return OllamaListedModel(name, name, time_text(model.created), 0, digest, _details(model), _capabilities(model))


def _tagged(name: str, names: Container[str]) -> str:
    """Returns a name with a tag: some clients add `latest` to a name that has none before they look for it here."""
    tagged = f"{name}:latest"
    return name if ":" in name or tagged in names else tagged


def _details(model: ModelInfo) -> OllamaModelDetails:
    length = msgspec.UNSET if model.context_length is None else model.context_length
    return OllamaModelDetails(family=FAMILY, families=[FAMILY], context_length=length)


def _parameters(model: ModelInfo) -> str:
    """Returns the known sizes, a line for each, as those of a Modelfile."""
    sizes = {CONTEXT_SIZE: model.context_length, ANSWER_SIZE: model.max_output}
    return "\n".join(f"{name:<30} {size}" for name, size in sizes.items() if size is not None)


def _capabilities(model: ModelInfo) -> list[str]:
    """Returns the parts that requests may have, and whether the model thinks, as far as it is known."""
    has = {
        "tools": model.tools,
        "vision": model.images,
        "thinking": any(word != "none" for word in model.efforts or ()),
    }
    return ["completion", *(name for name, is_there in has.items() if is_there)]
