"""Names the demo models that think before every answer and refuse a history without the state of their answers."""

from typing import Final

STRICT: Final = "-strict"


def is_strict(model: str) -> bool:
    """Returns whether the model has this demand. A backend accepts any name with this ending."""
    return model.endswith(STRICT)
