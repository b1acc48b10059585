"""Defines a fault: the steps of a demo backend that differ from the regular ones."""

from collections.abc import Callable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.events import Reason
from gateway.demo.faults.editing import Edit, Options, is_stream
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Response
from gateway.demo.player.recorder import Recorder
from gateway.demo.scripted_model.dialogue import Model
from gateway.demo.scripted_model.reply import reply

Answer = TypeVar("Answer")
Serves: TypeAlias = Callable[[Handler, Recorder], Handler]

CHAT: Final = ("chat",)
# The wires with tools, and their choice, as fields of JSON.
API_WIRES: Final = ("chat", "messages", "responses", "gemini")
JSON_WIRES: Final = (*API_WIRES, "text")
ALL_WIRES: Final = (*JSON_WIRES, "grpc", "agent")

# The words that a backend with a short context reads.
CONTEXT: Final = 1000

# The option of a fault in the middle of an answer, with its usual default.
IN_THE_MIDDLE: Final[Options] = {"after": "3"}
# How many events come before the middle of an answer: behind its first words.
AFTER: Final = {"messages": "4", "responses": "6"}


def after(wire: str) -> str:
    """Returns the default of the option `after` on a wire."""
    return AFTER.get(wire, IN_THE_MIDDLE["after"])


def is_long(text: str) -> bool:
    """Returns whether a text has more words than a short context holds."""
    return len(text.split()) > CONTEXT


def _accept(_: JsonObject) -> str | None:
    return None


def _all_of(body: JsonObject) -> JsonObject:
    return body


def _regular(response: Response, _: Options) -> Response:
    return response


class Fault(msgspec.Struct, Generic[Answer], frozen=True):
    """One way in which a backend fails, or is odd. A step without a value is the regular one.

    - `kind` is the row of docs/promises.md, one of `gateway.demo.faults.kinds`, with the default options; empty: an
      answer that is served like any other, with `finish` as its finish reason.
    - `wires`: the kinds of demo backends that have the fault; empty for a fault in the table of one wire.
    - `options`: the names of the options, with their defaults.
    - `refuses` returns the words of the 400 for a JSON body, or None; `reads` returns the body as the backend
      understands it. The record of requests shows every body as it arrived.
    - `model` replies to the dialogue.
    - `plays` builds a response from the regular answer, as a stream or without an answer. `edits` edits the regular
      response, a stream or one object.
    - `serves` returns the handler of a route in place of the regular one. It is called once for each route of a
      backend that starts: only an address can ask for such a fault, no marker.
    """

    about: str
    kind: str = ""
    wires: tuple[str, ...] = ()
    options: Options = {}
    finish: Reason = "stop"
    refuses: Callable[[JsonObject], str | None] = _accept
    reads: Callable[[JsonObject], JsonObject] = _all_of
    model: Model = reply
    plays: Callable[[Answer, Options], Response] | None = None
    edits: Callable[[Response, Options], Response] = _regular
    serves: Serves | None = None

    @property
    def has_refusals(self) -> bool:
        """Whether some bodies are refused, and nothing else is done."""
        return self.refuses is not _accept

    @property
    def description(self) -> str:
        """What happens, and the options with their defaults."""
        return f"{self.about}: {', '.join(f'{name}={value}' for name, value in self.options.items())}".rstrip(": ")

    def with_options(self, options: Mapping[str, str]) -> "Fault[Answer]":
        """Returns the fault with these options. Raises ValueError for an option that it does not have."""
        if unknown := [name for name in options if name not in self.options]:
            known = ", ".join(self.options) or "none"
            raise ValueError(f"the fault has no option {unknown[0]!r}; its options: {known}")
        return msgspec.structs.replace(self, options={**self.options, **options})

    def play(self, answer: Answer, regular: Response) -> Response:
        """Returns the response that is sent in place of the regular one. Raises ValueError for an invalid option."""
        played = regular if self.plays is None else self.plays(answer, self.options)
        # One object has none of the events of a stream.
        kept = is_stream(played) and not is_stream(regular)
        return self.edits(regular if kept else played, self.options)


def edited(about: str, kind: str, edit: Edit, options: Options, wires: tuple[str, ...] = ALL_WIRES) -> Fault[object]:
    """Returns a fault that edits the regular response."""
    return Fault(about, kind, wires, options, edits=edit)
