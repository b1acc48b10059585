"""Reads what the script needs from a llama.cpp completion request; it interprets the prompt as a model does."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

import msgspec

from adapters.text.demo.transcript import TextTurn, read_transcript
from gateway.core.conversation import EMPTY, JsonObject
from gateway.demo.player.endpoint import Refused
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder

OPENER: Final = "<tool_call>"
CLOSER: Final = "</tool_call>"

_CUE: Final = re.compile(r"(?:\A|\n\n)Assistant:\s*(<tool_call>\s*)?\Z")
_CALL: Final = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.S)
_FORCED: Final = re.compile(r"^You must call (?:the function (\S+)|a function) now", re.M)
_ONE: Final = "Call at most one function"


class Completion(msgspec.Struct, frozen=True):
    """The supported fields of the body of `POST /completion`; other fields are ignored, as the server does."""

    prompt: str
    n_predict: int = -1
    stop: tuple[str, ...] = ()
    stream: bool = False
    json_schema: dict[str, Any] | None = None  # Any: a schema is JSON of unknown shape


class TextRequest(msgspec.Struct, frozen=True):
    """A decoded request. `marked_question` is the newest question with its markers; `prefilled`: the response begins
    inside a call."""

    completion: Completion
    dialogue: Dialogue
    marked_question: str
    prefilled: bool


class _Called(msgspec.Struct):
    name: str = ""


class _Offered(msgspec.Struct):
    name: str
    parameters: dict[str, Any]
    description: str = ""


def read_completion(body: JsonObject) -> TextRequest:
    """Decodes a body. Raises Refused for one that is not a completion request."""
    try:
        completion = msgspec.convert(body, Completion)
    except ValueError as error:
        raise Refused(f"the body is not a completion request: {error}") from error
    cue = _CUE.search(completion.prompt)
    transcript = completion.prompt[: cue.start()] if cue else completion.prompt
    turns = read_transcript(transcript)
    newest, marked_question = _question(turns)
    instructions = "\n".join(turn.text for turn in turns if turn.speaker == "system")
    forced, choice = _choice(instructions)
    return TextRequest(
        completion,
        Dialogue(
            question=without_markers(marked_question),
            tools=tuple(_tools(instructions)),
            rounds=_rounds(turns[newest + 1 :]),
            turn=max(newest, 0),
            choice=choice,
            forced=forced,
            parallel=_ONE not in instructions,
            folder=working_folder(transcript),
        ),
        marked_question,
        cue is not None and cue.group(1) is not None,
    )


def _question(turns: Sequence[TextTurn]) -> tuple[int, str]:
    for at in range(len(turns) - 1, -1, -1):
        question = own_words(turns[at].text) if turns[at].speaker == "user" and not _continues(turns, at) else ""
        if question:
            return at, question
    return -1, ""


def _continues(turns: Sequence[TextTurn], at: int) -> bool:
    """Returns whether a user's turn only asks to continue with the results before it."""
    after_result = at > 0 and turns[at - 1].speaker == "result"
    return after_result and turns[at].speaker == "user" and "tool result" in turns[at].text.lower()


def _rounds(turns: Sequence[TextTurn]) -> tuple[tuple[Result, ...], ...]:
    """Returns the rounds since the question. Like real models, this one overlooks results that are not followed by a
    request to continue, and calls again."""
    rounds: list[list[str]] = []
    results: list[str] = []
    for turn in turns:
        if turn.speaker == "result":
            results.append(turn.text)
        elif names := [*turn.called, *_called(turn.text)]:
            rounds.append(names)
    if rounds and turns[-1].speaker == "result":
        rounds.pop()
    texts = iter(results)
    return tuple(tuple(Result(name, next(texts, "")) for name in names) for names in rounds)


def _called(text: str) -> Iterator[str]:
    for written in _CALL.findall(text):
        try:
            yield msgspec.json.decode(written, type=_Called).name
        except ValueError:
            continue


def _tools(instructions: str) -> Iterator[OfferedTool]:
    for line in instructions.split("\n"):
        if line.startswith("{"):
            try:
                tool = msgspec.json.decode(line, type=_Offered)
            except ValueError:
                continue
            yield OfferedTool(tool.name, tool.description, tool.parameters or EMPTY)


def _choice(instructions: str) -> tuple[str | None, Literal["auto", "required"]]:
    forced = _FORCED.search(instructions)
    return (None, "auto") if forced is None else (forced.group(1), "required")
