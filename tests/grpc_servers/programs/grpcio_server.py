"""A server of grpcio that plays answers from a file: `python -m tests.grpc_servers.programs.grpcio_server FILE`.

The first segment of a call's path is the name of its answer.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import grpc

from tests.grpc_servers.scripted_answer import ScriptedAnswer, read_answers, report, report_request

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class AnyMethod:
    """Handles the calls of every path; messages stay bytes. (Any: grpcio has no types.)"""

    def __init__(self, answers: Mapping[str, ScriptedAnswer]) -> None:
        self._answers = answers

    def service(self, call: Any) -> Any:
        """Return the handler of a call."""
        name = call.method.split("/")[1]
        headers = {key: value for key, value in call.invocation_metadata if isinstance(value, str)}
        if call.method.endswith("Once"):
            return grpc.unary_unary_rpc_method_handler(self._unary(name, headers))
        return grpc.unary_stream_rpc_method_handler(self._stream(name, headers))

    def _stream(self, name: str, headers: Mapping[str, str]) -> Any:
        answer = self._answers[name]

        async def play(message: bytes, context: Any) -> AsyncIterator[bytes]:
            report_request(name, headers, message, context.time_remaining())
            if answer.compressed:
                context.set_compression(grpc.Compression.Gzip)
            for one in answer.messages:
                yield one
            if answer.held:
                await _left(name)
            _end(answer, context)

        return play

    def _unary(self, name: str, headers: Mapping[str, str]) -> Any:
        answer = self._answers[name]

        async def play(message: bytes, context: Any) -> bytes:
            report_request(name, headers, message, context.time_remaining())
            if answer.held:
                await _left(name)
            _end(answer, context)
            return answer.messages[0] if answer.messages else b""

        return play


async def _left(name: str) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        report("left", answer=name)


def _end(answer: ScriptedAnswer, context: Any) -> None:
    details = {"grpc-status-details-bin": answer.status_details} if answer.detail else {}
    context.set_trailing_metadata(({**answer.trailers, **details}).items())
    context.set_code(_CODES[answer.status])
    context.set_details(answer.text)


async def main(path: Path) -> None:
    """Serve until the process is ended."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((AnyMethod(read_answers(path)),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    report("ready", port=port)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
