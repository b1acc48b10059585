"""A server of connectrpc that plays answers from a file: `python -m tests.grpc_servers.programs.connect_server FILE`.

The first segment of a call's path is the name of its answer.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import uvicorn
from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from connectrpc.server import ConnectASGIApplication, Endpoint
from protobuf.wkt import Any as AnyMessage

from tests.grpc_servers.scripted_answer import ScriptedAnswer, read_answers, report, report_request

# Their order is that of gRPC, which has OK before them.
_CODES = (None, *Code)


class _Bytes:
    """The codec of messages that stay bytes. (Any: connectrpc is not installed beside the tests.)"""

    def name(self) -> str:
        return "proto"

    def encode(self, message: bytes) -> bytes:
        return message

    def decode(self, data: bytes | bytearray, message_class: Any) -> bytes:
        return bytes(data)


def _endpoints(answers: Mapping[str, ScriptedAnswer], paths: list[str]) -> dict[str, Any]:
    return {
        f"/{name}{path}": Endpoint.unary(_method(path), _unary(name, answer))
        if path.endswith("Once")
        else Endpoint.server_stream(_method(path), _stream(name, answer))
        for name, answer in answers.items()
        for path in paths
    }


def _method(path: str) -> Any:
    service, _, name = path[1:].partition("/")
    return MethodInfo(
        name=name,
        service_name=service,
        input=bytes,
        output=bytes,
        idempotency_level=IdempotencyLevel.UNKNOWN,
        stream_type=StreamType.UNARY if name.endswith("Once") else StreamType.SERVER_STREAM,
    )


def _stream(name: str, answer: ScriptedAnswer) -> Any:
    async def play(message: bytes, context: Any) -> AsyncIterator[bytes]:
        _report(name, context, message)
        for one in answer.messages:
            yield one
        await _end(name, answer)

    return play


def _unary(name: str, answer: ScriptedAnswer) -> Any:
    async def play(message: bytes, context: Any) -> bytes:
        _report(name, context, message)
        await _end(name, answer)
        return answer.messages[0] if answer.messages else b""

    return play


def _report(name: str, context: Any, message: bytes) -> None:
    timeout_s = context.timeout_ms and context.timeout_ms / 1000
    report_request(name, dict(context.request_headers.items()), message, timeout_s)


async def _end(name: str, answer: ScriptedAnswer) -> None:
    if answer.held:
        try:
            await asyncio.Event().wait()
        finally:
            report("left", answer=name)
    if code := _CODES[answer.status]:
        raise ConnectError(
            code, answer.text, [ErrorDetail(AnyMessage.from_binary(answer.detail))] if answer.detail else []
        )


def main(path: Path, methods: list[str]) -> None:
    """Serve until the process is ended."""
    answers = read_answers(path)
    application = type("Application", (ConnectASGIApplication,), {"path": ""})(
        service=None, endpoints=lambda _: _endpoints(answers, methods), codecs=[_Bytes()], read_max_bytes=None
    )
    listener = socket.create_server(("127.0.0.1", 0))
    report("ready", port=listener.getsockname()[1])
    uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off")).run([listener])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
