"""Reads what the laboratory needs from a request of the client."""

from typing import Final

import msgspec

from gateway.demo.lab.event import Api
from gateway.demo.lab.model import PHRASE, reading_tool
from gateway.demo.scripted_model.dialogue import Dialogue

# Of a result that a client sends back, the beginning tells what it is.
_KEPT: Final = 2000


class Seen(msgspec.Struct, frozen=True):
    """A request for an answer. `tools`: it offers any; `reads` is the name of the one that reads a file, or empty.
    `own`: it is of the client's conversation, and not one that it makes beside it. `results` are the texts that the
    client has sent back for the newest calls. `refused` are the words with which it was refused because it breaks the
    protocol, or empty. `struck`: its answer was that of the event."""

    api: Api
    streams: bool
    websocket: bool = False
    tools: bool = False
    reads: str = ""
    own: bool = False
    rounds: int = 0
    results: tuple[str, ...] = ()
    refused: str = ""
    struck: bool = False


def read_seen(api: Api, dialogue: Dialogue, streams: bool, websocket: bool = False) -> Seen:
    """Returns what a request says."""
    reading = reading_tool(dialogue)
    newest = dialogue.rounds[-1] if dialogue.rounds else ()
    return Seen(
        api,
        streams,
        websocket,
        bool(dialogue.tools),
        "" if reading is None else reading.name,
        PHRASE in dialogue.question,
        len(dialogue.rounds),
        tuple(result.text[:_KEPT] for result in newest),
    )
