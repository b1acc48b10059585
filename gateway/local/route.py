"""The address of a local model server -> the settings that serve it."""

from typing import Final

from gateway.types import Json

MODEL: Final = "smollm2"
# One answer at a time: the next waits for its turn, and a full context is read for a minute or more.
PATIENT: Final[dict[str, Json]] = {"first_byte": 600, "total": 1200}
# llama.cpp's server hangs up behind every stream without having said so, perhaps just when the next request comes.
NEW_CONNECTION: Final[dict[str, Json]] = {"connection": "close"}


def backend_for_model(base_url: str) -> dict[str, Json]:
    """The model server's entry below `backends`."""
    return {
        "adapter": "adapters.text:TextAdapter",
        "wire": "llama_cpp",
        "base_url": base_url,
        "timeouts": PATIENT,
        "headers": NEW_CONNECTION,
    }


def settings_for_model(base_url: str) -> dict[str, Json]:
    """What a settings.json for this model would hold."""
    return {
        "backends": {"local": backend_for_model(base_url)},
        "models": {MODEL: {"backend": "local"}},
        "log": {"file": None},
    }
