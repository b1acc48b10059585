"""A server of grpclib that plays answers from a file, at these paths, and describes itself by reflection:
`python -m tests.grpc_servers.programs.grpclib_server FILE SET VERSIONS PATH...`.

The first segment of a call's path is the name of its answer. SET is a file with a FileDescriptorSet, VERSIONS those of
the reflection.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Cardinality, Handler, Status
from grpclib.reflection._deprecated import ServerReflection as ServerReflectionV1Alpha
from grpclib.reflection.service import ServerReflection
from grpclib.server import Server

from tests.grpc_servers.scripted_answer import ScriptedAnswer, read_answers, report, report_request

_REFLECTION: Final = {"v1": ServerReflection, "v1alpha": ServerReflectionV1Alpha}


class _Codec:
    """The messages of scripted answers stay bytes. (Any: grpclib is not installed beside the tests.)"""

    __content_subtype__: Final = "proto"

    def encode(self, message: Any, message_type: Any) -> Any:
        return message if message_type is bytes else message.SerializeToString()

    def decode(self, data: bytes, message_type: Any) -> Any:
        return data if message_type is bytes else message_type.FromString(data)


class _DetailsCodec:
    """The details of a status are bytes already."""

    def encode(self, status: Any, message: str | None, details: bytes) -> bytes:
        return details


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
        timeout_s = stream.deadline and stream.deadline.time_remaining()
        report_request(name, headers, await stream.recv_message(), timeout_s)
        for message in answer.messages:
            await stream.send_message(message)
        if answer.held:
            try:
                await asyncio.Event().wait()
            finally:
                report("left", answer=name)
        await stream.send_trailing_metadata(
            status=Status(answer.status),
            status_message=answer.text or None,
            status_details=answer.status_details or None,
            metadata=dict(answer.trailers),
        )

    return play


def _reflection(data: bytes, versions: str) -> list[Any]:
    described = FileDescriptorSet.FromString(data)
    pool = DescriptorPool()
    for file in described.file:
        pool.Add(file)
    names = [f"{file.package}.{service.name}" for file in described.file for service in file.service]
    return [_REFLECTION[version](_service_names=names, _pool=pool) for version in versions.split(",")]


async def main(path: Path, reflection: list[Any], methods: list[str]) -> None:
    """Serve until the process is ended."""
    services = [_Services(read_answers(path), methods), *reflection]
    server = Server(services, codec=_Codec(), status_details_codec=_DetailsCodec())
    await server.start("127.0.0.1", 0)
    # The one way to the port that was chosen.
    report("ready", port=server._server.sockets[0].getsockname()[1])
    await server.wait_closed()


if __name__ == "__main__":
    answers, described, versions, *paths = sys.argv[1:]
    asyncio.run(main(Path(answers), _reflection(Path(described).read_bytes(), versions), paths))
