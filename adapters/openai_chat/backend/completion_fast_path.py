# fast path: "requests/s", decodes a whole answer into its types in one step
# budget: "request"
# law: tests/adapters/openai_chat/backend/test_completion_fast_path.py
#      test_every_answer_means_what_it_means_when_read_in_full
"""Decodes the bytes of a whole response that holds one text choice and nothing else.

Nearly every whole response has this form. The types list the fields it may have; a response with any other field is
read in full.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from adapters.openai_chat.finish import REASONS
from gateway.core.conversation import EMPTY, Json, JsonObject
from gateway.core.events import MOST_TOKENS, Event, Finish, PassthroughFields, ResponseStart, TextDelta, UsageReport

_Empty: TypeAlias = Annotated[list[None], msgspec.Meta(max_length=0)]
_Numbers: TypeAlias = dict[str, int | float | None]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Usage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_tokens: _Count | None = None
    prompt_tokens_details: _Numbers | None = None
    completion_tokens_details: _Numbers | None = None


class _Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    content: Annotated[str, msgspec.Meta(min_length=1)]
    role: str | None = None
    refusal: None = None
    annotations: _Empty | None = None
    reasoning_content: Literal["", None] = None
    reasoning: None = None
    tool_calls: _Empty | None = None
    function_call: None = None
    audio: None = None


class _Choice(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    message: _Message
    finish_reason: str
    index: Literal[0, None] = None
    logprobs: None = None
    stop_reason: None = None
    token_ids: None = None


class _Answer(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    choices: tuple[_Choice]
    id: str | None = None
    object: Literal["chat.completion", None] = None
    created: int | float | None = None
    model: str | None = None
    usage: _Usage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    timings: _Numbers | None = None
    prompt_logprobs: None = None
    prompt_token_ids: None = None
    kv_transfer_params: None = None


# Fields that are passed through for the client to interpret.
_OF_ANSWER: Final = ("service_tier", "system_fingerprint", "timings")
_OF_USAGE: Final = ("prompt_tokens_details", "completion_tokens_details")
_FINISHES: Final = {word: Finish(reason, word) for word, reason in REASONS.values.items()}

_decode = msgspec.json.Decoder(_Answer).decode


def read_plain(body: bytes) -> list[Event] | None:
    """Returns the same events that `ChunkReader` returns. None: the response has another form or is not valid, and must
    be read in full."""
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    choice = answer.choices[0]
    finish = _FINISHES.get(choice.finish_reason)
    if finish is None:
        return None
    events: list[Event] = [ResponseStart(answer.id or None, answer.model or None)]
    if unknown := _present(answer, _OF_ANSWER):
        events.append(PassthroughFields("response", unknown))
    if choice.message.annotations is not None:
        events.append(PassthroughFields("delta", {"annotations": []}))
    events += (TextDelta(choice.message.content), finish)
    if (usage := answer.usage) is not None:
        extra = _present(usage, _OF_USAGE)
        events.append(UsageReport(usage.prompt_tokens, usage.completion_tokens, usage.total_tokens, False, extra))
    return events


def _present(answer: _Answer | _Usage, fields: Sequence[str]) -> JsonObject:
    present: dict[str, Json] = {}
    for field in fields:
        value = getattr(answer, field)
        if value is not None:
            present[field] = value
    return present or EMPTY
