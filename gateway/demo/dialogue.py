"""A conversation as the scripted model sees it, whichever wire carried it."""

from typing import Literal

import msgspec

from gateway.types import EMPTY, JsonObject


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that may be called; `parameters` is its JSON Schema."""

    name: str
    description: str = ""
    parameters: JsonObject = EMPTY


class Result(msgspec.Struct, frozen=True):
    """What a call came back with."""

    name: str
    text: str
    is_error: bool = False


class Dialogue(msgspec.Struct, frozen=True):
    """The newest question, the tools, and the rounds of calls made since with their results.

    `turn` is how many turns came before, so that the same question asked again is told from the first one.
    `forced` names the only tool that may be called; `forced` and `required` leave no choice but to call.
    """

    question: str
    tools: tuple[OfferedTool, ...] = ()
    rounds: tuple[tuple[Result, ...], ...] = ()
    turn: int = 0
    choice: Literal["auto", "none", "required"] = "auto"
    forced: str | None = None
    parallel: bool = True
    reasoning: bool = False


class Call(msgspec.Struct, frozen=True):
    """A call the model makes."""

    id: str
    name: str
    arguments: JsonObject


class Reply(msgspec.Struct, frozen=True):
    """What the model says: thoughts, text, calls; each may be empty, but not all."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
