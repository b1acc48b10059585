"""Defines the fields that chat completions and the older completions share, and reads the sampling among them."""

import msgspec

from gateway.core.conversation import Sampling
from gateway.dialects.field_types import Whole


class StreamOptions(msgspec.Struct, frozen=True):
    """`stream_options`. `include_usage` asks for a last chunk with the token counts."""

    include_usage: bool | None = None


class OpenAIFields(msgspec.Struct, frozen=True):
    """The shared fields. None: the client did not set the field."""

    model: str
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: Whole | None = None
    stop: str | list[str] | None = None
    seed: Whole | None = None
    n: Whole | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None

    def sampling(self, limit: int | None) -> Sampling:
        """Returns the sampling parameters, with this limit of tokens."""
        stop = self.stop
        stops = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
        return Sampling(self.temperature, top_p=self.top_p, max_tokens=limit, stop=stops, seed=self.seed)
