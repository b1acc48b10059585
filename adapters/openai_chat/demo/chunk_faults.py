"""Lists the faults in the form of the chunks and the completions of Chat Completions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from adapters.openai_chat.demo.response import DONE
from gateway.core.conversation import Json, JsonObject
from gateway.demo.faults.editing import Edit, Event, Options, each_json, with_parts
from gateway.demo.faults.fault import Fault
from gateway.demo.player.playback import Response

# Fields that some servers send in every delta, without a value.
_NULLS: Final[Event] = {
    "role": None,
    "content": None,
    "reasoning_content": None,
    "refusal": None,
    "function_call": None,
    "tool_calls": None,
}


def _without_done(response: Response, _: Options) -> Response:
    return with_parts(response, (part for part in response.parts if part != DONE))


def _usage_null(event: Event) -> JsonObject | None:
    return None if event.get("choices") == [] else {**event, "usage": None}


def _choices(event: Event, edit: Callable[[Event], Event]) -> Event:
    """Returns a chunk or a completion with its choices edited."""
    choices = event.get("choices")
    if not isinstance(choices, list):
        return event
    return {**event, "choices": [edit(choice) if isinstance(choice, dict) else choice for choice in choices]}


def _messages(event: Event, edit: Callable[[Event], Event]) -> Event:
    """Returns a chunk or a completion with the delta or the message of each choice edited."""

    def edited(choice: Event) -> Event:
        return {
            name: edit(value) if name in ("delta", "message") and isinstance(value, dict) else value
            for name, value in choice.items()
        }

    return _choices(event, edited)


def _calls(event: Event, edit: Callable[[Event], Event]) -> Event:
    """Returns a chunk or a completion with its tool calls edited."""

    def edited(message: Event) -> Event:
        calls = message.get("tool_calls")
        if not isinstance(calls, list):
            return message
        return {**message, "tool_calls": [edit(call) if isinstance(call, dict) else call for call in calls]}

    return _messages(event, edited)


def _nulls(event: Event) -> JsonObject:
    return _messages(event, lambda message: {**_NULLS, **message})


def _without_index(event: Event) -> JsonObject:
    return _calls(event, lambda call: {name: value for name, value in call.items() if name != "index"})


def _stop(event: Event) -> JsonObject:
    def edited(choice: Event) -> Event:
        return {**choice, "finish_reason": "stop"} if choice.get("finish_reason") == "tool_calls" else choice

    return _choices(event, edited)


def _arguments(edit: Callable[[str], Json]) -> Edit:
    """Returns an edit of the arguments of each call. A stream then has each whole call in one delta."""

    def edited(response: Response, options: Options) -> Response:
        kept = with_parts(response, response.parts)
        written: dict[Json, str] = {}
        each_json(lambda event: _collect(event, written))(kept, options)
        return each_json(lambda event: _whole_calls(event, written, edit))(kept, options)

    return edited


def _collect(event: Event, written: dict[Json, str]) -> Event:
    """Joins the arguments of each call of a response, by its index, or by its id where it has none."""
    for call in _calls_of(event):
        key = call.get("index", call.get("id"))
        written[key] = written.get(key, "") + str(_function(call).get("arguments") or "")
    return event


def _whole_calls(event: Event, written: Mapping[Json, str], edit: Callable[[str], Json]) -> Event | None:
    calls = list(_calls_of(event))
    if calls and all("id" not in call for call in calls):
        return None

    def edited(call: Event) -> Event:
        arguments = edit(written[call.get("index", call.get("id"))])
        return {**call, "function": {**_function(call), "arguments": arguments}}

    return _calls(event, edited)


def _calls_of(event: Event) -> Iterator[Event]:
    choices = event.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        match choice:
            case {"delta": {"tool_calls": list(calls)}} | {"message": {"tool_calls": list(calls)}}:
                yield from (call for call in calls if isinstance(call, dict))
            case _:
                pass


def _function(call: Event) -> Event:
    function = call.get("function")
    return function if isinstance(function, dict) else {}


def _object(text: str) -> Json:
    value: Json = msgspec.json.decode(text)
    return value


CHUNK_FAULTS: Final[Mapping[str, Fault[object]]] = {
    "no_done": Fault("its streams have no [DONE]", edits=_without_done),
    "usage_null": Fault("its answers have token counts of null", edits=each_json(_usage_null)),
    "null_fields": Fault("each delta has every field, most of them null", edits=each_json(_nulls)),
    "arguments_object": Fault("the arguments of a call are an object, not text", edits=_arguments(_object)),
    "empty_arguments": Fault(
        "the arguments of a call without any are an empty text",
        edits=_arguments(lambda text: "" if text == "{}" else text),
    ),
    "no_call_index": Fault("the calls in a stream have no index", edits=each_json(_without_index)),
    "calls_end_with_stop": Fault("the finish reason beside calls is stop", edits=each_json(_stop)),
}
