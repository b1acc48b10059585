"""Defines the fields that chat completions and the older completions share, and reads the sampling among them."""

from typing import Annotated

import msgspec

from gateway.core.conversation import Sampling
from gateway.dialects.field_types import Whole
from gateway.wires.table import APART, NEVER, SAMPLED, Parameter


class StreamOptions(msgspec.Struct, frozen=True):
    """`stream_options`. `include_usage` asks for a last chunk with the token counts."""

    include_usage: Annotated[bool | None, Parameter(how=None)] = None


class OpenAIFields(msgspec.Struct, frozen=True):
    """The shared fields. None: the client did not set the field."""

    model: Annotated[str, Parameter("model", read=APART, write=APART)]
    stream: Annotated[bool | None, Parameter()] = None
    stream_options: Annotated[StreamOptions | None, Parameter(how="`include_usage` adds a chunk with the tokens")] = (
        None
    )
    temperature: Annotated[float | None, Parameter("temperature", write=SAMPLED)] = None
    top_p: Annotated[float | None, Parameter("top_p", write=SAMPLED)] = None
    max_tokens: Annotated[Whole | None, Parameter("max_tokens", write=SAMPLED)] = None
    stop: Annotated[str | list[str] | None, Parameter("stop", write=SAMPLED)] = None
    seed: Annotated[Whole | None, Parameter("seed", write=SAMPLED)] = None
    n: Annotated[Whole | None, Parameter("n", "1 alone: a request gets one choice", write=NEVER)] = None
    frequency_penalty: Annotated[float | None, Parameter("frequency_penalty")] = None
    presence_penalty: Annotated[float | None, Parameter("presence_penalty")] = None
    logit_bias: Annotated[dict[str, float] | None, Parameter("logit_bias")] = None

    def sampling(self, limit: int | None) -> Sampling:
        """Returns the sampling parameters, with this limit of tokens."""
        stop = self.stop
        stops = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
        return Sampling(self.temperature, top_p=self.top_p, max_tokens=limit, stop=stops, seed=self.seed)
