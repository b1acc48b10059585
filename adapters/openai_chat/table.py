"""The table of the API: the fields of its requests, its words, and the fields of its chunks, for both directions.

`gateway.wires.table` says how a row is read. The names and words of this API are the canonical ones, so that the table
is smaller than that of another wire: its paths are `CANONICAL_PATHS`, its tiers, efforts and finish reasons the words
of the core, and the types of its errors stand in `adapters.openai`. No loop reads its fields: the client's own fields
are the parameters of the conversation, and a backend of the same API gets them as they are. The rows are written for
the clients of other APIs.

Unknown fields are legal; the messages stay untyped. The published OpenAPI document is made from these types. Sources:
OpenAI, API reference, `POST /v1/chat/completions`. `reasoning_content` and `reasoning` are the names under which
servers of this API stream thoughts.
"""

from typing import Annotated, Final

import msgspec

from adapters.openai.fields import OpenAIFields
from adapters.openai_chat.response_models import ChatCompletionChunk
from gateway.core.conversation import ChoiceWord, Json, Role
from gateway.dialects.field_types import FreeObject, Whole
from gateway.wires.response_schema import named_schema
from gateway.wires.table import APART, NEVER, Parameter, RequestTable, Words, event_fields

# The routes of the API: clients ask the gateway below /v1, a backend is asked below its base URL.
GENERATE_PATH: Final = "/chat/completions"
MODELS_PATH: Final = "/models"
CHOICES: Final[Words[ChoiceWord]] = Words({"auto": "auto", "none": "none", "required": "required"})
# The roles of all messages but those of results.
ROLES: Final[Words[Role]] = Words(
    {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant"}, {"tool": "user"}
)

# A field that the row of its object describes in docs.
_UNLISTED: Final = Parameter(how=None)
# No event has them: only a client of the same API gets them.
_LOGPROBS: Final = "by a backend of the same API; any other one: refused"


def _response_format(form: Json) -> Json:
    """Returns the format with the name that the API requires of a schema."""
    if isinstance(form, dict) and isinstance(said := form.get("json_schema"), dict):
        return {**form, "json_schema": named_schema(said)}
    return form


class FunctionSpec(msgspec.Struct, frozen=True):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str | None = None
    parameters: FreeObject | None = None
    strict: bool | None = None


class Tool(msgspec.Struct, frozen=True):
    """An entry of `tools`. Only the type `function` is interpreted; other types reach a native backend unchanged."""

    type: str = "function"
    function: FunctionSpec | None = None


class FunctionName(msgspec.Struct, frozen=True):
    """A function by its name."""

    name: Annotated[str, _UNLISTED]


class ForcedTool(msgspec.Struct, frozen=True):
    """`tool_choice` as an object."""

    type: Annotated[str, _UNLISTED] = "function"
    function: Annotated[FunctionName | None, _UNLISTED] = None


class ChatFields(OpenAIFields, frozen=True):
    """A chat completions request without its messages. None: the client did not set the field."""

    tools: Annotated[list[Tool] | None, Parameter("tools", read=APART, write=APART)] = None
    tool_choice: Annotated[str | ForcedTool | None, Parameter("tool_choice", read=APART, write=APART)] = None
    parallel_tool_calls: Annotated[bool | None, Parameter("parallel_tool_calls", read=APART, write=APART)] = None
    max_completion_tokens: Annotated[
        Whole | None,
        Parameter("max_completion_tokens", "the newer name of `max_tokens`; it wins beside the older one", write=APART),
    ] = None
    logprobs: Annotated[bool | None, Parameter("logprobs", _LOGPROBS, write=NEVER)] = None
    top_logprobs: Annotated[Whole | None, Parameter("top_logprobs", _LOGPROBS, write=NEVER)] = None
    response_format: Annotated[FreeObject | None, Parameter("response_format", write=_response_format)] = None
    functions: Annotated[list[FunctionSpec] | None, Parameter(how="the older form of `tools`")] = None
    function_call: Annotated[str | FunctionName | None, Parameter(how="the older form of `tool_choice`")] = None


# The fields with the client's own value, of any type.
_AS_WRITTEN: Final = (
    *("audio", "metadata", "modalities", "prediction", "prompt_cache_key", "prompt_cache_retention"),
    *("reasoning_effort", "safety_identifier", "service_tier", "store", "user", "verbosity", "web_search_options"),
)
_CACHE_FIELD: Final = "in the words of the backend ([prompt-caches.md](../prompt-caches.md))"
TABLE: Final = RequestTable(
    ChatFields,
    {
        "messages": Parameter("messages", read=APART, write=APART),
        **{name: Parameter(name) for name in _AS_WRITTEN},
        **{name: Parameter(name, _CACHE_FIELD) for name in ("cache_control", "prompt_cache_options")},
        "thinking": Parameter("thinking", "in the words of the provider, where its profile has any", write=APART),
    },
)
FIELDS: Final = TABLE.sections[""]

EVENT_FIELDS: Final = event_fields(
    ChatCompletionChunk,
    {
        "": ("system_fingerprint", "service_tier", "obfuscation", "moderation", "error"),
        "choices[]": ("logprobs",),
        "choices[].delta": ("function_call", "refusal", "audio", "reasoning"),
    },
)
