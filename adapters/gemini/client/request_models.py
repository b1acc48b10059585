"""Defines a request without its contents as msgspec types; the contents stay untyped.

Unknown fields are legal. The published OpenAPI document is made from these types. Names are those of the API in
camelCase; `adapters.gemini.client.spelling` reads the others.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from gateway.dialects.field_types import FreeObject

# The API counts in 32 bits.
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
# What ends the word of an enumeration that says nothing.
UNSPECIFIED: Final = "UNSPECIFIED"
# A word that is not listed reaches a backend of the same API.
MODES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
LEVELS: Final = ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
Mode: TypeAlias = Annotated[str, msgspec.Meta(examples=[*MODES])]
Level: TypeAlias = Annotated[str, msgspec.Meta(examples=[*LEVELS])]


class FunctionDeclaration(msgspec.Struct, frozen=True, rename="camel"):
    """A function that the model may call; its parameters are a schema of the API or a JSON Schema."""

    name: str
    description: str | None = None
    parameters: FreeObject | None = None
    parameters_json_schema: FreeObject | None = None


class GeminiTool(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of `tools`. Its other fields are tools of the provider (`googleSearch`), one each."""

    function_declarations: list[FunctionDeclaration] | None = None


class FunctionCallingConfig(msgspec.Struct, frozen=True, rename="camel"):
    """Whether the model may, must or must not call functions, and which."""

    mode: Mode | None = None
    allowed_function_names: list[str] | None = None
    stream_function_call_arguments: bool | None = None


class FunctionToolConfig(msgspec.Struct, frozen=True, rename="camel"):
    """`toolConfig`."""

    function_calling_config: FunctionCallingConfig | None = None
    retrieval_config: FreeObject | None = None
    include_server_side_tool_invocations: bool | None = None


class ThinkingConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How much the model thinks: a level, or a budget in tokens (0: none, -1: as it likes)."""

    include_thoughts: bool | None = None
    thinking_budget: Whole | None = None
    thinking_level: Level | None = None


class GenerationConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How the model answers. None: the client did not set the field."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: Whole | None = None
    max_output_tokens: Whole | None = None
    stop_sequences: list[str] | None = None
    seed: Whole | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    candidate_count: Whole | None = None
    response_mime_type: str | None = None
    response_schema: FreeObject | None = None
    response_json_schema: FreeObject | None = None
    response_format: Any = None
    response_modalities: list[str] | None = None
    response_logprobs: bool | None = None
    logprobs: Whole | None = None
    thinking_config: ThinkingConfig | None = None
    speech_config: FreeObject | None = None
    image_config: FreeObject | None = None
    media_resolution: Any = None
    enable_enhanced_civic_answers: bool | None = None
    enable_affective_dialog: bool | None = None
    audio_timestamp: bool | None = None
    audio_transcription_config: FreeObject | None = None
    translation_config: FreeObject | None = None
    routing_config: FreeObject | None = None
    model_selection_config: FreeObject | None = None
    model_armor_config: FreeObject | None = None
    generation_output_config: FreeObject | None = None


class RequestFields(msgspec.Struct, frozen=True, rename="camel"):
    """A request without its contents. `model` stands in the path; a request without a path has it here."""

    model: str | None = None
    system_instruction: Any = None
    tools: list[GeminiTool] | None = None
    tool_config: FunctionToolConfig | None = None
    generation_config: GenerationConfig | None = None
    safety_settings: list[FreeObject] | None = None
    cached_content: str | None = None
    continuation_token: str | None = None
    service_tier: str | None = None
    store: bool | None = None
    labels: FreeObject | None = None


_CONTENTS = {
    "description": "The turns, oldest first.",
    "items": {
        "description": "A content as the API knows it: an object with `role` and `parts`. A content of any other shape "
        "is repaired with a notice, or refused if `repair` is `strict`.",
    },
}


class GenerateContentRequest(RequestFields, frozen=True, kw_only=True, rename="camel"):
    """A request to a model. Fields that are not listed are legal. For the published document only."""

    contents: Annotated[list[Any], msgspec.Meta(min_length=1, extra_json_schema=_CONTENTS)] | FreeObject


class CountContentTokensRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request for a number of tokens: of contents, or of a whole request. For the published document only."""

    contents: list[Any] | FreeObject | None = None
    generate_content_request: GenerateContentRequest | None = None


class ExplainContentRequest(GenerateContentRequest, frozen=True, kw_only=True, rename="camel"):
    """A request with its model in `model`; without one it is for the first model. `profile` and `settings` (policy
    keys) override those of the model."""

    profile: str | None = None
    settings: FreeObject | None = None
