"""Reads what the script needs from a Chat Completions body and rejects a body that breaks the protocol."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Json, JsonObject
from gateway.demo.player.endpoint import Refused
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder
from gateway.demo.strict_models import is_strict

# Fields that would change the response, and the values of each that have no effect.
_HARMLESS: Final[dict[str, tuple[Json, ...]]] = {"n": (None, 1), "logprobs": (None, False)}
_ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool"})


class ChatRequest(msgspec.Struct, frozen=True):
    """A decoded body. `marked_question` is the newest question with its markers, `dialogue` is without them."""

    dialogue: Dialogue
    marked_question: str
    model: str
    stream: bool
    include_usage: bool
    max_tokens: int | None
    stop: tuple[str, ...]
    response_format: JsonObject
    prompt: str


def read_chat(body: JsonObject) -> ChatRequest:
    """Decodes the body. Raises Refused as a real Chat Completions endpoint does: with the path of the invalid field."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages must be a non-empty array", "messages")
    for name, harmless in _HARMLESS.items():
        if not any(body.get(name) is value for value in harmless):
            raise Refused(f"{name} is not supported by the demo model", name)
    turns = [_turn(message, at) for at, message in enumerate(messages)]
    _check_pairs(turns)
    model = str(body.get("model") or "demo-chat")
    if is_strict(model):
        _check_reasoning(turns)
    newest, marked_question = _question(turns)
    prompt = "\n".join(text_of(turn.get("content")) for turn in turns)
    options = body.get("stream_options")
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    shape = body.get("response_format")
    return ChatRequest(
        dialogue=_dialogue(body, turns, newest, without_markers(marked_question), working_folder(prompt)),
        marked_question=marked_question,
        model=model,
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=limit if isinstance(limit, int) else None,
        stop=_stops(body.get("stop")),
        response_format=shape if isinstance(shape, dict) else {},
        prompt=prompt,
    )


def _question(turns: Sequence[JsonObject]) -> tuple[int, str]:
    """Returns the index and the text of the newest turn that has text of the user."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].get("role") == "user" and (question := own_words(text_of(turns[at].get("content")))):
            return at, question
    return -1, ""


def text_of(content: Json) -> str:
    """Returns a message's content as text: a string, or the text parts of a list."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "\n".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _turn(message: Json, at: int) -> JsonObject:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise Refused(f"messages[{at}] must be an object with a known role", f"messages[{at}].role")
    return message


def _check_pairs(turns: Sequence[JsonObject]) -> None:
    """Raises Refused unless every call has its result before the next turn and every tool message belongs to a call."""
    waiting: dict[str, int] = {}
    for at, turn in enumerate(turns):
        if turn.get("role") == "tool":
            if turn.get("tool_call_id") not in waiting:
                raise Refused(f"messages[{at}] answers no preceding tool call", f"messages[{at}].tool_call_id")
            del waiting[str(turn.get("tool_call_id"))]
        elif waiting:
            break
        else:
            waiting = {call_id: at for call_id, _ in _calls(turn)}
    if waiting:
        missing, at = next(iter(waiting.items()))
        raise Refused(f"the tool call {missing!r} of messages[{at}] has no answer", f"messages[{at}].tool_calls")


def _check_reasoning(turns: Sequence[JsonObject]) -> None:
    """Raises Refused unless every message with calls has its reasoning, be it empty, in the words of DeepSeek."""
    if any(_calls(turn) and not isinstance(turn.get("reasoning_content"), str) for turn in turns):
        message = "The reasoning_content in the thinking mode must be passed back to the API."
        raise Refused(message, "messages")


def _calls(turn: JsonObject) -> list[tuple[str, str]]:
    calls = turn.get("tool_calls") if turn.get("role") == "assistant" else None
    found: list[tuple[str, str]] = []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            found.append((str(call.get("id")), str(function.get("name"))))
    return found


def _dialogue(body: JsonObject, turns: Sequence[JsonObject], newest: int, question: str, folder: str) -> Dialogue:
    effort = body.get("reasoning_effort")
    forced, choice = _choice(body.get("tool_choice"))
    return Dialogue(
        question=question,
        tools=tuple(_tools(body.get("tools"))),
        rounds=_rounds(turns[newest + 1 :]),
        turn=max(newest, 0),
        choice=choice,
        forced=forced,
        parallel=body.get("parallel_tool_calls") is not False,
        reasoning=is_strict(str(body.get("model"))) or (effort is not None and effort not in ("none", "minimal")),
        folder=folder,
        pictures=tuple(_pictures(turns[newest].get("content"))) if newest >= 0 else (),
    )


def _pictures(content: Json) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        image = part.get("image_url") if isinstance(part, dict) else None
        url = image.get("url") if isinstance(image, dict) else None
        if isinstance(url, str):
            yield url


def _rounds(turns: Sequence[JsonObject]) -> tuple[tuple[Result, ...], ...]:
    results = {turn.get("tool_call_id"): text_of(turn.get("content")) for turn in turns if turn.get("role") == "tool"}
    rounds = (tuple(Result(name, results.get(call_id, "")) for call_id, name in _calls(turn)) for turn in turns)
    return tuple(found for found in rounds if found)


def _tools(tools: Json) -> list[OfferedTool]:
    offered: list[OfferedTool] = []
    for tool in tools if isinstance(tools, list) else ():
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(name := function.get("name"), str) and name:
            parameters = function.get("parameters")
            schema = parameters if isinstance(parameters, dict) else {}
            offered.append(OfferedTool(name, str(function.get("description") or ""), schema))
    return offered


def _choice(choice: Json) -> tuple[str | None, Literal["auto", "none", "required"]]:
    match choice:
        case {"function": {"name": str(name)}}:
            return name, "required"
        case "none" | "required":
            return None, choice
        case _:
            return None, "auto"


def _stops(stop: Json) -> tuple[str, ...]:
    listed = stop if isinstance(stop, list) else [stop]
    return tuple(found for found in listed if isinstance(found, str) and found)
