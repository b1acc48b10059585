"""Encodes a response as the Responses wire: server-sent events or one object."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from adapters.openai.demo import CREATED
from adapters.openai_responses.demo.answer import Answer
from adapters.openai_responses.demo.request import encrypted_content
from gateway.core.conversation import Json, JsonObject
from gateway.demo.scripted_model.dialogue import PlannedCall
from gateway.demo.scripted_model.words import pieces

_BODILESS: Final[JsonObject] = {"output": [], "usage": None, "completed_at": None, "status": "in_progress"}

Event = dict[str, Json]


def frame(event: JsonObject) -> bytes:
    """Encodes one server-sent event."""
    return b"event: " + str(event["type"]).encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"


def frames(answer: Answer) -> list[bytes]:
    """Encodes the whole stream."""
    return [frame(event) for event in numbered(events(answer))]


def numbered(events: Iterable[JsonObject]) -> Iterator[Event]:
    """Adds the sequence numbers."""
    for number, event in enumerate(events):
        yield {"type": event["type"], "sequence_number": number, **event}


def events(answer: Answer) -> Iterator[Event]:
    """Yields the response event by event, each item from its beginning to its end."""
    begun: Event = {**response_object(answer), **_BODILESS}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(_items(answer)):
        for event in _item_events(item, answer):
            yield {**event, "output_index": index}
    yield last_event(answer)


def last_event(answer: Answer) -> Event:
    """Builds the event that ends the stream."""
    kind = "response.completed" if answer.incomplete is None else "response.incomplete"
    return {"type": kind, "response": response_object(answer)}


def failed_event(answer: Answer, code: str, message: str) -> Event:
    """Builds the event that ends a failed stream."""
    failed: Event = {"status": "failed", "error": {"code": code, "message": message}}
    return {"type": "response.failed", "response": {**response_object(answer), **_BODILESS, **failed}}


def error_event(code: str, message: str) -> Event:
    """Builds the event that reports an error."""
    error: Event = {"code": code, "message": message, "param": None}
    return {"type": "error", **error, "error": {"type": "server_error", **error}}


def response_object(answer: Answer) -> Event:
    """Builds the response as one object."""
    incomplete: Json = None if answer.incomplete is None else {"reason": answer.incomplete}
    return {
        "id": f"resp_demo_{answer.number}",
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED,
        "status": "completed" if incomplete is None else "incomplete",
        "error": None,
        "incomplete_details": incomplete,
        "instructions": None,
        "model": answer.model,
        "output": list(_items(answer)),
        "previous_response_id": None,
        "parallel_tool_calls": True,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": answer.usage,
    }


def _items(answer: Answer) -> Iterator[Event]:
    """Yields the complete items: reasoning, message, calls. An answer without any of them has an empty message."""
    if answer.reasoning:
        yield _reasoning(answer)
    if answer.text or not answer.calls:
        status = "completed" if answer.incomplete is None else "incomplete"
        content: Json = [_output_text("".join(answer.text))]
        yield {
            "type": "message",
            "id": f"msg_demo_{answer.number}",
            "status": status,
            "role": "assistant",
            "content": content,
        }
    for position, call in enumerate(answer.calls):
        yield _call(answer, call, position)


def _reasoning(answer: Answer) -> Event:
    text, item_id = "".join(answer.reasoning), f"rs_demo_{answer.number}"
    item: Event = {"type": "reasoning", "id": item_id, "summary": []}
    if answer.summarises:
        item["summary"] = [{"type": "summary_text", "text": text}]
    else:
        item["content"] = [{"type": "reasoning_text", "text": text}]
    if answer.encrypts:
        item["encrypted_content"] = encrypted_content(item_id)
    return item


def _call(answer: Answer, call: PlannedCall, position: int) -> Event:
    suffix = f"demo_{answer.number}_{position}"
    named: Event = {"status": "completed", "call_id": call.id, "name": call.name}
    if call.name in answer.custom:
        return {"type": "custom_tool_call", "id": f"ctc_{suffix}", **named, "input": answer.input_of(call)}
    return {"type": "function_call", "id": f"fc_{suffix}", **named, "arguments": answer.input_of(call)}


def _output_text(text: str) -> Event:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item_events(item: Event, answer: Answer) -> Iterator[Event]:
    yield {"type": "response.output_item.added", "item": {**item, **_EMPTY[str(item["type"])]}}
    match item["type"]:
        case "reasoning" if answer.summarises:
            yield from _part_events(
                item, answer.reasoning, "reasoning_summary_part", "reasoning_summary_text", _SUMMARY
            )
        case "reasoning":
            yield from _part_events(item, answer.reasoning, "content_part", "reasoning_text", _REASONING)
        case "message":
            yield from _part_events(item, answer.text, "content_part", "output_text", _output_text(""))
        case "function_call":
            yield from _input_events(item, "function_call_arguments", "arguments")
        case _:
            yield from _input_events(item, "custom_tool_call_input", "input")
    yield {"type": "response.output_item.done", "item": item}


# What an item lacks when it begins.
_EMPTY: Final[dict[str, Event]] = {
    "reasoning": {"summary": [], "content": []},
    "message": {"status": "in_progress", "content": []},
    "function_call": {"status": "in_progress", "arguments": ""},
    "custom_tool_call": {"status": "in_progress", "input": ""},
}
_SUMMARY: Final[Event] = {"type": "summary_text", "text": ""}
_REASONING: Final[Event] = {"type": "reasoning_text", "text": ""}


def _part_events(item: Event, words: Iterable[str], part_kind: str, text_kind: str, part: Event) -> Iterator[Event]:
    """Yields the events of the only part of an item."""
    index = "summary_index" if part is _SUMMARY else "content_index"
    place: Event = {"item_id": item["id"], index: 0}
    logprobs: Event = {"logprobs": []} if "logprobs" in part else {}
    text = ""
    yield {"type": f"response.{part_kind}.added", **place, "part": part}
    for word in words:
        text += word
        yield {"type": f"response.{text_kind}.delta", **place, "delta": word, **logprobs}
    yield {"type": f"response.{text_kind}.done", **place, "text": text, **logprobs}
    yield {"type": f"response.{part_kind}.done", **place, "part": {**part, "text": text}}


def _input_events(item: Event, kind: str, field: str) -> Iterator[Event]:
    """Yields the input of a call in pieces."""
    place: Event = {"item_id": item["id"]}
    whole = str(item[field])
    for piece in pieces(whole):
        yield {"type": f"response.{kind}.delta", **place, "delta": piece}
    yield {"type": f"response.{kind}.done", **place, field: whole}
