"""The table of the API: the fields of its requests, and its words.

`gateway.wires.table` says how a row is read. The API has clients and no backend here: its rows are read alone. Unknown
fields are legal; steps and tools stay untyped. The published OpenAPI document is made from these types. Source:
google-genai 3.6.1, `google.genai.interactions`: `CreateModelInteraction` and `GenerationConfig`.
"""

from typing import Annotated, Any, Final

import msgspec

from adapters.gemini.table import TIERS, Whole
from gateway.core.conversation import ChoiceWord
from gateway.core.events import Reason
from gateway.dialects.field_types import FreeObject
from gateway.wires.table import APART, NEVER, Parameter, RequestTable, Words, refused, reported

PATH: Final = "/interactions"
# The fields that hold the history.
INPUT: Final = "input"
PREVIOUS: Final = "previous_interaction_id"
# A word that is not listed would ask for what no other API has.
MODES: Final[Words[ChoiceWord]] = Words({"auto": "auto", "any": "required", "none": "none", "validated": "auto"})
LEVELS: Final = ("minimal", "low", "medium", "high", "xhigh")
SUMMARIES: Final = ("auto", "none")
# The status of an answer that has ended. An answer that a filter ended says so beside it.
STATUSES: Final[Words[Reason]] = Words(
    {"completed": "stop", "incomplete": "length", "requires_action": "tool_calls"}, {"content_filter": "incomplete"}
)


def _is_set(value: object) -> bool:
    return value is not None


def _modalities(words: list[str]) -> list[str] | None:
    """Returns the forms of an answer that is more than text."""
    modalities = [word.lower() for word in words]
    return None if modalities in ([], ["text"]) else modalities


class InteractionConfig(msgspec.Struct, frozen=True):
    """How the model answers. None: the client did not set the field."""

    temperature: Annotated[float | None, Parameter("temperature")] = None
    top_p: Annotated[float | None, Parameter("top_p")] = None
    seed: Annotated[Whole | None, Parameter("seed")] = None
    stop_sequences: Annotated[list[str] | None, Parameter("stop")] = None
    max_output_tokens: Annotated[Whole | None, Parameter("max_tokens")] = None
    thinking_level: Annotated[
        str | None,
        Parameter(
            "reasoning_effort",
            "`minimal` to `xhigh`, in any case; another word is refused",
            read=lambda word: word.lower(),
            write=APART,
        ),
    ] = None
    thinking_summaries: Annotated[
        str | None,
        Parameter(
            how="without `auto` the answer has no summaries of thoughts, but their signatures; those that are left out "
            "have a notice `REASONING_NOT_SHOWN`"
        ),
    ] = None
    tool_choice: Annotated[
        str | FreeObject | None,
        Parameter(
            "tool_choice",
            "`auto`, `any`, `none`, `validated`; `allowed_tools` is a filter (`TOOL_NOT_ALLOWED`), and an undeclared "
            "name in it a 400; another word is refused",
            read=APART,
        ),
    ] = None
    image_config: Annotated[FreeObject | None, reported()] = None
    speech_config: Annotated[Any, reported()] = None
    transcription_config: Annotated[FreeObject | None, reported()] = None
    video_config: Annotated[FreeObject | None, reported()] = None


class RequestFields(msgspec.Struct, frozen=True):
    """A request without its input. None: the client did not set the field."""

    model: Annotated[
        str | None, Parameter("model", "required; a prefix `models/` is left out", read=APART, write=APART)
    ] = None
    system_instruction: Annotated[str | None, Parameter(how="a system message before the history")] = None
    stream: Annotated[bool | None, Parameter()] = None
    tools: Annotated[
        list[FreeObject] | None,
        Parameter(
            "tools",
            "those of the type `function`; every other one is reported as `TOOL_NOT_SENT`",
            read=APART,
            write=APART,
        ),
    ] = None
    generation_config: Annotated[InteractionConfig | None, Parameter(how="field by field")] = None
    response_format: Annotated[
        FreeObject | list[FreeObject] | None,
        Parameter(
            "response_format",
            "of the type `text`, with `mime_type` and `schema`; another type is refused; a schema alone beside "
            "`response_mime_type` as well",
            read=APART,
            write=APART,
        ),
    ] = None
    response_mime_type: Annotated[
        str | None, Parameter(how="`application/json` and `text/plain`; another type is refused")
    ] = None
    response_modalities: Annotated[
        list[str] | None,
        Parameter("modalities", "`text`; others only where the backend has them", read=_modalities, write=NEVER),
    ] = None
    store: Annotated[bool | None, Parameter(how="true by default", handling="stored")] = None
    previous_interaction_id: Annotated[
        str | None,
        Parameter(how="the steps of that interaction, and of those before it, stand before `input`", handling="stored"),
    ] = None
    background: Annotated[
        bool | None,
        refused("unless it is false", reason="an interaction is made while its client waits; read it then"),
    ] = None
    agent: Annotated[
        Any, refused(asks=_is_set, reason="the gateway serves models and no agents; name a model in model")
    ] = None
    agent_config: Annotated[Any, reported()] = None
    environment: Annotated[Any, refused(asks=_is_set, reason="the gateway has no environments")] = None
    cached_content: Annotated[str | None, refused(reason="no content is cached; send it in input")] = None
    continuation_token: Annotated[
        str | None, refused(reason="no answer is cut so that a token continues it; send the whole request")
    ] = None
    service_tier: Annotated[
        str | None,
        Parameter(
            "service_tier",
            "`standard`, `flex` and `priority`; another word is reported",
            read=lambda word: TIERS.values.get(word.lower()),
            write=APART,
        ),
    ] = None
    safety_settings: Annotated[list[FreeObject] | None, reported()] = None
    labels: Annotated[FreeObject | None, reported()] = None
    webhook_config: Annotated[FreeObject | None, reported()] = None


TABLE: Final = RequestTable(
    RequestFields, {INPUT: Parameter("messages", "required; a text, contents or steps", read=APART, write=APART)}
)
FIELDS: Final = TABLE.sections[""]
CONFIG: Final = TABLE.sections["generation_config"]
