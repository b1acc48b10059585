"""Encodes a response as gRPC: messages behind their length, and the status in the trailers or, alone, in the head.

Source: "gRPC over HTTP2", Responses.
"""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.struct_pb2 import Struct

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.answer import Answer
from adapters.proto.status_details_pb2 import Status
from gateway.demo.player.playback import Response
from gateway.demo.scripted_model.dialogue import PlannedCall

GRPC: Final = {"content-type": "application/grpc+proto"}
OK: Final = {"grpc-status": "0"}

INVALID_ARGUMENT: Final = 3
RESOURCE_EXHAUSTED: Final = 8
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
UNAUTHENTICATED: Final = 16

# What a status message holds as it is: printable ASCII but the mark of an escape.
_PLAIN: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def envelope(message: bytes, flags: int = 0) -> bytes:
    """Puts a message behind its flags and its length."""
    return bytes([flags]) + len(message).to_bytes(4, "big") + message


def frames(answer: Answer) -> list[bytes]:
    """Returns the messages of the whole answer, each in its envelope."""
    return [frame(message) for message in messages(answer)]


def frame(message: pb.GenerateResponse) -> bytes:
    """Encodes one message in its envelope."""
    return envelope(message.SerializeToString())


def messages(answer: Answer) -> Iterator[pb.GenerateResponse]:
    """Yields the answer piece by piece; the last message has the finish and the token counts."""
    yield from (message(answer, reasoning=piece) for piece in answer.reasoning)
    yield from (message(answer, text=piece) for piece in answer.text)
    yield from (message(answer, call=_call(call)) for call in answer.calls)
    yield last(answer)


def message(answer: Answer, **fields: Any) -> pb.GenerateResponse:
    """Builds a message with these fields. (Any: the constructor of the message checks them.)"""
    return pb.GenerateResponse(id=answer.id, model=answer.model, **fields)


def last(answer: Answer, finish: str = "") -> pb.GenerateResponse:
    """Builds the last message, with the answer's finish or another one."""
    usage = pb.Usage(
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
        reasoning_tokens=len(answer.reasoning),
    )
    return message(answer, finish=finish or answer.finish, usage=usage)


def complete(answer: Answer) -> Response:
    """Builds the response to a call that succeeds."""
    return Response(tuple(frames(answer)), headers=GRPC, trailers=OK)


def failed(code: int, text: str, metadata: Mapping[str, str] | None = None) -> Response:
    """Builds the response of a call that fails at once: a head alone."""
    return Response(headers={**GRPC, **status(code, text), **(metadata or {})})


def status(code: int, text: str) -> dict[str, str]:
    """Builds the metadata that reports a status."""
    return {"grpc-status": str(code), "grpc-message": quote(text, safe=_PLAIN)}


def details(code: int, text: str, found: Mapping[str, bytes]) -> dict[str, str]:
    """Builds the metadata with the details of a status: serialized messages of google.rpc by their names."""
    packed = [AnyMessage(type_url=f"type.googleapis.com/google.rpc.{name}", value=one) for name, one in found.items()]
    described = Status(code=code, message=text, details=packed)
    return {"grpc-status-details-bin": b64encode(described.SerializeToString()).decode().rstrip("=")}


def _call(call: PlannedCall) -> pb.ToolCall:
    arguments = Struct()
    arguments.update(dict(call.arguments))
    return pb.ToolCall(id=call.id, name=call.name, arguments=arguments)
