"""Builds the list of models as OpenAI's APIs have it."""

from collections.abc import Iterable
from typing import Final

from gateway.core.conversation import Json

# The time is constant, so that the same request gets the same bytes.
CREATED: Final = 1_767_225_600


def model_list(names: Iterable[str]) -> Json:
    """Return the list of these models."""
    listed: list[Json] = [{"id": name, "object": "model", "created": CREATED, "owned_by": "demo"} for name in names]
    return {"object": "list", "data": listed}
