"""The tables of the API: the fields of its requests and its words.

`gateway.wires.table` says how a row is read. Unknown fields are legal; the messages of a chat stay untyped. The
published OpenAPI document is made from these types. Source: Ollama, `api/types.go` (0.32).
"""

from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.events import Reason
from gateway.dialects.field_types import FreeObject, Whole
from gateway.wires.table import APART, Parameter, RequestTable, Section, Words, refused, reported

# Ollama has no word of its own for calls and for filtered text.
DONE_REASONS: Final[Words[Reason]] = Words(
    {"stop": "stop", "length": "length"}, {"tool_calls": "stop", "content_filter": "stop"}
)
THINK_LEVELS: Final = ("low", "medium", "high", "max")
# What `think: true` asks for.
THINK_DEFAULT: Final = "medium"
# Why an answer cannot have what a field asks for, which would change its meaning.
_NO_LOGPROBS: Final = "answers have no log probabilities"
_OWN_PROMPT: Final = "only the backend knows its prompt"
_TEXT: Final = "answers are text"
# The parameters of a Modelfile that say sizes: of the context, and of the longest answer.
CONTEXT_SIZE: Final = "num_ctx"
ANSWER_SIZE: Final = "num_predict"


def limit_of(num_predict: int | None) -> int | None:
    """Returns the limit of tokens."""
    return num_predict if num_predict is not None and num_predict > 0 else None


def _response_format(form: str | Mapping[str, Json] | None) -> Json:
    if not form:
        return None
    if isinstance(form, str):
        if form != "json":
            raise InvalidRequest(f'format must be "json" or a JSON Schema; it is {form[:40]!r}.', param="format")
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"schema": dict(form)}}


def _effort(think: bool | str | None) -> str | None:
    if not isinstance(think, str):
        return THINK_DEFAULT if think else None
    if think not in THINK_LEVELS:
        words = ", ".join(THINK_LEVELS)
        raise InvalidRequest(f"think must be true, false or one of {words}; it is {think[:40]!r}.", param="think")
    return think


class OllamaFunction(msgspec.Struct, frozen=True):
    """A function that the model may call; `parameters` is a JSON Schema."""

    name: str
    description: str | None = None
    parameters: FreeObject | None = None


class OllamaTool(msgspec.Struct, frozen=True):
    """An entry of `tools`. Only the type `function` is known."""

    type: str = "function"
    function: OllamaFunction | None = None


class OllamaOptions(msgspec.Struct, frozen=True):
    """The `options` that have an equivalent at other providers. `num_predict` below 1 is no limit."""

    temperature: Annotated[float | None, Parameter("temperature")] = None
    top_p: Annotated[float | None, Parameter("top_p")] = None
    top_k: Annotated[Whole | None, Parameter("top_k")] = None
    min_p: Annotated[float | None, Parameter("min_p")] = None
    seed: Annotated[Whole | None, Parameter("seed")] = None
    num_predict: Annotated[
        Whole | None, Parameter("max_tokens", "the limit of tokens; below 1: none", read=limit_of)
    ] = None
    stop: Annotated[list[str] | None, Parameter("stop", read=lambda stops: stops or None)] = None
    repeat_penalty: Annotated[float | None, Parameter("repetition_penalty")] = None
    frequency_penalty: Annotated[float | None, Parameter("frequency_penalty")] = None
    presence_penalty: Annotated[float | None, Parameter("presence_penalty")] = None


class RequestFields(msgspec.Struct, frozen=True):
    """The fields that chat and generate requests share. None: the client did not set the field."""

    model: Annotated[str, Parameter("model", read=APART)]
    stream: Annotated[bool | None, Parameter(how="true by default")] = None
    format: Annotated[
        str | FreeObject | None, Parameter("response_format", "`json` or a JSON Schema", read=_response_format)
    ] = None
    think: Annotated[
        bool | str | None,
        Parameter(
            "reasoning_effort",
            "a level, or `true` for `medium`, is the reasoning effort; `false` leaves the "
            "model's thinking out of the answer",
            read=_effort,
        ),
    ] = None
    options: Annotated[OllamaOptions | None, Parameter(how="see below")] = None
    keep_alive: Annotated[float | str | None, reported("the gateway loads no models")] = None
    truncate: Annotated[bool | None, reported("the limits of settings.json apply")] = None
    shift: Annotated[bool | None, reported()] = None
    logprobs: Annotated[bool | None, refused(reason=_NO_LOGPROBS)] = None
    top_logprobs: Annotated[Whole | None, refused(reason=_NO_LOGPROBS)] = None
    debug_render_only: Annotated[bool | None, refused(reason=_OWN_PROMPT)] = msgspec.field(
        name="_debug_render_only", default=None
    )


class ChatFields(RequestFields, frozen=True):
    """A chat request without its messages."""

    tools: Annotated[list[OllamaTool] | None, Parameter("tools", read=APART)] = None


class GenerateFields(RequestFields, frozen=True):
    """A generate request."""

    prompt: Annotated[
        str | None, Parameter("messages", "a user turn; none, or an empty one: as no messages", read=APART)
    ] = None
    system: Annotated[str | None, Parameter(how="a system turn")] = None
    images: Annotated[list[str] | None, Parameter(how="Base64 of PNG, JPEG, GIF, WebP or BMP")] = None
    suffix: Annotated[str | None, refused(reason="it needs a model that fills in text")] = None
    template: Annotated[str | None, refused(reason=_OWN_PROMPT)] = None
    raw: Annotated[bool | None, refused(reason=_OWN_PROMPT)] = None
    context: Annotated[
        list[int] | None,
        refused(
            "send the conversation to `/api/chat`",
            reason="the gateway keeps no state; send the conversation to /api/chat",
        ),
    ] = None
    width: Annotated[Whole | None, refused(reason=_TEXT)] = None
    height: Annotated[Whole | None, refused(reason=_TEXT)] = None
    steps: Annotated[Whole | None, refused(reason=_TEXT)] = None


CHAT: Final = RequestTable(
    ChatFields,
    {
        "messages": Parameter(
            "messages",
            "none, or an empty list: an empty answer with `done_reason` `load`, or `unload` with `keep_alive` 0; no "
            "backend is asked",
            read=APART,
        ),
        "options.num_ctx": reported("and so is every other option, and every field that is not listed here"),
    },
)
GENERATE: Final = RequestTable(GenerateFields)
# The fields beside the turns, by the kind of request.
FIELDS: Final[Mapping[type[RequestFields], Section]] = {
    ChatFields: CHAT.sections[""],
    GenerateFields: GENERATE.sections[""],
}
OPTIONS: Final = CHAT.sections["options"]
