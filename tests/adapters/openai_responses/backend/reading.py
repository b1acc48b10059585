"""Decodes recorded answers for tests."""

from typing import Final

from adapters.openai_responses.backend import OpenAIResponsesAdapter, OpenAIResponsesOptions
from gateway.core.conversation import Conversation, JsonObject, Source, Text, ToolSpec, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, Finish, ResponseStart
from gateway.core.notices import Notice
from gateway.testing.events import join
from gateway.testing.replay import replay

ADAPTER = OpenAIResponsesAdapter(OpenAIResponsesOptions(), 1 << 20)
OWN = "openai_responses"
OTHER = "openai_chat"
# The custom tool of each request.
RUN: Final[JsonObject] = {"type": "custom", "name": "run"}
TOOL: Final = ToolSpec("run", extra={"type": "custom", "custom": {}})
# The events with which every answer of the tests begins, and a complete one ends.
START: Final = ResponseStart("r1", "m")
STOP: Final = Finish("stop", "completed")


def decoded(wire: bytes, dialect: str = OTHER) -> list[Event]:
    """The events of an answer to a client of this dialect, deltas joined, without the notices."""
    return join([event for event in played(wire, dialect) if not isinstance(event, Notice)])


def rules(wire: bytes, dialect: str = OTHER) -> list[str]:
    """The rules of the notices."""
    return [event.rule for event in played(wire, dialect) if isinstance(event, Notice)]


def failure(wire: bytes, dialect: str = OTHER) -> BackendError | None:
    """The error that ends an answer, with the events before it."""
    try:
        played(wire, dialect)
    except BackendError as error:
        return error
    return None


def played(wire: bytes, dialect: str) -> list[Event]:
    """All events of an answer to a client of this dialect. Raises BackendError."""
    conversation = Conversation(
        (Turn("user", (Text("x"),)),), (TOOL,), dialect=dialect, source=Source(OWN, {"tools": [{**RUN}]})
    )
    return replay(ADAPTER.decoder(conversation), [wire])
