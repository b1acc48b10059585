"""The table of the API: the fields of its requests, which have the names of chat completions but for the prompt.

`gateway.wires.table` says how a row is read. The API has clients and no backend here: its rows are read alone, its
finish reasons are the words of the core, and its token counts and errors stand in `adapters.openai`. As in chat
completions no loop reads the fields: those of the client are the parameters of the conversation, without the ones that
are read apart, refused or reported.

Unknown fields are legal. The published OpenAPI document is made from these types. Source: OpenAI, API reference,
`POST /v1/completions`.
"""

from typing import Annotated, Any, Final

from adapters.openai.fields import OpenAIFields
from gateway.dialects.field_types import Whole
from gateway.wires.table import APART, Parameter, RequestTable, refused, reported

# The limit of tokens of a request that sets none.
DEFAULT_MAX_TOKENS: Final = 16
# Why only a raw model could honour a field.
_OF_RAW_MODELS: Final = "the models behind the gateway answer in a chat"
# Fields of chat completions that mean something only beside messages. The page for clients lists them in one sentence.
_OF_CHAT: Final = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"),
    "max_completion_tokens",
)


def _is_several(number: int | None) -> bool:
    return number not in (None, 1)


class CompletionFields(OpenAIFields, frozen=True):
    """A completions request. None: the client did not set the field. Any: the prompt has error texts of its own."""

    prompt: Annotated[
        Any, Parameter("messages", "text, or a list of one text; several texts and tokens are refused", read=APART)
    ] = None
    max_tokens: Annotated[
        Whole | None, Parameter("max_tokens", f"{DEFAULT_MAX_TOKENS} by default, as the API has it", read=APART)
    ] = None
    n: Annotated[Whole | None, refused("above 1", asks=_is_several, reason=_OF_RAW_MODELS)] = None
    logit_bias: Annotated[dict[str, float] | None, refused(reason=_OF_RAW_MODELS)] = None
    suffix: Annotated[str | None, refused(reason=_OF_RAW_MODELS)] = None
    echo: Annotated[bool | None, refused(reason=_OF_RAW_MODELS)] = None
    best_of: Annotated[Whole | None, refused("above 1", asks=_is_several, reason=_OF_RAW_MODELS)] = None
    logprobs: Annotated[Whole | None, refused(asks=lambda value: value is not None, reason=_OF_RAW_MODELS)] = None
    user: Annotated[str | None, Parameter("user")] = None


TABLE: Final = RequestTable(CompletionFields, {name: reported(None) for name in _OF_CHAT})
FIELDS: Final = TABLE.sections[""]
