"""Defines an event of the laboratory: what is sent once, or in every answer, in place of a regular answer."""

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.demo.scripted_model.dialogue import Reply

# The APIs by the names of their demo backends.
Api: TypeAlias = Literal["chat", "responses", "messages", "gemini"]
APIS: Final[tuple[Api, ...]] = ("chat", "responses", "messages", "gemini")
# `answer`: nothing is lost, so the whole answer must be shown, if need be after another request. `words`: the answer
# cannot be had, so the client must say that something is wrong.
Demand: TypeAlias = Literal["answer", "words"]


class LabEvent(msgspec.Struct, frozen=True):
    """One event of a protocol.

    - `faults` has, for each API that knows the event, what is played: the name and the options of a fault of that
      API's demo backend, as in a marker. `{silence}` stands for a number of seconds.
    - `reply` changes what the model says, on each API of `faults`; one without a text is changed by it alone.
    - `place`: the answer that it strikes: the first one with a `call`, the first one with `text`, or the `first` one.
    - `always`: it strikes every answer; otherwise one, and whoever asks again gets a regular one.
    - `reads`: the call is whole, so that the file can be read.
    - `streamed`: it exists in a stream alone; `framed`: in a stream of server-sent events alone, and in no WebSocket.
    """

    name: str
    about: str
    demand: Demand
    faults: Mapping[str, str]
    reply: Callable[[Reply], Reply] | None = None
    place: Literal["call", "text", "first"] = "text"
    always: bool = False
    streamed: bool = False
    framed: bool = False
    reads: bool = False


def on(*apis: Api, **own: str) -> Mapping[str, str]:
    """Returns the faults of an event: none for `apis`, where the reply alone is changed, and those of `own`."""
    return {**dict.fromkeys(apis, ""), **own}


def everywhere(fault: str, **own: str) -> Mapping[str, str]:
    """Returns the faults of an event that every API has: `fault`, or that of `own`."""
    return {**dict.fromkeys(APIS, fault), **own}
