"""Spells the names of a request's fields in camelCase: clients may write each of them in snake_case, too.

Source: ProtoJSON, "JSON representation": parsers accept the lowerCamelCase name and the original field name.
"""

import re
from typing import Final

from adapters.gemini.table import TABLE
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest

# All names of more than one word that the dialect reads; those of a schema among them.
_CAMEL: Final = [
    *TABLE.names,
    "additionalProperties",
    "anyOf",
    "codeExecutionResult",
    "displayName",
    "executableCode",
    "fileData",
    "fileUri",
    "functionCall",
    "functionDeclarations",
    "functionResponse",
    "generateContentRequest",
    "inlineData",
    "maxItems",
    "maxLength",
    "maxProperties",
    "mimeType",
    "minItems",
    "minLength",
    "minProperties",
    "parametersJsonSchema",
    "partialArgs",
    "propertyOrdering",
    "thoughtSignature",
    "toolCall",
    "toolResponse",
    "videoMetadata",
    "willContinue",
]
# The fields whose values have such names again; any other value is the client's own.
_OPENED: Final = frozenset(
    [
        *TABLE.holders,
        "contents",
        "fileData",
        "functionCall",
        "functionDeclarations",
        "functionResponse",
        "generateContentRequest",
        "inlineData",
        "parts",
        "systemInstruction",
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
