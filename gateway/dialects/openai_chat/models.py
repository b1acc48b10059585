"""Encodes model names as the bodies of `GET /v1/models` and `GET /v1/models/{model}`."""

import msgspec

from gateway.dialects.base import ModelNames
from gateway.dialects.openai_chat.response_models import Model, ModelList, Unlisted


def encode_models(models: ModelNames) -> bytes:
    """Returns the list of models."""
    data = [Model(id=name, created=models.created) for name in models.names]
    unlisted = msgspec.UNSET if models.missing is None else Unlisted(models.missing)
    return msgspec.json.encode(ModelList(data=data, dragoman=unlisted))


def encode_model(name: str, created: int) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(Model(id=name, created=created))
