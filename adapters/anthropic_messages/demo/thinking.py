"""Signs the thinking of the demo model and checks the thinking that a client sends back."""

import hashlib
from typing import Final

from gateway.core.conversation import Json, JsonObject

_KEY: Final = "demo-messages"


def sign(thinking: str) -> str:
    """Returns the signature of a thinking block."""
    return "Eq" + hashlib.sha256(f"{_KEY}\0{thinking}".encode("utf-8", "surrogatepass")).hexdigest()


def redact(thinking: str) -> str:
    """Returns the `data` of a redacted thinking block: the thinking, which is readable here, and its signature."""
    return f"{sign(thinking)}.{thinking}"


def wrong_field(block: JsonObject) -> str | None:
    """Returns the field by which a thinking block differs from every block that this model wrote; None: it is one."""
    if block.get("type") == "thinking":
        return None if block.get("signature") == sign(_text(block.get("thinking"))) else "signature"
    signature, _, thinking = _text(block.get("data")).partition(".")
    return None if signature == sign(thinking) else "data"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
