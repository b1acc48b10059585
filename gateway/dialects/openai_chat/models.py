"""Encodes model names as the bodies of `GET /v1/models` and `GET /v1/models/{model}`."""

from collections.abc import Iterable

import msgspec

from gateway.dialects.openai_chat.response_models import Model, ModelList, Unlisted


def encode_models(names: Iterable[str], created: int, missing: str | None = None) -> bytes:
    """Returns the list of models.

    `created` is a Unix time; the gateway knows only its own start. `missing` says why others are not listed.
    """
    data = [Model(id=name, created=created) for name in names]
    return msgspec.json.encode(ModelList(data=data, dragoman=msgspec.UNSET if missing is None else Unlisted(missing)))


def encode_model(name: str, created: int) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(Model(id=name, created=created))
