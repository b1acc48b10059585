"""Encodes models as the bodies of `GET /v1/models` and `GET /v1/models/{name}` for clients of this API."""

from datetime import UTC, datetime

import msgspec

from gateway.core.conversation import Json
from gateway.dialect import ListedModels, ModelInfo


def encode_models(models: ListedModels) -> bytes:
    """Returns the list of models, which is one page."""
    names = [model.name for model in models.models]
    page: dict[str, Json] = {
        "data": [_model_object(model) for model in models.models],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }
    if models.missing is not None:
        page["dragoman"] = {"missing": models.missing}
    return msgspec.json.encode(page)


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model_object(model))


def _model_object(model: ModelInfo) -> dict[str, Json]:
    created = datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry: dict[str, Json] = {"type": "model", "id": model.name, "display_name": model.name, "created_at": created}
    if model.context_length is not None:
        entry["max_input_tokens"] = model.context_length
    return entry
