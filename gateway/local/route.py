"""The address of a local model server -> the settings that serve it."""

from typing import Final

from gateway.types import Json

MODEL: Final = "smollm2"


def settings_for_model(base_url: str) -> dict[str, Json]:
    """What a settings.json for this model would hold."""
    return {
        "backends": {
            "local": {"adapter": "adapters.text:TextAdapter", "wire": "llama_cpp", "base_url": base_url},
        },
        "models": {MODEL: {"backend": "local"}},
        "log": {"file": None},
    }
