"""Reads and writes what is about steering a response: `response.steer`, and the three events that answer it.

Source: OpenAI's published types `ResponseSteerEvent`, `ResponseSteerAcceptedEvent`, `ResponseSteerPendingEvent` and
`ResponseSteerFailedEvent`, and what is written there of each field.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from adapters.openai_responses.turn_items import ITEMS, PREVIOUS
from gateway.core.conversation import Json, JsonObject
from gateway.dialects.steering import AnswerStatus, RefusedSteer, Steer, SteerError, SteerEvent, SteerPlace

STEER: Final = "response.steer"
LANE: Final = "stream_id"
_INPUT: Final = frozenset({"type", "role", "content"})
_PARTS: Final = frozenset({"input_text", "input_image", "input_file"})
_TEXTS: Final = frozenset({"message", "reasoning"})
_ENDS: Final[Mapping[str, AnswerStatus]] = {"completed": "completed", "incomplete": "incomplete"}
_INVALID: Final = SteerError(
    "invalid_input",
    f"A {STEER} has a previous_response_id and input, and nothing else. The input is a text, or messages of the role "
    "user with the fields type, role and content, whose parts are input_text, input_image and input_file.",
)

_encode = msgspec.json.Encoder().encode
_read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Begun(msgspec.Struct):
    id: str = ""


class _First(msgspec.Struct):
    response: _Begun = msgspec.field(default_factory=_Begun)


class _Ended(msgspec.Struct):
    status: str = ""


class _Last(msgspec.Struct):
    response: _Ended = msgspec.field(default_factory=_Ended)


class _Made(msgspec.Struct):
    output: list[dict[str, Any]] = []


class _Whole(msgspec.Struct):
    response: _Made = msgspec.field(default_factory=_Made)


_first = msgspec.json.Decoder(_First).decode
_last = msgspec.json.Decoder(_Last).decode
_whole = msgspec.json.Decoder(_Whole).decode


def _result(kind: str) -> Callable[[dict[str, Any]], dict[str, Json]]:
    return lambda item: {"type": kind, "call_id": item.get("call_id")}


# What a client owes for an item of the output, as `ResponseSteerRequiredInput` names it.
_OWED: Final[Mapping[str, Callable[[dict[str, Any]], dict[str, Json]]]] = {
    "function_call": lambda item: {**_result("function_call_output")(item), "name": item.get("name")},
    "custom_tool_call": _result("custom_tool_call_output"),
    "computer_call": _result("computer_call_output"),
    "shell_call": _result("shell_call_output"),
    "apply_patch_call": _result("apply_patch_call_output"),
    "tool_search_call": lambda item: {**_result("tool_search_output")(item), "execution": "client"},
    "mcp_approval_request": lambda item: {"type": "mcp_approval_response", "approval_request_id": item.get("id")},
}


def read_steer(fields: Mapping[str, msgspec.Raw]) -> SteerEvent | RefusedSteer:
    """Returns what a steering event without its type asks for."""
    target, given = _decoded(fields.get(PREVIOUS)), fields.get(ITEMS)
    messages = None if given is None else _messages(_decoded(given))
    if isinstance(target, str) and given is not None and messages is not None and len(fields) == 2:
        return SteerEvent(target, bytes(given))
    # A field that is no text and no list is not what the event of a failure may repeat.
    told = bytes(given) if given is not None and bytes(given)[:1] in (b'"', b"[") else b"[]"
    return RefusedSteer(SteerEvent(target if isinstance(target, str) else "", told), _INVALID)


def event_fields(text: str | bytes) -> dict[str, msgspec.Raw] | None:
    """Returns the fields of an event; None: it is no object of JSON, which has no NaN and nothing infinite (RFC 8259,
    section 6)."""
    try:
        return _read(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        # Half a character is kept: who reads the request repairs it, and says so.
        fields = json.loads(text)
        if not isinstance(fields, dict):
            return None
        return {name: msgspec.Raw(json.dumps(value, allow_nan=False).encode()) for name, value in fields.items()}
    except (ValueError, RecursionError):
        return None


class ResponsesSteering:
    """Implements `SteeringDialect`."""

    def can_steer(self, body: bytes) -> bool:
        """Source: `ResponseSteerEvent`: not where the history is compacted, or a conversation is stored."""
        fields = _fields(body)
        return not any(_decoded(fields.get(name)) for name in ("context_management", "conversation", "background"))

    def answer_id(self, text: bytes) -> str:
        try:
            return _first(text).response.id
        except msgspec.DecodeError:
            return ""

    def answer_status(self, text: bytes) -> AnswerStatus:
        try:
            return _ENDS.get(_last(text).response.status, "failed")
        except msgspec.DecodeError:
            return "failed"

    def owed(self, text: bytes) -> Sequence[JsonObject]:
        return [_OWED[item["type"]](item) for item in _whole(text).response.output if _is_owed(item)]

    def opened_item(self, fields: JsonObject) -> tuple[object, bool] | None:
        kind, item = fields.get("type"), fields.get("item")
        if kind == "response.output_item.done":
            return fields.get("output_index"), False
        begins = kind == "response.output_item.added" and isinstance(item, dict) and item.get("type") not in _TEXTS
        return (fields.get("output_index"), True) if begins else None

    def continued(self, body: bytes) -> str:
        previous = _decoded(_fields(body).get(PREVIOUS))
        return previous if isinstance(previous, str) else ""

    def successor(self, body: bytes, answer: str, steers: Sequence[Steer]) -> bytes:
        return _encode({**_fields(body), PREVIOUS: answer, ITEMS: msgspec.Raw(b"[%b]" % _joined(steers))})

    def with_steers(self, body: bytes, steers: Sequence[Steer]) -> bytes:
        fields = _fields(body)
        own = bytes(fields.get(ITEMS, b"null"))
        if own[:1] == b'"':
            own = b'[{"type":"message","role":"user","content":%b}]' % own
        if own[:1] != b"[":
            # It is refused as it is.
            return body
        rest = own[1:].lstrip()
        joined = b"[%b%b%b" % (_joined(steers), b"" if rest[:1] == b"]" else b",", rest)
        return _encode({**fields, ITEMS: msgspec.Raw(joined)})

    def accepted(self, steer: Steer, place: SteerPlace) -> bytes:
        return _event("accepted", {"steer": _named(steer)}, place)

    def pending(self, steer: Steer, owed: Sequence[JsonObject], place: SteerPlace) -> bytes:
        said = {"reason": "waiting_for_required_input", "required_input": [*owed], "steer": _named(steer)}
        return _event("pending", said, place)

    def failed(self, event: SteerEvent, error: SteerError, place: SteerPlace, steer: str | None = None) -> bytes:
        returned: dict[str, object] = {PREVIOUS: event.answer, ITEMS: msgspec.Raw(event.input)}
        if steer is not None:
            returned["id"] = steer
        said = {"type": "invalid_request_error", "code": error.code, "message": error.message}
        return _event("failed", {"error": said, "steer": returned}, place)

    def error_message(self, body: bytes) -> str:
        return str(msgspec.json.decode(body)["error"]["message"])


RESPONSES_STEERING: Final = ResponsesSteering()


def _event(kind: str, said: Mapping[str, object], place: SteerPlace) -> bytes:
    event = {"type": f"{STEER}.{kind}", "sequence_number": place.number, **said}
    return _encode(event if place.lane is None else {**event, LANE: place.lane})


def _fields(body: bytes) -> dict[str, msgspec.Raw]:
    """Returns the fields of a request, which was an event before."""
    return event_fields(body) or {}


def _named(steer: Steer) -> dict[str, str]:
    return {"id": steer.id, PREVIOUS: steer.event.answer}


def _is_owed(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    return kind in _OWED and (kind != "tool_search_call" or item.get("execution") == "client")


def _joined(steers: Sequence[Steer]) -> bytes:
    """Returns the messages as the inside of an array."""
    given = [_messages(_decoded(msgspec.Raw(steer.event.input))) for steer in steers]
    return b",".join([_encode(messages)[1:-1] for messages in given])


def _messages(given: Json) -> list[Json] | None:
    """Returns the messages of a steering event; None: it has none, or anything else."""
    if isinstance(given, str):
        return [_message(given)]
    if not isinstance(given, list) or not given or not all(map(_is_message, given)):
        return None
    return given


def _message(text: str) -> dict[str, Json]:
    return {"type": "message", "role": "user", "content": text}


def _is_message(item: Json) -> bool:
    if not isinstance(item, dict) or not item.keys() <= _INPUT:
        return False
    if item.get("role") != "user" or item.get("type", "message") != "message":
        return False
    content = item.get("content")
    if not isinstance(content, list):
        return isinstance(content, str)
    return bool(content) and all(isinstance(part, dict) and part.get("type") in _PARTS for part in content)


def _decoded(value: msgspec.Raw | None) -> Any:
    """Returns the value of a field; None: there is none, or it has half a character."""
    if value is None:
        return None
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return None
