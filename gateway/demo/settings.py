"""Names a model for each demo backend, as settings.json would: the settings of `dragoman demo`."""

from typing import Final

from gateway.core.conversation import Json

DEMO_SETTINGS: Final[Json] = {
    "profiles": {"plain-names": {"base": "none", "tool_names": {"characters": "A-Za-z0-9_-", "longest": 64}}},
    "backends": {
        "demo-agent": {"adapter": "warp", "base_url": "demo:agent"},
        "demo-chat": {"adapter": "openai_chat", "base_url": "demo:chat"},
        "demo-messages": {"adapter": "anthropic_messages", "base_url": "demo:messages", "profile": "plain-names"},
        "demo-responses": {"adapter": "openai_responses", "base_url": "demo:responses"},
        "demo-gemini": {"adapter": "gemini", "base_url": "demo:gemini"},
        "demo-text": {"adapter": "text", "base_url": "demo:text"},
        "demo-grpc": {"adapter": "proto", "preset": "demo", "base_url": "demo:grpc"},
    },
    "models": {
        "demo-agent": {"backend": "demo-agent", "name": "auto"},
        "demo-chat": {"backend": "demo-chat"},
        "demo-messages": {"backend": "demo-messages"},
        "demo-responses": {"backend": "demo-responses"},
        "demo-gemini": {"backend": "demo-gemini"},
        "demo-text": {"backend": "demo-text"},
        "demo-grpc": {"backend": "demo-grpc"},
    },
    "inspector": {"contents": "always"},
    "log": {"file": None},
}
