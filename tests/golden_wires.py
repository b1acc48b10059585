"""How protobuf wires are written down in the golden folders: protobuf text, one paragraph for each message."""

import base64
import re
from typing import Final

from google.protobuf import text_format

from adapters.proto.backend import ProtoOptions
from adapters.proto.backend.schema import Schema, message_class
from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.settings import check_options
from tests.adapters.proto.backend.services import METHODS, WRITERS, grpc_web


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


def preset_messages(text: str) -> tuple[str, list[bytes], bytes]:
    """The carrier, the messages and the trailers of a wire that names its preset and its carrier in its first line."""
    head, *paragraphs = re.split(r"\n\s*\n", text.strip())
    preset, carrier = head.removeprefix("preset ").split(" over ")
    options = check_options({"preset": preset}, ProtoOptions, "options")
    kind = message_class(Schema(options.schema).method(options.method).response)
    written = paragraphs if carrier == "sse_base64" else paragraphs[:-1]
    messages = [text_format.Parse(message, kind()).SerializeToString() for message in written]
    return carrier, messages, paragraphs[-1].encode() + b"\r\n"


def _read_preset(text: str) -> bytes:
    carrier, messages, trailers = preset_messages(text)
    return grpc_web(messages, trailers) if carrier == "grpc_web" else WRITERS[carrier](messages)


READERS: Final = {".textproto": _read_events, ".grpcweb": _read_chunks, ".preset": _read_preset}
