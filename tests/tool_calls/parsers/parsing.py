"""How the tests of this package drive a parser: whole, in pieces, and with what went wrong as a value."""

import itertools
import re
from collections.abc import Iterable, Sequence

import msgspec

from gateway.core.conversation import ToolCall, ToolSpec
from gateway.core.errors import BackendError
from gateway.core.events import Event, Reason, TextDelta
from gateway.core.grammar import Grammar
from gateway.core.notices import Notice
from gateway.testing.events import fold, join
from gateway.tool_calls.parsers.formats import FORMATS
from gateway.tool_calls.parsers.parser import ToolCallParser

TOOLS = (
    ToolSpec(
        "get_weather",
        "Tells the weather.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer"},
                "wind": {"type": "boolean"},
                "place": {"type": "object"},
            },
        },
    ),
    ToolSpec("write", "Writes a file.", {"type": "object", "properties": {"text": {"type": "string"}}}),
)


class Parsed(msgspec.Struct, frozen=True):
    """What came of a text; `error` is the class of what was raised, and its message."""

    events: list[Event]
    error: tuple[type[BackendError], str] | None = None

    @property
    def text(self) -> str:
        return fold(self.events).text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return fold(self.events).calls

    @property
    def notices(self) -> list[Notice]:
        return [event for event in self.events if isinstance(event, Notice)]

    @property
    def rules(self) -> list[str]:
        return [notice.rule for notice in self.notices]


def parser(name: str = "hermes_json", tools: Sequence[ToolSpec] = TOOLS) -> ToolCallParser:
    return FORMATS[name].parser(tools, "call_")


def parse(pieces: Iterable[str], name: str = "hermes_json", reason: Reason = "stop") -> Parsed:
    parsing = parser(name)
    events: list[Event] = []
    try:
        for piece in pieces:
            events += parsing.feed(piece)
        events += parsing.close(reason)
    except BackendError as error:
        return Parsed(settled(events), (type(error), error.message))
    return Parsed(settled(events))


def settled(events: list[Event]) -> list[Event]:
    """The joined events; a notice of text that stays text stands behind all of that text, wherever it was cut."""
    calm = [event for event in events if not _is_refusal(event)]
    return [*join(calm), *filter(_is_refusal, events)]


def _is_refusal(event: Event) -> bool:
    return isinstance(event, Notice) and event.rule in ("TEXT_CALL_UNKNOWN", "TEXT_CALL_BROKEN")


def cut(text: str, at: Iterable[int]) -> list[str]:
    """The text in pieces, cut at these places."""
    places = [0, *sorted({place for place in at if 0 < place < len(text)}), len(text)]
    return [text[begin:end] for begin, end in itertools.pairwise(places)]


def without_blanks(text: str) -> str:
    return re.sub(r"\s+", "", text)


def obeys_grammar(events: Iterable[Event]) -> None:
    grammar = Grammar()
    grammar.state = "OPEN"
    grammar.check(events)
    assert "OPEN" not in grammar.calls.values()


def texts(events: Iterable[Event]) -> int:
    return sum(len(event.text) for event in events if isinstance(event, TextDelta))
