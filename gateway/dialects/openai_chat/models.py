"""Encodes model names as the bodies of `GET /v1/models` and `GET /v1/models/{model}`."""

import msgspec

from gateway.dialects.base import ListedModels, ModelInfo
from gateway.dialects.openai_chat.response_models import Model, ModelList, Unlisted


def encode_models(models: ListedModels) -> bytes:
    """Returns the list of models."""
    data = [_model(model) for model in models.models]
    unlisted = msgspec.UNSET if models.missing is None else Unlisted(models.missing)
    return msgspec.json.encode(ModelList(data=data, dragoman=unlisted))


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model(model))


def _model(model: ModelInfo) -> Model:
    return Model(id=model.name, created=model.created)
