"""Encodes models as the bodies of `GET /v1/models` and `GET /v1/models/{name}` for clients of this API."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from adapters.anthropic_messages.table import EFFORTS
from gateway.core.conversation import Json
from gateway.core.model_facts import claude_id
from gateway.dialect import ListedModels, ModelInfo


def encode_models(models: ListedModels) -> bytes:
    """Returns the list of models, which is one page."""
    names = _ids([model.name for model in models.models], models.claude_ids)
    page: dict[str, Json] = {
        "data": [_model_object(model, name) for model, name in zip(models.models, names, strict=True)],
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }
    if models.missing is not None:
        page["dragoman"] = {"missing": models.missing}
    return msgspec.json.encode(page)


def _ids(names: Sequence[str], claude_ids: bool) -> list[str]:
    """Returns the id of each model. A name whose id is the name of another model stays as it is."""
    if not claude_ids:
        return [*names]
    taken = frozenset(names)
    return [name if (shown := claude_id(name)) in taken else shown for name in names]


def encode_model(model: ModelInfo) -> bytes:
    """Returns one model."""
    return msgspec.json.encode(_model_object(model, model.name))


def _model_object(model: ModelInfo, name: str) -> dict[str, Json]:
    created = datetime.fromtimestamp(model.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    entry: dict[str, Json] = {"type": "model", "id": name, "display_name": model.title, "created_at": created}
    if model.context_length is not None:
        entry["max_input_tokens"] = model.context_length
    if model.max_output is not None:
        entry["max_tokens"] = model.max_output
    return {**entry, "capabilities": _capabilities(model)}


def _capabilities(model: ModelInfo) -> dict[str, Json]:
    """Returns the capabilities of which the gateway knows whether it serves them. Source: the package anthropic,
    `types/model_capabilities.py`, `types/effort_capability.py`."""
    known: dict[str, Json] = {
        "batch": {"supported": False},
        "image_input": {"supported": model.images},
        "pdf_input": {"supported": model.files},
    }
    if model.efforts is not None:
        levels = {word: word in model.efforts for word in EFFORTS.values}
        known["effort"] = {
            "supported": any(levels.values()),
            **{word: {"supported": level} for word, level in levels.items()},
        }
        known["thinking"] = {"supported": any(word != "none" for word in model.efforts)}
    return known
