"""Signs the calls of the demo model, and checks the signatures that a client sends back."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import JsonObject

# Opaque to clients. It comes with the first call, and behind the text of an answer without calls.
SIGNATURE: Final = "ZGVtby1zaWduYXR1cmU="
_KEY: Final = "demo-gemini"

Content = JsonObject


def sign(name: str, arguments: JsonObject, number: int) -> str:
    """Returns the signature of a call in the answer with this number."""
    return f"{number}.{_digest(name, arguments, str(number))}"


def unsigned_steps(contents: Sequence[Content]) -> Iterator[str]:
    """Yields the API's words for each step since the last question whose first call has no signature of this model.

    Sources: Gemini API, "Thought signatures"; the errors that the API returns.
    """
    for at in range(_last_question(contents) + 1, len(contents)):
        first = next((part for part in _parts(contents[at]) if "functionCall" in part), None)
        if first is None:
            continue
        call, signature = _call_of(first), first.get("thoughtSignature")
        if not signature:
            yield (
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                "work correctly, and missing thought_signature may lead to degraded model performance. Additional "
                f"data, function call `default_api:{call.get('name')}`, position {at + 1}."
            )
        elif not _is_own(call, str(signature)):
            yield "Corrupted thought signature."


def _last_question(contents: Sequence[Content]) -> int:
    for at in range(len(contents) - 1, -1, -1):
        if contents[at].get("role", "user") == "user" and any("text" in part for part in _parts(contents[at])):
            return at
    return -1


def _parts(content: Content) -> Sequence[JsonObject]:
    parts = content.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _call_of(part: JsonObject) -> JsonObject:
    call = part.get("functionCall")
    return call if isinstance(call, dict) else {}


def _is_own(call: JsonObject, signature: str) -> bool:
    arguments = call.get("args")
    number, _, digest = signature.partition(".")
    return digest == _digest(str(call.get("name")), arguments if isinstance(arguments, dict) else {}, number)


def _digest(name: str, arguments: JsonObject, number: str) -> str:
    written = msgspec.json.encode([_KEY, name, arguments, number], order="sorted")
    return hashlib.sha256(written).hexdigest()[:32]
