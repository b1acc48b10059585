"""Reads what the script needs from the body of a Messages request."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from adapters.anthropic_messages.demo.rules import Message, check_request, offered_tools, read_messages
from gateway.core.conversation import Json, JsonObject
from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, Result
from gateway.demo.scripted_model.markers import without_markers
from gateway.demo.scripted_model.own_words import own_words, working_folder

_THINKING: Final = frozenset({"enabled", "adaptive"})


class MessagesRequest(msgspec.Struct, frozen=True):
    """A decoded body. `marked_question` is the newest question with its markers, `dialogue` is without them. `thinks`
    is false if the body disables thinking."""

    dialogue: Dialogue
    marked_question: str
    model: str
    stream: bool
    max_tokens: int
    stop: tuple[str, ...]
    schema: JsonObject | None
    thinks: bool
    prompt: str


def read_request(body: JsonObject) -> MessagesRequest:
    """Decodes the body. Raises Refused for one that the Messages API refuses."""
    messages = read_messages(body)
    check_request(body, messages)
    newest, marked_question = _question(messages)
    prompt = "\n".join([text_of(body.get("system")), *(text_of([*message.content]) for message in messages)]).strip()
    limit = body.get("max_tokens")
    return MessagesRequest(
        dialogue=_dialogue(body, messages, newest, without_markers(marked_question), working_folder(prompt)),
        marked_question=marked_question,
        model=str(body.get("model")),
        stream=body.get("stream") is True,
        max_tokens=limit if isinstance(limit, int) else 0,
        stop=tuple(stop for stop in _list(body.get("stop_sequences")) if isinstance(stop, str)),
        schema=_schema(body.get("output_config")),
        thinks=_thinking(body) != "disabled",
        prompt=prompt,
    )


def text_of(content: Json) -> str:
    """Returns the text of a content: a string, or the text of its blocks and of the results among them."""
    if isinstance(content, str):
        return content
    return "\n".join(text for block in _list(content) if (text := _block_text(block)))


def _block_text(block: Json) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "tool_result", "content": content}:
            return text_of(content)
        case _:
            return ""


def _question(messages: Sequence[Message]) -> tuple[int, str]:
    """Returns the index and the text of the newest message that has text of the user."""
    for at in range(len(messages) - 1, -1, -1):
        texts: list[Json] = [*messages[at].of_type("text")] if messages[at].role == "user" else []
        if words := own_words(text_of(texts)):
            return at, words
    return -1, ""


def _dialogue(body: JsonObject, messages: Sequence[Message], newest: int, question: str, folder: str) -> Dialogue:
    choice = body.get("tool_choice")
    forced, mode = _choice(choice)
    return Dialogue(
        question=question,
        tools=tuple(_tools(offered_tools(body, messages))),
        rounds=_rounds(messages[newest + 1 :]),
        turn=max(newest, 0),
        choice=mode,
        forced=forced,
        parallel=not (isinstance(choice, dict) and choice.get("disable_parallel_tool_use") is True),
        reasoning=_thinking(body) in _THINKING,
        folder=folder,
    )


def _thinking(body: JsonObject) -> Json:
    thinking = body.get("thinking")
    return thinking.get("type") if isinstance(thinking, dict) else None


def _rounds(messages: Sequence[Message]) -> tuple[tuple[Result, ...], ...]:
    """Returns the rounds of calls with their results, in the order of the calls."""
    results = {block.get("tool_use_id"): block for message in messages for block in message.of_type("tool_result")}
    rounds = (
        tuple(_result(str(call.get("name")), results.get(call.get("id"), {})) for call in message.of_type("tool_use"))
        for message in messages
    )
    return tuple(found for found in rounds if found)


def _result(name: str, block: JsonObject) -> Result:
    return Result(name, text_of(block.get("content")), block.get("is_error") is True)


def _tools(tools: Json) -> Iterator[OfferedTool]:
    for tool in _list(tools):
        if isinstance(tool, dict) and isinstance(schema := tool.get("input_schema"), dict):
            yield OfferedTool(str(tool.get("name")), str(tool.get("description") or ""), schema)


def _choice(choice: Json) -> tuple[str | None, Literal["auto", "none", "required"]]:
    match choice:
        case {"type": "tool", "name": str(name)}:
            return name, "required"
        case {"type": "any"}:
            return None, "required"
        case {"type": "none"}:
            return None, "none"
        case _:
            return None, "auto"


def _schema(config: Json) -> JsonObject | None:
    match config:
        case {"format": {"type": "json_schema", "schema": dict(schema)}}:
            return schema
        case _:
            return None


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
