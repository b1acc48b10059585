"""What an adapter's author hands to the conformance kit: the adapter as settings.json would name it, and an answer."""

from typing import Any, Protocol

import msgspec

from gateway.adapter import Adapter
from gateway.conversation.prepare import prepare
from gateway.events import Event
from gateway.policy import Policy
from gateway.settings import check_options
from gateway.types import EMPTY, Conversation, JsonObject, Text, Turn

MAX_EVENT = 4 << 20

GREETING = Conversation((Turn("user", (Text("Good morning."),), index=0),), model="model", stream=True)


class AdapterClass(Protocol):
    """The class of an adapter, as the gateway sees it."""

    @property
    def Options(self) -> type[msgspec.Struct]: ...

    def __call__(self, options: Any, max_event: int) -> Adapter: ...  # Any: each adapter has its own type of options


class Case(msgspec.Struct, frozen=True):
    """One adapter, one conversation, and the bytes of one complete and flawless answer to it.

    `expected`: the events of the answer, deltas joined; empty: not compared. `options` are the adapter's own keys
    of its backend entry in settings.json. Choose an answer of one or two kilobytes: it is also cut at every byte.
    `marks_end` is false for a wire on which only HTTP tells where the answer ends: there a cut cannot be seen in it.
    """

    name: str
    adapter: AdapterClass
    wire: bytes
    expected: tuple[Event, ...] = ()
    conversation: Conversation = GREETING
    policy: Policy = Policy()
    options: JsonObject = EMPTY
    marks_end: bool = True

    def __str__(self) -> str:
        return f"{self.adapter_name}-{self.name}"

    @property
    def adapter_name(self) -> str:
        return getattr(self.adapter, "__name__", "adapter")

    def build(self, max_event: int = MAX_EVENT) -> Adapter:
        """A new adapter, made as the gateway makes it. Raises SettingsError for wrong options."""
        return self.adapter(check_options(self.options, self.adapter.Options, "options"), max_event)

    def prepared(self) -> Conversation:
        """The conversation after the passes, as an adapter receives it."""
        return prepare(self.conversation, self.policy).conversation
