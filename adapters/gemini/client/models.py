"""Encodes models as the bodies of `GET /v1beta/models` and `GET /v1beta/models/{model}`."""

from typing import Final

import msgspec

from adapters.gemini.response_models import GeminiModel, GeminiModelList, UnlistedGeminiModels
from adapters.gemini.table import COUNT, GENERATE, STREAM
from gateway.dialect import ListedModels, ModelInfo

_METHODS: Final = (GENERATE, STREAM, COUNT)


def encode_models(models: ListedModels) -> bytes:
    """Returns the list of models."""
    unlisted = msgspec.UNSET if models.missing is None else UnlistedGeminiModels(models.missing)
    return msgspec.json.encode(GeminiModelList([_model(model) for model in models.models], unlisted))


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model(model))


def _model(model: ModelInfo) -> GeminiModel:
    length = msgspec.UNSET if model.context_length is None else model.context_length
    most = msgspec.UNSET if model.max_output is None else model.max_output
    thinks = msgspec.UNSET if model.efforts is None else any(word != "none" for word in model.efforts)
    return GeminiModel(f"models/{model.name}", model.title, [*_METHODS], length, most, thinks)
