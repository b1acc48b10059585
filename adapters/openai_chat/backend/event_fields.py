"""The fields of the chunks of a stream. Source: OpenAI's reference of Chat Completions.

`reasoning_content` and `reasoning` are the names under which servers of this API stream thoughts.
"""

from typing import Final

from gateway.adapter import EventFields

EVENT_FIELDS: Final[EventFields] = {
    "": frozenset(
        [
            "id",
            "object",
            "created",
            "model",
            "system_fingerprint",
            "service_tier",
            "choices",
            "usage",
            "obfuscation",
            "moderation",
            "error",
        ]
    ),
    "choices[]": frozenset(["index", "delta", "logprobs", "finish_reason"]),
    "choices[].delta": frozenset(
        ["role", "content", "tool_calls", "function_call", "refusal", "audio", "reasoning_content", "reasoning"]
    ),
}
