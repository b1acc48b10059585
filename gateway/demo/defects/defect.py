"""Defines a defect: the steps of a demo backend that differ from the regular ones."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.core.conversation import JsonObject
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.recorder import Recorder
from gateway.demo.scripted_model.dialogue import Model
from gateway.demo.scripted_model.reply import reply

CHAT: Final = ("chat",)
# The wires with tools, and their choice, as fields of JSON.
API_WIRES: Final = ("chat", "messages", "responses", "gemini")
JSON_WIRES: Final = (*API_WIRES, "text")
ALL_WIRES: Final = (*JSON_WIRES, "grpc", "agent")

# The words that a backend with a short context reads.
CONTEXT: Final = 1000


def is_long(text: str) -> bool:
    """Return whether a text has more words than a short context holds."""
    return len(text.split()) > CONTEXT


def _accept(_: JsonObject) -> str | None:
    return None


def _all_of(body: JsonObject) -> JsonObject:
    return body


def _same(handler: Handler, _: Recorder) -> Handler:
    return handler


class Defect(msgspec.Struct, frozen=True):
    """One way in which a backend is wrong in every response. A step without a value is the regular one.

    - `wires`: the kinds of demo backends that have the defect.
    - `refuses` returns the words of the 400 for a JSON body, or None; `reads` returns the body as the backend
      understands it. The record of requests shows every body as it arrived.
    - `model` replies to the dialogue.
    - `serves` returns the handler of a route in place of the regular one. It is called once for each route of a
      backend that starts.
    """

    about: str
    wires: tuple[str, ...]
    refuses: Callable[[JsonObject], str | None] = _accept
    reads: Callable[[JsonObject], JsonObject] = _all_of
    model: Model = reply
    serves: Callable[[Handler, Recorder], Handler] = _same


NO_DEFECT: Final = Defect("none", ALL_WIRES)
