"""Lists the defects of a backend's check of its key."""

from collections.abc import Callable, Mapping
from typing import Final

from starlette.requests import Request

from gateway.core.conversation import Json
from gateway.demo.defects.defect import ALL_WIRES, Defect
from gateway.demo.grpc.response import UNAUTHENTICATED, failed
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Response, json_answer
from gateway.demo.player.recorder import Recorder

# The only key that a backend with a check accepts.
RIGHT_KEY: Final = "demo-key"
_HEADERS: Final = ("x-api-key", "x-goog-api-key", "authorization")
_MESSAGE: Final = "Incorrect API key provided."
_ERROR: Final[Json] = {
    "error": {"message": _MESSAGE, "type": "authentication_error", "param": None, "code": "invalid_api_key"}
}


def _checked(about: str, accepts: Callable[[str], bool]) -> Defect:
    """Return a defect that refuses every request, on each path, whose key is not accepted; no key is an empty one."""

    def serves(handler: Handler, _: Recorder) -> Handler:
        async def answer(request: Request) -> Response:
            return await handler(request) if accepts(_key(request)) else _refusal(request)

        return answer

    return Defect(about, ALL_WIRES, serves=serves)


def _key(request: Request) -> str:
    sent = next((request.headers[name] for name in _HEADERS if name in request.headers), "")
    return sent.removeprefix("Bearer ")


def _refusal(request: Request) -> Response:
    if request.headers.get("content-type", "").startswith("application/grpc"):
        return failed(UNAUTHENTICATED, _MESSAGE)
    return json_answer(_ERROR, 401)


KEYS: Final[Mapping[str, Defect]] = {
    "needs_key": _checked(f"it refuses every key but `{RIGHT_KEY}`, as it should", lambda key: key == RIGHT_KEY),
    "wrong_key_accepted": _checked("it refuses a request without a key, and accepts any key", bool),
    "right_key_refused": _checked("it refuses every key", lambda _: False),
}
