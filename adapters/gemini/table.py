"""The table of the API: the fields of its requests, its words, and the fields of its answers, for both directions.

`gateway.wires.table` says how a row is read. Unknown fields are legal; the contents stay untyped. The published OpenAPI
document is made from these types. Names are those of the API in camelCase; `adapters.gemini.client.spelling` reads the
others. Source: Gemini API, reference, `models.generateContent`.
"""

from typing import Annotated, Any, Final, TypeAlias

import msgspec

from adapters.gemini.response_models import GenerateContentResponse
from gateway.core.conversation import ChoiceWord, Json, Role
from gateway.dialects.field_types import FreeObject
from gateway.wires.table import (
    APART,
    NEVER,
    SAMPLED,
    Parameter,
    RequestTable,
    Words,
    event_fields,
    refused,
    reported,
)

# The routes of the API: a path of models, and what is asked of one.
MODELS_PATH: Final = "/models"
GENERATE: Final = "generateContent"
STREAM: Final = "streamGenerateContent"
COUNT: Final = "countTokens"
# The API counts in 32 bits.
Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
# What ends the word of an enumeration that says nothing.
UNSPECIFIED: Final = "UNSPECIFIED"
# A word that is not listed reaches a backend of the same API.
MODES: Final[Words[ChoiceWord]] = Words(
    {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}, silent=("MODE_UNSPECIFIED",)
)
LEVELS: Final = ("THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH")
Mode: TypeAlias = Annotated[str, msgspec.Meta(examples=[*MODES.known])]
Level: TypeAlias = Annotated[str, msgspec.Meta(examples=[*LEVELS])]
# A new tier reaches a backend of the same API.
TIERS: Final[Words[str]] = Words(
    {"standard": "default", "flex": "flex", "priority": "priority"}, silent=("unspecified",)
)
ROLES: Final[Words[Role]] = Words({"user": "user", "model": "assistant", "function": "user"}, {"tool": "user"})


def _modalities(words: list[str]) -> Json:
    """Returns the forms of an answer that is more than text."""
    modalities: list[Json] = [word.lower() for word in words]
    return None if modalities in ([], ["text"]) else modalities


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

    mode: Annotated[
        Mode | None,
        Parameter(
            how="`AUTO` and `VALIDATED`: the model decides; `ANY`: it must call; `NONE`: it must not; in any case; "
            "another word is refused"
        ),
    ] = None
    allowed_function_names: Annotated[
        list[str] | None,
        Parameter(how="other functions are not offered, with a notice `TOOL_NOT_ALLOWED`; an undeclared name is a 400"),
    ] = None
    stream_function_call_arguments: Annotated[bool | None, reported("a call is always one whole part")] = None


class FunctionToolConfig(msgspec.Struct, frozen=True, rename="camel"):
    """`toolConfig`."""

    function_calling_config: Annotated[
        FunctionCallingConfig | None, Parameter("tool_choice", "field by field", read=APART, write=APART)
    ] = None
    retrieval_config: Annotated[FreeObject | None, reported()] = None
    include_server_side_tool_invocations: Annotated[bool | None, reported()] = None


class ThinkingConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How much the model thinks: a level, or a budget in tokens (0: none, -1: as it likes)."""

    include_thoughts: Annotated[
        bool | None,
        Parameter(
            how="without it the answer has no thoughts, but their signatures; thoughts that are left out have a notice "
            "`REASONING_NOT_SHOWN`"
        ),
    ] = None
    thinking_budget: Annotated[
        Whole | None,
        Parameter(
            how="0: no reasoning, up to 1024: low effort, up to 8192: medium, above: high, with a notice "
            "`EFFORT_CHANGED`; -1: the model decides"
        ),
    ] = None
    thinking_level: Annotated[
        Level | None, Parameter(how="as the reasoning effort, in any case; another word is refused")
    ] = None


class GenerationConfig(msgspec.Struct, frozen=True, rename="camel"):
    """How the model answers. None: the client did not set the field."""

    temperature: Annotated[float | None, Parameter("temperature")] = None
    top_p: Annotated[float | None, Parameter("top_p")] = None
    top_k: Annotated[Whole | None, Parameter("top_k")] = None
    max_output_tokens: Annotated[
        Whole | None, Parameter("max_tokens", write=SAMPLED, also=("max_completion_tokens",))
    ] = None
    stop_sequences: Annotated[list[str] | None, Parameter("stop", write=SAMPLED)] = None
    seed: Annotated[Whole | None, Parameter("seed")] = None
    presence_penalty: Annotated[float | None, Parameter("presence_penalty")] = None
    frequency_penalty: Annotated[float | None, Parameter("frequency_penalty")] = None
    candidate_count: Annotated[Whole | None, Parameter("n", "1; more is a 400", write=NEVER)] = None
    response_mime_type: Annotated[
        str | None,
        Parameter(
            "response_format", "`text/plain` and `application/json`; another type is refused", read=APART, write=APART
        ),
    ] = None
    response_schema: Annotated[FreeObject | None, Parameter(how="translated to JSON Schema")] = None
    response_json_schema: Annotated[FreeObject | None, Parameter()] = None
    response_modalities: Annotated[
        list[str] | None,
        Parameter("modalities", "`TEXT`; others only where the backend has them", read=_modalities, write=NEVER),
    ] = None
    response_logprobs: Annotated[bool | None, refused()] = None
    logprobs: Annotated[Whole | None, refused()] = None
    response_format: Annotated[Any, refused(asks=lambda value: value is not None)] = None
    thinking_config: Annotated[
        ThinkingConfig | None,
        Parameter("reasoning_effort", "field by field", read=APART, write=APART, also=("thinking",)),
    ] = None
    speech_config: Annotated[FreeObject | None, reported()] = None
    image_config: Annotated[FreeObject | None, reported()] = None
    media_resolution: Annotated[Any, reported()] = None
    enable_enhanced_civic_answers: Annotated[bool | None, reported()] = None
    enable_affective_dialog: Annotated[bool | None, reported()] = None
    audio_timestamp: Annotated[bool | None, reported()] = None
    audio_transcription_config: Annotated[FreeObject | None, reported()] = None
    translation_config: Annotated[FreeObject | None, reported()] = None
    routing_config: Annotated[FreeObject | None, reported()] = None
    model_selection_config: Annotated[FreeObject | None, reported()] = None
    model_armor_config: Annotated[FreeObject | None, reported()] = None
    generation_output_config: Annotated[FreeObject | None, reported()] = None


class RequestFields(msgspec.Struct, frozen=True, rename="camel"):
    """A request without its contents. `model` stands in the path; a request without a path has it here."""

    model: Annotated[
        str | None, Parameter("model", "in the path; in the body only of a saved request", read=APART, write=APART)
    ] = None
    system_instruction: Annotated[Any, Parameter(how="text parts; another part is refused")] = None
    tools: Annotated[
        list[GeminiTool] | None,
        Parameter(
            "tools",
            "`functionDeclarations` with `parameters` (translated to JSON Schema) or `parametersJsonSchema`; every "
            "other tool is reported as `TOOL_NOT_SENT`; one object is read as a list of one",
            read=APART,
            write=APART,
        ),
    ] = None
    tool_config: Annotated[FunctionToolConfig | None, Parameter(how="field by field")] = None
    generation_config: Annotated[GenerationConfig | None, Parameter(how="field by field")] = None
    safety_settings: Annotated[list[FreeObject] | None, reported()] = None
    cached_content: Annotated[str | None, refused("it refers to state of the backend")] = None
    continuation_token: Annotated[str | None, refused("it refers to state of the backend")] = None
    store: Annotated[bool | None, Parameter("store", "where the backend stores answers", write=NEVER)] = None
    service_tier: Annotated[
        str | None,
        Parameter(
            "service_tier",
            "`standard`, `flex` and `priority`; another word is reported",
            read=lambda word: TIERS.values.get(word.lower()),
            write=APART,
        ),
    ] = None
    labels: Annotated[FreeObject | None, reported()] = None


TABLE: Final = RequestTable(RequestFields, {"contents": Parameter("messages", "below", read=APART, write=APART)})
CONFIG: Final = TABLE.sections["generationConfig"]
FIELDS: Final = TABLE.sections[""]

EVENT_FIELDS: Final = event_fields(
    GenerateContentResponse,
    {
        "": ("promptFeedback", "modelStatus", "createTime", "error"),
        "candidates[]": (
            "finishMessage",
            "safetyRatings",
            "citationMetadata",
            "tokenCount",
            "avgLogprobs",
            "logprobsResult",
            "groundingAttributions",
            "groundingMetadata",
            "urlContextMetadata",
        ),
        "candidates[].content": (),
    },
)
