"""The fields of the chunks of a stream. Source: Google's reference of generateContent."""

from typing import Final

from gateway.adapter import EventFields

EVENT_FIELDS: Final[EventFields] = {
    "": frozenset(
        [
            "candidates",
            "promptFeedback",
            "usageMetadata",
            "modelVersion",
            "modelStatus",
            "responseId",
            "createTime",
            "error",
        ]
    ),
    "candidates[]": frozenset(
        [
            "content",
            "finishReason",
            "finishMessage",
            "index",
            "safetyRatings",
            "citationMetadata",
            "tokenCount",
            "avgLogprobs",
            "logprobsResult",
            "groundingAttributions",
            "groundingMetadata",
            "urlContextMetadata",
        ]
    ),
    "candidates[].content": frozenset(["parts", "role"]),
}
