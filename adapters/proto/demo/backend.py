"""Serves the service `Generation` over gRPC."""

from typing import Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from starlette.requests import Request
from starlette.routing import Route

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.answer import answer_grpc
from adapters.proto.demo.request import read_grpc
from adapters.proto.demo.response import INVALID_ARGUMENT, UNIMPLEMENTED, complete, failed
from gateway.core.conversation import Json
from gateway.demo.faults.playing import Faults, Steps, respond
from gateway.demo.player.endpoint import Refused, get, post, read_body
from gateway.demo.player.playback import Response
from gateway.demo.player.recorder import Recorder

METHOD: Final = "/dragoman.demo.v1.Generation/Generate"
_MEDIA_TYPES: Final = ("application/grpc", "application/grpc+proto")
_PREFIX: Final = 5


def grpc_routes(recorder: Recorder, faults: Faults) -> list[Route]:
    """Returns the routes: the method, every other path, and the recorded requests."""

    async def generate(request: Request) -> Response:
        return await _generate(request, recorder, faults)

    async def unknown(request: Request) -> Response:
        return failed(UNIMPLEMENTED, f"there is no method {request.url.path}; there is {METHOD}")

    return [
        post(METHOD, generate, recorder),
        get("/__demo/requests", recorder.as_json),
        post("/{method:path}", unknown),
    ]


async def _generate(request: Request, recorder: Recorder, faults: Faults) -> Response:
    body = await read_body(request)
    recorder.record(request, body, _shown)
    if request.headers.get("content-type") not in _MEDIA_TYPES:
        return Response((), 415, {})
    if request.headers.get("te") != "trailers":
        return failed(INVALID_ARGUMENT, "the request lacks `te: trailers`")
    if body[:1] == b"\1":
        return failed(UNIMPLEMENTED, "the request's message is compressed; this service reads identity")
    # What a fault edits of a request are fields of JSON: this wire has no such fault.
    steps = Steps(
        read=lambda _: read_grpc(_message(body)),
        question=lambda asked: asked.marked_question,
        answer=lambda asked, model: answer_grpc(asked, recorder.count, model),
        respond=lambda _, answer: complete(answer),
    )
    try:
        return respond(steps, faults, {})
    except (ValueError, DecodeError, Refused) as error:
        return failed(INVALID_ARGUMENT, str(error))


def _message(body: bytes) -> pb.GenerateRequest:
    """Returns the only message of a body. Raises ValueError or DecodeError."""
    if len(body) < _PREFIX or body[0] or int.from_bytes(body[1:_PREFIX], "big") != len(body) - _PREFIX:
        raise ValueError("the body is not one message behind a flag of 0 and its length")
    return pb.GenerateRequest.FromString(body[_PREFIX:])


def _shown(body: bytes) -> Json:
    try:
        shown: Json = MessageToDict(_message(body), preserving_proto_field_name=True)
    except (ValueError, DecodeError):
        return None
    return shown
