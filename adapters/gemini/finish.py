"""Maps the end of an answer to the finish reason of the API."""

from typing import Final

from gateway.core.events import Finish, Reason

WORDS: Final[dict[Reason, str]] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "content_filter": "SAFETY",
}
# The API's further words for an answer that a filter ended.
FILTERS: Final = frozenset(
    [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
        "MODEL_ARMOR",
    ]
)


def finish_word(finish: Finish) -> str:
    """Returns the reason, the backend's own word for it if it is one of the API."""
    if finish.reason == "content_filter" and finish.raw in FILTERS:
        return finish.raw
    return WORDS[finish.reason]
