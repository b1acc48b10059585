"""Refuses the requests to a demo backend whose key is not accepted, on every path."""

from collections.abc import Callable
from typing import Final

from starlette.requests import Request

from adapters.proto.demo.response import UNAUTHENTICATED, failed
from gateway.core.conversation import Json
from gateway.demo.player.endpoint import Handler
from gateway.demo.player.playback import Response, json_answer

# The only key that a backend which needs a key accepts.
RIGHT_KEY: Final = "demo-key"
_HEADERS: Final = ("x-api-key", "x-goog-api-key", "authorization")
_MESSAGE: Final = "Incorrect API key provided."
_ERROR: Final[Json] = {
    "error": {"message": _MESSAGE, "type": "authentication_error", "param": None, "code": "invalid_api_key"}
}


def is_right(key: str) -> bool:
    """Returns whether this is the key that a backend which needs one accepts."""
    return key == RIGHT_KEY


def key_checked(handler: Handler, accepts: Callable[[str], bool] = is_right) -> Handler:
    """Returns a handler that answers 401 to every request whose key is not accepted; no key is an empty one."""

    async def answer(request: Request) -> Response:
        return await handler(request) if accepts(_key(request)) else _refusal(request)

    return answer


def _key(request: Request) -> str:
    sent = next((request.headers[name] for name in _HEADERS if name in request.headers), "")
    return sent.removeprefix("Bearer ")


def _refusal(request: Request) -> Response:
    if request.headers.get("content-type", "").startswith("application/grpc"):
        return failed(UNAUTHENTICATED, _MESSAGE)
    return json_answer(_ERROR, 401)
