"""Defines the conversation that the scripted model receives, independent of the wire."""

from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from gateway.core.conversation import EMPTY, JsonObject


class OfferedTool(msgspec.Struct, frozen=True):
    """A tool that may be called; `parameters` is its JSON Schema."""

    name: str
    description: str = ""
    parameters: JsonObject = EMPTY


class Result(msgspec.Struct, frozen=True):
    """The result of a call."""

    name: str
    text: str
    is_error: bool = False


class Dialogue(msgspec.Struct, frozen=True):
    """The newest question, the tools, and the rounds of calls since the question with their results.

    `turn` is the number of turns before the question; it distinguishes a repeated question from the first one.
    `folder` is the user's working folder, if the client named one. `pictures` are the `data:` URLs beside the question.
    `forced` names the only tool that may be called; `forced` and `required` each make a call mandatory.
    """

    question: str
    tools: tuple[OfferedTool, ...] = ()
    rounds: tuple[tuple[Result, ...], ...] = ()
    turn: int = 0
    choice: Literal["auto", "none", "required"] = "auto"
    forced: str | None = None
    parallel: bool = True
    reasoning: bool = False
    folder: str = ""
    pictures: tuple[str, ...] = ()


class PlannedCall(msgspec.Struct, frozen=True):
    """A call of the model."""

    id: str
    name: str
    arguments: JsonObject


class Reply(msgspec.Struct, frozen=True):
    """The model's output: thoughts, text, calls. Each may be empty, but not all."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()
    reasoning: str = ""


Model: TypeAlias = Callable[[Dialogue], Reply]
