"""Model names in, the bodies of `GET /v1/models` and `GET /v1/models/{model}` out."""

from collections.abc import Iterable

import msgspec

from gateway.dialects.openai_chat.answers import Model, ModelList
from gateway.errors import InvalidRequest


def encode_models(names: Iterable[str], created: int) -> bytes:
    """The list of models. `created` is a Unix time; the gateway knows only its own start."""
    return msgspec.json.encode(ModelList(data=[Model(id=name, created=created) for name in names]))


def encode_model(name: str, created: int) -> bytes:
    """One model."""
    return msgspec.json.encode(Model(id=name, created=created))


def unknown_model(name: str) -> InvalidRequest:
    """The error for a name that no route serves: 404 `model_not_found`."""
    shown = name if len(name) <= 100 else name[:99] + "…"
    return InvalidRequest(f"The model {shown!r} does not exist.", status=404, code="model_not_found", param="model")
