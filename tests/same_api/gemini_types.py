"""Prints values of Google's published types, for `gemini.json`: run it where the SDK is installed.

python -m tests.same_api.gemini_types > tests/same_api/gemini.json
"""

import importlib
import json
import sys
from typing import Any

from tests.same_api.samples import hints, samples

# The schemas of functions hold themselves.
_DEPTH = 5


def published() -> dict[str, Any]:  # Any: JSON
    """Returns values of the types of a request and of an answer, by what they are part of."""
    types = importlib.import_module("google.genai.types")
    return {
        "sdk": f"google-genai {importlib.import_module('google.genai').__version__}",
        "config": fields(types.GenerationConfig) | fields(types.GenerateContentConfig, _BESIDE | _OF_SDK),
        "request": {name: value for name, value in fields(types.GenerateContentConfig).items() if name in _BESIDE},
        "tools": fields(types.Tool),
        "parts": parts(types.Part),
        "response": fields(types.GenerateContentResponse, _OF_SDK),
        "candidate": fields(types.Candidate),
        "usage": fields(types.GenerateContentResponseUsageMetadata),
        "feedback": fields(types.GenerateContentResponsePromptFeedback),
        "reasons": [reason.value for reason in types.FinishReason],
    }


def fields(model: type, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Returns a value of each field of an object."""
    found = {name: samples(hint, _DEPTH) for name, hint in hints(model).items() if name not in without}
    return {name: values[0] for name, values in found.items() if values}


def parts(model: type) -> list[dict[str, Any]]:
    """Returns parts with one field each, those of data with each field that may stand beside them."""
    single = fields(model)
    beside = {name: value for name, value in single.items() if name not in _DATA}
    return [{name: value, **(beside if name in _DATA else {})} for name, value in single.items()]


# What of a request stands beside the contents and `generationConfig`.
_BESIDE = frozenset(
    ("toolConfig", "safetySettings", "cachedContent", "labels", "serviceTier", "continuationToken", "store")
)
# What the SDK itself reads or adds.
_OF_SDK = frozenset(
    (
        "automaticContinuation",
        "automaticFunctionCalling",
        "automaticFunctionCallingHistory",
        "httpOptions",
        "parsed",
        "sdkHttpResponse",
        "shouldReturnHttpResponse",
        "systemInstruction",
    )
)
# A part is one of these.
_DATA = frozenset(
    (
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
        "audioTranscription",
    )
)


if __name__ == "__main__":
    json.dump(published(), sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")
