"""Lists the faults of a backend beside its answers: the check of its key, its list of models, its slots."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from starlette.requests import Request

from gateway.demo.faults.fault import ALL_WIRES, JSON_WIRES, Fault
from gateway.demo.faults.timing import paced
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.key_check import key_checked
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder


def _accepting(about: str, accepts: Callable[[str], bool]) -> Fault[object]:
    return Fault(about, wires=ALL_WIRES, serves=lambda handler, _: key_checked(handler, accepts))


def _listing(about: str, edit: Callable[[bytes], Response]) -> Fault[object]:
    """Returns a fault that answers a request for the list of models with what `edit` makes of the regular body."""

    def serves(handler: Handler, _: Recorder) -> Handler:
        async def answer(request: Request) -> Response:
            response = await handler(request)
            if request.method == "GET" and request.url.path.endswith("/models"):
                return edit(b"".join(part for part in response.parts if isinstance(part, bytes)))
            return response

        return answer

    return Fault(about, wires=JSON_WIRES, serves=serves)


def _missing(_: bytes) -> Response:
    return json_answer({"error": {"message": "Not Found", "type": "not_found_error"}}, 404)


def _empty(body: bytes) -> Response:
    listed = msgspec.json.decode(body, type=dict)
    return json_answer({name: [] if isinstance(value, list) else value for name, value in listed.items()})


def _renamed(body: bytes) -> Response:
    return json_answer(msgspec.json.decode(body.replace(b"demo-", b"other-")))


def _keeps_slot(handler: Handler, recorder: Recorder) -> Handler:
    """Answers the request after each one that its client has left with 503, as if that one still had the only slot."""
    refused = 0

    async def answer(request: Request) -> Response:
        nonlocal refused
        if request.method == "POST" and recorder.aborted > refused:
            refused += 1
            return json_answer({"error": {"message": "no slot available", "type": "unavailable_error"}}, 503)
        return paced(await handler(request))

    return answer


SERVING: Final[Mapping[str, Fault[object]]] = {
    "wrong_key_accepted": _accepting("it refuses a request without a key, and accepts any key", bool),
    "right_key_refused": _accepting("it refuses every key", lambda _: False),
    "models_missing": _listing("it has no list of models: 404", _missing),
    "models_empty": _listing("its list of models is empty", _empty),
    "models_wrong_name": _listing("its list of models has only other names", _renamed),
    "cancel_keeps_slot": Fault(
        "an answer whose client has left still has its slot: the next request gets 503",
        wires=ALL_WIRES,
        serves=_keeps_slot,
    ),
}
