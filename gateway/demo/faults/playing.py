"""Answers a request of a demo backend in its regular steps, or with the faults that are asked for."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec
from starlette.requests import Request

from gateway.core.conversation import JsonObject
from gateway.demo.faults.fault import Fault
from gateway.demo.player.endpoint import Refused, read_body
from gateway.demo.player.playback import Response
from gateway.demo.player.recorder import Recorder, json_body
from gateway.demo.scripted_model.dialogue import Model
from gateway.demo.scripted_model.markers import find_marker
from gateway.demo.scripted_model.reply import reply

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")
_OK: Final = 200


class Faults(msgspec.Struct, frozen=True):
    """The faults of a backend by name, and the one that its address names; `model` replies where no fault has a model
    of its own. (Any: each wire has its own answers.)"""

    known: Mapping[str, Fault[Any]]
    planted: Fault[Any] | None = None
    model: Model = reply

    def marked(self, question: str) -> Fault[Any] | None:
        """Returns the fault of the last marker in a question. Raises Refused if there is no such fault."""
        marker = find_marker(question, "demo")
        if marker is None:
            return None
        known = [name for name, fault in self.known.items() if fault.serves is None]
        if marker.name not in known:
            raise Refused(f"there is no fault {marker.name!r}; there are {', '.join(known)}")
        try:
            return self.known[marker.name].with_options(marker.options)
        except ValueError as error:
            raise Refused(str(error)) from error

    def of_counts(self) -> "Faults":
        """Returns the faults of a request that asks for no answer: a marker asks for none, and nothing is played."""
        planted = self.planted
        return Faults({}, None if planted is None else msgspec.structs.replace(planted, plays=None))


class Steps(msgspec.Struct, Generic[Asked, Answer], frozen=True):
    """The regular steps of a wire: `read` decodes a body, and raises Refused; `question` is the
    newest question with its markers; `answer` asks a model; `respond` encodes the answer."""

    read: Callable[[JsonObject], Asked]
    question: Callable[[Asked], str]
    answer: Callable[[Asked, Model], Answer]
    respond: Callable[[Asked, Answer], Response]


async def respond_json(
    request: Request,
    recorder: Recorder,
    steps: Steps[Asked, Any],
    faults: Faults,
    refusal: Callable[[Refused], Response],
) -> Response:
    """Records a request and returns its response; `refusal` builds that to a body which is invalid, or no JSON."""
    body = await read_body(request)
    recorder.record(request, body, json_body)
    try:
        return respond(steps, faults, read_object(body))
    except Refused as error:
        return refusal(error)


def read_object(body: bytes) -> JsonObject:
    """Decodes a body that is a JSON object. Raises Refused for any other."""
    try:
        decoded: JsonObject = msgspec.json.decode(body, type=dict)
    except (ValueError, RecursionError) as error:
        raise Refused(f"the body is not a JSON object: {error}") from error
    return decoded


def respond(steps: Steps[Asked, Answer], faults: Faults, body: JsonObject) -> Response:
    """Returns the response to a body. Raises Refused, also for what a fault refuses."""
    played = [] if faults.planted is None else [faults.planted]
    asked = _read(steps, played, body)
    if (marked := faults.marked(steps.question(asked))) is not None:
        played.insert(0, marked)
        asked = _read(steps, played, body)
    answer = steps.answer(asked, next((fault.model for fault in played if fault.model is not reply), faults.model))
    return _play(played, answer, steps.respond(asked, answer))


def _play(faults: Sequence[Fault[Answer]], answer: Answer, response: Response) -> Response:
    """Returns a regular response as the faults, one after the other, have changed it."""
    for fault in faults:
        if response.status == _OK:
            try:
                response = fault.play(answer, msgspec.structs.replace(response, parts=tuple(response.parts)))
            except ValueError as error:
                raise Refused(f"invalid option: {error}") from error
    return response


def _read(steps: Steps[Asked, Any], faults: Sequence[Fault[Any]], body: JsonObject) -> Asked:
    for fault in faults:
        if (words := fault.refuses(body)) is not None:
            raise Refused(words)
        body = fault.reads(body)
    return steps.read(body)
