"""Fits a request into the context window of its model: the limit of the answer before it is sent, and the numbers of
the error where the backend refuses it as too long.

`context_length` of the model's entry is the window in tokens; the tokens of the prompt are an estimate.
"""

from typing import Final

import msgspec

from gateway.core.context_length import OutputLimit, Overflow
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError
from gateway.core.notices import Notice
from gateway.core.tokens import prompt_tokens

# The canonical names of the limit; a chat client may write both.
_LIMITS: Final = ("max_tokens", "max_completion_tokens")


def with_room(conversation: Conversation, window: int) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with a limit of tokens for its answer that fits beside the prompt. A prompt that is
    estimated to fill the window alone stays as it is: the backend knows better."""
    limit = conversation.sampling.max_tokens
    if limit is None:
        return conversation, []
    prompt = prompt_tokens(conversation)
    room = window - prompt
    if not 0 < room < limit:
        return conversation, []
    path = conversation.paths.param("max_tokens")
    detail = (
        f"{path} {limit} does not fit beside the prompt (about {prompt} tokens) into the context of the model "
        f"({window}); {room} is sent"
    )
    return with_limit(conversation, room), [Notice("encode", "changed", "MAX_TOKENS_LOWERED", detail)]


def with_limit(conversation: Conversation, limit: int) -> Conversation:
    """Returns the conversation with this limit of tokens for its answer."""
    path = conversation.paths.param("max_tokens")
    params, source = conversation.params, conversation.source
    return msgspec.structs.replace(
        conversation,
        sampling=msgspec.structs.replace(conversation.sampling, max_tokens=limit),
        params={**params, **{name: limit for name in _LIMITS if params.get(name) is not None}},
        source=source and source.with_field(path, limit),
    )


def with_counts(error: BackendError, conversation: Conversation, window: int | None) -> None:
    """Completes the numbers of an error about the length of the request. Clients cut as much as these say, so they are
    estimated only where they then say what the error says, and a notice tells it."""
    too_long = error.too_long
    if isinstance(too_long, OutputLimit) and too_long.asked is None:
        error.too_long = msgspec.structs.replace(too_long, asked=conversation.sampling.max_tokens)
    if not isinstance(too_long, Overflow) or too_long.counts is not None:
        return
    said = {"the number of tokens of the prompt": too_long.tokens, "the context of the model": too_long.limit}
    tokens = too_long.tokens or prompt_tokens(conversation)
    completed = Overflow(tokens, too_long.limit or window)
    if completed.counts is None:
        return
    error.too_long, error.message = completed, completed.sentence
    missing = " and ".join(name for name, value in said.items() if value is None)
    detail = f"the backend did not say {missing}: estimated, or from context_length of the model's entry"
    error.notices = (*error.notices, Notice("backend", "added", "OVERFLOW_ESTIMATED", detail, level="warning"))
