"""How protobuf wires are written down in the golden folders: protobuf text, one paragraph for each message."""

import base64
import re
from typing import Final

from google.protobuf import text_format

from adapters.proto.schema import message_class
from adapters.warp.multi_agent_pb2 import ResponseEvent
from tests.adapters.proto.services import METHODS, grpc_web


def _read_events(text: str) -> bytes:
    return b"".join(_frame(event) for event in re.split(r"\n\s*\n", text.strip()))


def _frame(text: str) -> bytes:
    event = text_format.Parse(text, ResponseEvent())
    return b"event:data\ndata:" + base64.urlsafe_b64encode(event.SerializeToString()) + b"\n\n"


def _read_chunks(text: str) -> bytes:
    """Messages of the invented service `parts`, in gRPC-Web. The last paragraph holds the trailers."""
    *messages, trailers = re.split(r"\n\s*\n", text.strip())
    kind = message_class(METHODS["parts"].response)
    written = [text_format.Parse(message, kind()).SerializeToString() for message in messages]
    return grpc_web(written, trailers.encode() + b"\r\n")


READERS: Final = {".textproto": _read_events, ".grpcweb": _read_chunks}
