"""A server of grpclib that plays answers from a file: `python -m tests.grpc_servers.programs.grpclib_server FILE`.

The first segment of a call's path is the name of its answer.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from grpclib.const import Cardinality, Handler, Status
from grpclib.server import Server

from tests.grpc_servers.scripted_answer import ScriptedAnswer, read_answers, report, report_request


class _Bytes:
    """The codec of messages that stay bytes. (Any: grpclib is not installed beside the tests.)"""

    __content_subtype__: Final = "proto"

    def encode(self, message: bytes, message_type: Any) -> bytes:
        return message

    def decode(self, data: bytes, message_type: Any) -> bytes:
        return data


class _Services:
    """Every answer at every path."""

    def __init__(self, answers: Mapping[str, ScriptedAnswer], paths: list[str]) -> None:
        self._answers = answers
        self._paths = paths

    def __mapping__(self) -> dict[str, Any]:
        return {
            f"/{name}{path}": Handler(
                _player(name, answer),
                Cardinality.UNARY_UNARY if path.endswith("Once") else Cardinality.UNARY_STREAM,
                bytes,
                bytes,
            )
            for name, answer in self._answers.items()
            for path in self._paths
        }


def _player(name: str, answer: ScriptedAnswer) -> Any:
    async def play(stream: Any) -> None:
        headers = {key: value for key, value in stream.metadata.items() if isinstance(value, str)}
        report_request(name, headers, await stream.recv_message())
        for message in answer.messages:
            await stream.send_message(message)
        if answer.held:
            try:
                await asyncio.Event().wait()
            finally:
                report("left", answer=name)
        await stream.send_trailing_metadata(
            status=Status(answer.status), status_message=answer.text or None, metadata=dict(answer.trailers)
        )

    return play


async def main(path: Path, methods: list[str]) -> None:
    """Serve until the process is ended."""
    server = Server([_Services(read_answers(path), methods)], codec=_Bytes())
    await server.start("127.0.0.1", 0)
    # The one way to the port that was chosen.
    report("ready", port=server._server.sockets[0].getsockname()[1])
    await server.wait_closed()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))
