"""Spells the names of a request's fields in camelCase: clients may write each of them in snake_case, too.

Source: ProtoJSON, "JSON representation": parsers accept the lowerCamelCase name and the original field name.
"""

import re
from typing import Final

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest

# All names of more than one word that the dialect reads; those of a schema among them.
_CAMEL: Final = [
    "additionalProperties",
    "anyOf",
    "allowedFunctionNames",
    "audioTimestamp",
    "audioTranscriptionConfig",
    "cachedContent",
    "candidateCount",
    "codeExecutionResult",
    "continuationToken",
    "displayName",
    "enableAffectiveDialog",
    "enableEnhancedCivicAnswers",
    "executableCode",
    "fileData",
    "fileUri",
    "frequencyPenalty",
    "functionCall",
    "functionCallingConfig",
    "functionDeclarations",
    "functionResponse",
    "generateContentRequest",
    "generationConfig",
    "generationOutputConfig",
    "imageConfig",
    "includeServerSideToolInvocations",
    "includeThoughts",
    "inlineData",
    "maxItems",
    "maxLength",
    "maxOutputTokens",
    "maxProperties",
    "mediaResolution",
    "mimeType",
    "minItems",
    "minLength",
    "minProperties",
    "modelArmorConfig",
    "modelSelectionConfig",
    "parametersJsonSchema",
    "partialArgs",
    "presencePenalty",
    "propertyOrdering",
    "responseFormat",
    "responseJsonSchema",
    "responseLogprobs",
    "responseMimeType",
    "responseModalities",
    "responseSchema",
    "retrievalConfig",
    "routingConfig",
    "safetySettings",
    "serviceTier",
    "speechConfig",
    "stopSequences",
    "streamFunctionCallArguments",
    "systemInstruction",
    "thinkingBudget",
    "thinkingConfig",
    "thinkingLevel",
    "thoughtSignature",
    "toolCall",
    "toolConfig",
    "toolResponse",
    "topK",
    "topP",
    "translationConfig",
    "videoMetadata",
    "willContinue",
]
# The fields whose values have such names again; any other value is the client's own.
_OPENED: Final = frozenset(
    [
        "contents",
        "fileData",
        "functionCall",
        "functionCallingConfig",
        "functionDeclarations",
        "functionResponse",
        "generateContentRequest",
        "generationConfig",
        "inlineData",
        "parts",
        "systemInstruction",
        "thinkingConfig",
        "toolConfig",
        "tools",
    ]
)
_NAMES: Final = {re.sub(r"[A-Z]", lambda found: f"_{found[0].lower()}", name): name for name in _CAMEL}


def camel_case(name: str) -> str:
    """Returns the name in camelCase if the dialect reads it, else as it is."""
    return _NAMES.get(name, name)


def respelled(value: Json) -> Json:
    """Returns a value of a request with every name that the dialect reads in camelCase. Raises InvalidRequest for a
    field that is there in both spellings."""
    if type(value) is dict:
        made: dict[str, Json] = {}
        for written, inner in value.items():
            name = _NAMES.get(written, written)
            if name in made:
                raise InvalidRequest(f"{name} is there twice, in camelCase and in snake_case.", param=name)
            made[name] = respelled(inner) if name in _OPENED else inner
        return made
    if type(value) is list:
        return [respelled(item) for item in value]
    return value
