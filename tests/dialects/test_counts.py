"""An image counts in the token counts of every API that has such a route, by its size."""

from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway

# The first bytes of a PNG of 1000 by 750 pixels.
_PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAA+gAAALuCAIAAAAAAAAA"
_URL: Final = f"data:image/png;base64,{_PNG}"
_SOURCE: Final[Json] = {"type": "base64", "media_type": "image/png", "data": _PNG}
_TEXT: Final = "Look."
# The route, the field of the count, and the same message without and with an image.
COUNTS: Final[dict[str, tuple[str, str, Json, Json]]] = {
    "anthropic_messages": (
        "/v1/messages/count_tokens",
        "input_tokens",
        {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": _TEXT}]}]},
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": _TEXT}, {"type": "image", "source": _SOURCE}]}
            ],
        },
    ),
    "openai_responses": (
        "/v1/responses/input_tokens",
        "input_tokens",
        {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": _TEXT}]}]},
        {
            "model": "m",
            "input": [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": _TEXT}, {"type": "input_image", "image_url": _URL}],
                }
            ],
        },
    ),
    "gemini": (
        "/v1beta/models/m:countTokens",
        "totalTokens",
        {"contents": [{"role": "user", "parts": [{"text": _TEXT}]}]},
        {
            "contents": [
                {"role": "user", "parts": [{"text": _TEXT}, {"inlineData": {"mimeType": "image/png", "data": _PNG}}]}
            ]
        },
    ),
}


@pytest.mark.parametrize("dialect", COUNTS)
async def test_an_image_counts_by_its_size(dialect: str) -> None:
    path, field, plain, pictured = COUNTS[dialect]
    settings: dict[str, Json] = {
        "backends": {"b": {"adapter": "openai_chat", "base_url": "demo:chat"}},
        "models": {"m": {"backend": "b"}},
    }
    async with running_gateway(settings) as gateway:
        counts = [(await gateway.client.post(path, json=body)).json()[field] for body in (plain, pictured)]
    # Anthropic's rule for the picture: width by height, divided by 750.
    assert 500 < counts[1] - counts[0] < 1600
