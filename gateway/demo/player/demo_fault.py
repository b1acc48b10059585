"""Defines a fault that a demo backend plays on demand."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeAlias, TypeVar

import msgspec

from gateway.core.events import Reason
from gateway.demo.player.playback import Response

Options: TypeAlias = Mapping[str, str]
Answer = TypeVar("Answer")


class DemoFault(msgspec.Struct, Generic[Answer], frozen=True):
    """`play` builds the response from the regular answer and the marker's options. `kind` is one of
    `gateway.demo.fault_kinds`, with the default options; empty: an answer that is served like any other, with `finish`
    as its finish reason."""

    about: str
    play: Callable[[Answer, Options], Response]
    kind: str = ""
    finish: Reason = "stop"
