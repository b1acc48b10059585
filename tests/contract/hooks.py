"""What schemathesis draws from the published document -> requests with the names that only a settings file knows."""

from typing import Any, Final

import schemathesis

MODELS: Final = (
    "demo-agent",
    "demo-chat",
    "demo-messages",
    "demo-responses",
    "demo-gemini",
    "demo-text",
    "demo-grpc",
)


# Any: schemathesis does not type what it hands over.
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    """A model of the demo instead of another word, a known profile, and no policy keys. What has another type than the
    document says is what shall be refused, and stays."""
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(model := body.get("model"), str) and model.strip():
        body["model"] = MODELS[len(model) % len(MODELS)]
    if isinstance(body.get("profile"), str):
        body["profile"] = "openai"
    if isinstance(body.get("settings"), dict):
        body["settings"] = {}


schemathesis.hook(before_call)
