"""Defines the adapter's keys in a backend entry of settings.json."""

from typing import Annotated, Literal

import msgspec

from adapters.anthropic_messages.table import GENERATE_PATH


class AnthropicMessagesOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The adapter's keys in a backend entry. `path` is joined to the entry's base_url.

    - `version`: the value of the header `anthropic-version`.
    - `max_tokens`: sent for a request without a limit of its own, because the API requires one.
    - `prompted`: a JSON schema of `response_format` is sent as `output_config.format`, and other formats are rejected.
      If it is listed here, the prompt asks for the format, and a response that does not have it is an error.
    - `thinking`: how a client's reasoning effort is sent: as `effort`, with adaptive thinking, or as a `budget` of
      tokens, for models without it.
    """

    path: str = GENERATE_PATH
    version: str = "2023-06-01"
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] = 8192
    prompted: tuple[Literal["response_format"], ...] = ()
    thinking: Literal["effort", "budget"] = "effort"
