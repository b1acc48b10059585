"""Lists the faults of a backend that refuses what others accept, in the words of a provider of Chat Completions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec

from gateway.core.conversation import SYSTEM_ROLES, Json, JsonObject
from gateway.demo.faults.fault import CONTEXT, Fault, is_long
from gateway.demo.scripted_model.dialogue import Dialogue, Reply
from gateway.demo.scripted_model.reply import reply

Messages: TypeAlias = Sequence[JsonObject]

_LONGEST_ID: Final = 40
_ID: Final = re.compile(r"[A-Za-z0-9_-]*")


def _refusing(about: str, sentences: Callable[[Messages], Iterator[str]]) -> Fault[object]:
    """Returns a fault that refuses a history with the first sentence about it."""
    return Fault(about, refuses=lambda body: next(sentences(_messages(body)), None))


def _messages(body: JsonObject) -> Messages:
    messages = body.get("messages")
    return [turn for turn in messages if isinstance(turn, dict)] if isinstance(messages, list) else []


def _objects(value: Json) -> list[JsonObject]:
    return [found for found in value if isinstance(found, dict)] if isinstance(value, list) else []


def _calls(turn: JsonObject) -> list[JsonObject]:
    return _objects(turn.get("tool_calls")) if turn.get("role") == "assistant" else []


def _ids(turn: JsonObject) -> list[str]:
    return [str(call.get("id")) for call in _calls(turn)]


def _history_ids(messages: Messages) -> Iterator[tuple[str, str]]:
    """Yields the place and the id of each call and each result."""
    for at, turn in enumerate(messages):
        for position, call_id in enumerate(_ids(turn)):
            yield f"messages[{at}].tool_calls[{position}].id", call_id
        if turn.get("role") == "tool":
            yield f"messages[{at}].tool_call_id", str(turn.get("tool_call_id"))


def _rounds(messages: Messages) -> Iterator[tuple[list[str], list[str]]]:
    """Yields the ids of the calls of each message, and those of the results right behind it."""
    for at, turn in enumerate(messages):
        if calls := _ids(turn):
            results: list[str] = []
            for after in messages[at + 1 :]:
                if after.get("role") != "tool":
                    break
                results.append(str(after.get("tool_call_id")))
            yield calls, results


def _orphan(messages: Messages) -> Iterator[str]:
    answerable: list[str] = []
    for turn in messages:
        if turn.get("role") == "tool" and str(turn.get("tool_call_id")) not in answerable:
            yield (
                "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                "'tool_calls'."
            )
        answerable = answerable if turn.get("role") == "tool" else _ids(turn)


def _unanswered(messages: Messages) -> Iterator[str]:
    for calls, results in _rounds(messages):
        if missing := [call_id for call_id in calls if call_id not in results]:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(missing)}"
            )


def _reordered(messages: Messages) -> Iterator[str]:
    for calls, results in _rounds(messages):
        for call_id, answered in zip(calls, results, strict=False):
            if call_id != answered:
                yield f"Unexpected tool call id {answered} in tool results"


def _parts(messages: Messages) -> Iterator[str]:
    for at, turn in enumerate(messages):
        if turn.get("role") == "tool" and not isinstance(turn.get("content"), str):
            yield (
                f"'messages.{at}' : for 'role:tool' the following must be satisfied[('messages.{at}.content' : value "
                "must be a string)]"
            )


def _two_system(messages: Messages) -> Iterator[str]:
    if [turn.get("role") in SYSTEM_ROLES for turn in messages[:2]] == [True, True]:
        yield "System message must be at the beginning."


def _late_system(messages: Messages) -> Iterator[str]:
    for before, turn in pairwise(messages):
        if turn.get("role") in SYSTEM_ROLES and before.get("role") not in SYSTEM_ROLES:
            yield "System message must be at the beginning."


def _developer(messages: Messages) -> Iterator[str]:
    for at, turn in enumerate(messages):
        if turn.get("role") == "developer":
            yield (
                f"Failed to deserialize the JSON body into the target type: messages[{at}].role: unknown variant "
                "`developer`, expected one of `system`, `user`, `assistant`, `tool` at line 1 column 60"
            )


def _assistant_last(messages: Messages) -> Iterator[str]:
    if messages[-1].get("role") == "assistant":
        yield "Expected last role User or Tool (or Assistant with prefix) for serving but got assistant"


def _assistant_first(messages: Messages) -> Iterator[str]:
    if next((turn for turn in messages if turn.get("role") not in SYSTEM_ROLES), {}).get("role") == "assistant":
        yield "A conversation must start with a user message. Try again with a conversation that starts with one."


def _repeated_role(messages: Messages) -> Iterator[str]:
    for before, turn in pairwise(messages):
        if turn.get("role") == before.get("role") == "user":
            yield (
                "After the optional system message, conversation roles must alternate user and assistant roles except "
                "for tool calls and results."
            )


def _user_after_tool(messages: Messages) -> Iterator[str]:
    for before, turn in pairwise(messages):
        if (before.get("role"), turn.get("role")) == ("tool", "user"):
            yield "Unexpected role 'user' after role 'tool'"


def _long_ids(messages: Messages) -> Iterator[str]:
    for place, call_id in _history_ids(messages):
        if len(call_id) > _LONGEST_ID:
            yield (
                f"Invalid '{place}': string too long. Expected a string with maximum length {_LONGEST_ID}, but got a "
                f"string with length {len(call_id)} instead."
            )


def _colon_ids(messages: Messages) -> Iterator[str]:
    for _, call_id in _history_ids(messages):
        if not _ID.fullmatch(call_id):
            yield f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."


def _repeated_ids(messages: Messages) -> Iterator[str]:
    seen: set[str] = set()
    for turn in messages:
        for call_id in _ids(turn):
            if call_id in seen:
                yield f"Duplicate tool call id {call_id} in assistant message"
            seen.add(call_id)


def _without_reasoning(messages: Messages) -> Iterator[str]:
    if any(_calls(turn) and not isinstance(turn.get("reasoning_content"), str) for turn in messages):
        yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def _reasoning(messages: Messages) -> Iterator[str]:
    if any("reasoning_content" in turn for turn in messages):
        yield "property 'reasoning_content' is unsupported"


def _dotted_names(body: JsonObject) -> str | None:
    for at, tool in enumerate(_objects(body.get("tools"))):
        function = tool.get("function")
        if isinstance(function, dict) and not _ID.fullmatch(str(function.get("name"))):
            return (
                f"Invalid 'tools[{at}].function.name': string does not match pattern. Expected a string that matches "
                "the pattern '^[a-zA-Z0-9_-]+$'."
            )
    return None


def _tools(body: JsonObject) -> str | None:
    return f"{body.get('model')} does not support tools" if body.get("tools") else None


def _forced_choice(body: JsonObject) -> str | None:
    harmless = body.get("tool_choice") in (None, "auto", "none")
    return None if harmless else f"{body.get('model')} does not support this tool_choice"


def _named_choice(body: JsonObject) -> str | None:
    if not isinstance(body.get("tool_choice"), dict):
        return None
    return "Invalid tool_choice type: 'object'. Supported string values: none, auto, required"


def _stream_options(body: JsonObject) -> str | None:
    return "Unknown parameter: 'stream_options'." if "stream_options" in body else None


def _max_tokens(body: JsonObject) -> str | None:
    if "max_tokens" not in body:
        return None
    return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


def _long_prompt(body: JsonObject) -> str | None:
    return "Bad request." if is_long(msgspec.json.encode(body).decode()) else None


def _thinks(dialogue: Dialogue) -> Reply:
    return reply(msgspec.structs.replace(dialogue, reasoning=True))


REFUSALS: Final[Mapping[str, Fault[object]]] = {
    "results_in_order": _refusing("it refuses results in another order than that of their calls", _reordered),
    "refuses_parts": _refusing("it refuses a result whose content is a list of parts", _parts),
    "needs_reasoning": msgspec.structs.replace(
        _refusing("it thinks, and refuses calls without their `reasoning_content`", _without_reasoning), model=_thinks
    ),
    "refuses_reasoning": _refusing("it refuses `reasoning_content` in the history", _reasoning),
    "refuses_orphan": _refusing("it refuses a result without its call", _orphan),
    "refuses_unanswered": _refusing("it refuses a call without its result", _unanswered),
    "refuses_two_system": _refusing("it refuses two system messages at the beginning", _two_system),
    "refuses_developer": _refusing("it refuses the role developer", _developer),
    "refuses_assistant_first": _refusing("it refuses a history that begins with the assistant", _assistant_first),
    "refuses_assistant_last": _refusing("it refuses a history that ends with the assistant", _assistant_last),
    "refuses_late_system": _refusing("it refuses a system message behind another one", _late_system),
    "refuses_repeated_role": _refusing("it refuses two user messages in a row", _repeated_role),
    "refuses_user_after_tool": _refusing("it refuses a user message right behind a result", _user_after_tool),
    "refuses_long_ids": _refusing(f"it refuses ids of more than {_LONGEST_ID} characters in the history", _long_ids),
    "refuses_colon_ids": _refusing("it refuses ids with other characters than A-Z, a-z, 0-9, _ and -", _colon_ids),
    "refuses_repeated_ids": _refusing("it refuses a call with the id of an earlier one", _repeated_ids),
    "refuses_dotted_names": Fault(
        "it refuses names of tools with other characters than A-Z, a-z, 0-9, _ and -", refuses=_dotted_names
    ),
    "refuses_tools": Fault("it refuses tools", refuses=_tools),
    "refuses_forced_choice": Fault("it refuses a `tool_choice` that forces a call", refuses=_forced_choice),
    "refuses_named_choice": Fault("it refuses a `tool_choice` that names a tool", refuses=_named_choice),
    "refuses_max_tokens": Fault("it refuses `max_tokens`, and takes `max_completion_tokens`", refuses=_max_tokens),
    "context_unnamed": Fault(
        f"it refuses a prompt of more than {CONTEXT} words, and does not say why", refuses=_long_prompt
    ),
    "refuses_stream_options": Fault("it refuses `stream_options`", refuses=_stream_options),
}
