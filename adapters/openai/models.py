"""Encodes model names as the bodies of `GET /v1/models` and `GET /v1/models/{model}`."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gateway.dialect import ListedModels, ModelInfo
from gateway.dialects.dragoman_field import Unlisted


class Model(Struct, frozen=True, kw_only=True):
    """A model that clients may request. `created` is the gateway's own start."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["dragoman"] = "dragoman"


class ModelList(Struct, frozen=True, kw_only=True):
    """The models that clients may request. `dragoman` is present when a backend's own models are not among them."""

    object: Literal["list"] = "list"
    data: list[Model]
    dragoman: Unlisted | UnsetType = UNSET


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
