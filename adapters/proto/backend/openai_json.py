"""Writes and reads OpenAI's chat completions where a message holds them as JSON, as the adapter for them does."""

from typing import Final

from msgspec.structs import replace

from adapters.openai_chat.backend import OpenAIChatAdapter
from adapters.openai_chat.backend.chunk import ChunkReader
from adapters.openai_chat.backend.encode import encode_body
from gateway.adapter import Capabilities
from gateway.core.conversation import Conversation, Json
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.framing.json_text import decode_json

CAPABILITIES: Final[Capabilities] = OpenAIChatAdapter.capabilities
_STREAM: Final = ("stream", "stream_options")


def request_json(conversation: Conversation, policy: Policy, *, streams: bool) -> tuple[Json, tuple[Notice, ...]]:
    """Returns the request and the notices of its changes. It asks for a stream with token counts if the method streams,
    even if the client did not."""
    params = {name: value for name, value in conversation.params.items() if name not in _STREAM}
    if streams:
        params |= {"stream": True, "stream_options": {"include_usage": True}}
    asked = replace(conversation, params=params, stream=streams, include_usage=streams)
    body, notices = encode_body(asked, policy)
    return decode_json(body), notices


class OpenAIChunks:
    """Reads the documents of one response: chunks, or the whole response. `seed` makes derived ids differ from those of
    earlier responses, `stops` are the client's stop sequences; `passes`: the client speaks this API."""

    def __init__(self, seed: int, stops: tuple[str, ...], *, passes: bool) -> None:
        self._reader = ChunkReader(seed, stops, passes=passes)

    def read(self, document: Json) -> list[Event]:
        """Returns the events of one document. Raises BackendError."""
        return self._reader.completion(document) if _is_whole(document) else self._reader.event(document)


def _is_whole(document: Json) -> bool:
    choices = document.get("choices") if isinstance(document, dict) else None
    return isinstance(choices, list) and any(isinstance(choice, dict) and "message" in choice for choice in choices)
