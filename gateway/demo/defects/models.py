"""Lists the defects of a backend's list of models."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from starlette.requests import Request

from gateway.demo.defects.defect import JSON_WIRES, Defect
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder


def _listing(about: str, edit: Callable[[bytes], Response]) -> Defect:
    """Return a defect that answers a request for the list of models with what `edit` makes of the regular body."""

    def serves(handler: Handler, _: Recorder) -> Handler:
        async def answer(request: Request) -> Response:
            response = await handler(request)
            if request.method == "GET" and request.url.path.endswith("/models"):
                return edit(b"".join(part for part in response.parts if isinstance(part, bytes)))
            return response

        return answer

    return Defect(about, JSON_WIRES, serves=serves)


def _missing(_: bytes) -> Response:
    return json_answer({"error": {"message": "Not Found", "type": "not_found_error"}}, 404)


def _empty(body: bytes) -> Response:
    listed = msgspec.json.decode(body, type=dict)
    return json_answer({name: [] if isinstance(value, list) else value for name, value in listed.items()})


def _renamed(body: bytes) -> Response:
    return json_answer(msgspec.json.decode(body.replace(b"demo-", b"other-")))


MODELS: Final[Mapping[str, Defect]] = {
    "models_missing": _listing("it has no list of models: 404", _missing),
    "models_empty": _listing("its list of models is empty", _empty),
    "models_wrong_name": _listing("its list of models has only other names", _renamed),
}
