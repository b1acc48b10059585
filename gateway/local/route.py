"""The address of a local model server -> the settings that serve it."""

from typing import Final

from gateway.types import Json

MODEL: Final = "smollm2"
# One answer at a time: the next waits for its turn, and a full context is read for a minute or more.
PATIENT: Final[dict[str, Json]] = {"first_byte": 600, "total": 1200}


def settings_for_model(base_url: str) -> dict[str, Json]:
    """What a settings.json for this model would hold."""
    return {
        "backends": {
            "local": {
                "adapter": "adapters.text:TextAdapter",
                "wire": "llama_cpp",
                "base_url": base_url,
                "timeouts": PATIENT,
            },
        },
        "models": {MODEL: {"backend": "local"}},
        "log": {"file": None},
    }
