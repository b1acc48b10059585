"""Defines the answers of the dialect as msgspec types, for the published document. Unlisted fields are legal."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from adapters.openai.usage import Usage
from gateway.dialects.dragoman_field import Diagnostics


class CompletionChoice(Struct, frozen=True):
    """The only choice, or a piece of it: the texts of all pieces concatenate. The last one has the finish reason."""

    text: str
    index: Literal[0]
    logprobs: None
    finish_reason: Literal["stop", "length", "content_filter"] | None


class Completion(Struct, frozen=True):
    """A whole answer, or a piece of a streamed one. A last piece without choices may hold `usage` and `dragoman`."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | UnsetType | None = UNSET
    dragoman: Diagnostics | UnsetType = UNSET
