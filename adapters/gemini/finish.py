"""Maps the finish reasons of the API to those of the protocol, and back.

Source: google-genai 3.6.1, `FinishReason` and `BlockedReason`.
"""

from typing import Final

from gateway.core.errors import BackendRejected, InvalidToolCall
from gateway.core.events import Finish, Reason
from gateway.core.notices import Notice
from gateway.wires.table import Words

# After a call the API says STOP. The words of an answer that a filter ended are many.
REASONS: Final[Words[Reason]] = Words(
    {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        "CONTINUATION": "length",
        "SAFETY": "content_filter",
        "RECITATION": "content_filter",
        "LANGUAGE": "content_filter",
        "BLOCKLIST": "content_filter",
        "PROHIBITED_CONTENT": "content_filter",
        "SPII": "content_filter",
        "IMAGE_SAFETY": "content_filter",
        "IMAGE_PROHIBITED_CONTENT": "content_filter",
        "IMAGE_RECITATION": "content_filter",
        "ESCALATION": "content_filter",
        "MODEL_ARMOR": "content_filter",
    },
    nearest={"tool_calls": "STOP"},
)
# The model wrote a call that is none: to call it a stop would report a lost call as a success.
_LOST_CALLS: Final = frozenset(
    {"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"}
)
# The reasons for a prompt without an answer that a filter does not explain.
_UNEXPLAINED: Final = frozenset({"OTHER", "BLOCKED_REASON_UNSPECIFIED"})


def finish_word(finish: Finish) -> str:
    """Returns the reason, the backend's own word for it if it is one of the API."""
    if finish.raw is not None and finish.reason == REASONS.values.get(finish.raw):
        return finish.raw
    return REASONS.words[finish.reason]


def decode_finish(word: str, *, called: bool, passes: bool) -> tuple[Finish, Notice | None]:
    """Returns the Finish. `called`: the response has a call, after which the API says STOP. `passes`: the client reads
    the words of the API, gets each of them, and a Notice says that this one ends no complete response.

    Else raises InvalidToolCall for a call that the backend rejected, and BackendRejected for any other reason than
    those of a complete response: an unknown one may mean a failure.
    """
    reason = REASONS.values.get(word)
    if reason is not None:
        return Finish("tool_calls" if called and reason == "stop" else reason, word), None
    if passes:
        detail = (
            f"the backend's finish reason {word[:40]!r} is none of a complete response; the client gets it as it is"
        )
        return Finish("stop", word), Notice("backend", "seen", "FINISH_REASON_PASSED", detail, level="warning")
    if word in _LOST_CALLS:
        raise InvalidToolCall(f"The backend rejected the model's tool call: {word[:40].lower()}.")
    raise BackendRejected(f"The backend ended the response early: {word[:40].lower()}.")


def decode_block(word: str, *, passes: bool) -> Finish:
    """Returns the Finish of a prompt that was blocked before the model answered. Raises BackendRejected for a reason
    that is no filter, unless the client reads the words of the API (`passes`)."""
    if word in _UNEXPLAINED and not passes:
        raise BackendRejected(f"The backend gave no answer to the prompt: {word.lower()}.")
    return Finish("content_filter", word)
