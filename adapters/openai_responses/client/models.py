"""Encodes models as the list that Codex reads, and as single objects."""

import msgspec

from adapters.openai_responses.response_models import ResponsesModel, ResponsesModelList, UnlistedModels
from gateway.dialect import ListedModels, ModelInfo


def encode_models(listed: ListedModels) -> bytes:
    """Returns the list of models."""
    missing = msgspec.UNSET if listed.missing is None else UnlistedModels(listed.missing)
    return msgspec.json.encode(ResponsesModelList(data=[_model(model) for model in listed.models], dragoman=missing))


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model(model))


def _model(model: ModelInfo) -> ResponsesModel:
    return ResponsesModel(id=model.name, created=model.created)
