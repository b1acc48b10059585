"""Asks a server for its schema by gRPC server reflection, sans-IO: bodies of requests out, bodies of responses in.

A method that streams both ways is asked in rounds. The body of a round holds all questions that are known, and the next
round asks for what the answers lack. (Source: gRPC, "GRPC Server Reflection Protocol".)
"""

from collections.abc import Iterator
from typing import Final

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError

from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.protobuf.reflection_pb2 import Files, Request, Response

# The versions, the preferred one first. Their messages are the same.
SERVICES: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
LARGEST: Final = 2 << 20
MOST_FILES: Final = 500
_HEADER: Final = 5


def reflection_path(service: str) -> str:
    """Returns the path of the method of one version."""
    return f"/{service}/ServerReflectionInfo"


class Reflection:
    """Collects the files of a server. `undescribed` are the services that it lists and does not describe.

    The answers are the backend's word: at most 2 MiB and 500 files are kept, and the name of a file is only a name.
    """

    def __init__(self) -> None:
        self.undescribed: list[str] = []
        self._files: dict[str, FileDescriptorProto] = {}
        self._size = 0
        self._questions = [Request(list_services="")]

    def body(self) -> bytes:
        """Returns the body of the next round, empty when the schema is complete."""
        return b"".join(map(_frame, self._questions))

    def feed(self, body: bytes) -> None:
        """Takes the whole body of the response to a round. Raises SettingsError for an answer that is malformed, too
        large or incomplete."""
        answers = [_response(message) for message in _messages(body)]
        if len(answers) != len(self._questions):
            raise SettingsError(
                f"reflection: the server gave {len(answers)} answers to {len(self._questions)} questions"
            )
        listed: list[str] = []
        for question, answer in zip(self._questions, answers, strict=True):
            match answer.WhichOneof("answer"):
                case "services" if question.HasField("list_services"):
                    listed += [service.name for service in answer.services.service]
                case "files" if self._added(answer.files, question.file_by_filename):
                    pass
                case "failure" if question.HasField("file_containing_symbol"):
                    self.undescribed.append(question.file_containing_symbol)
                case _:
                    raise SettingsError(f"reflection: the server has no answer to {_named(question)}")
        own = [name for name in listed if name not in SERVICES]
        self._questions = [Request(file_containing_symbol=name) for name in own[: MOST_FILES + 1]]
        if not listed:
            self._questions = [Request(file_by_filename=name) for name in self._missing()]
        if len(self._questions) + len(self._files) > MOST_FILES:
            raise SettingsError(f"reflection: the server's schema has more than {MOST_FILES} files")

    def descriptor_set(self) -> DescriptorSet:
        """Returns all files, in the order of their names. Raises SettingsError where there is none."""
        if not self._files:
            raise SettingsError("reflection: the server describes no service")
        files = [self._files[name] for name in sorted(self._files)]
        return DescriptorSet(FileDescriptorSet(file=files).SerializeToString(deterministic=True))

    def _added(self, files: Files, name: str) -> bool:
        """Keeps the files. Returns whether the one of this name is kept: without it the next round would ask again."""
        for file in files.file_descriptor_proto:
            self._add(file)
        return not name or name in self._files

    def _add(self, data: bytes) -> None:
        try:
            file = FileDescriptorProto.FromString(data)
        except DecodeError as error:
            raise SettingsError("reflection: the server sent a file that is no FileDescriptorProto") from error
        if file.name in self._files:
            return
        self._files[file.name] = file
        self._size += len(data)
        if self._size > LARGEST or len(self._files) > MOST_FILES:
            raise SettingsError(f"reflection: the server's schema has more than {LARGEST} bytes or {MOST_FILES} files")

    def _missing(self) -> list[str]:
        imports = {name for file in self._files.values() for name in file.dependency}
        return sorted(imports - self._files.keys())


def _named(question: Request) -> str:
    if question.HasField("file_by_filename"):
        return f"the question for the file {question.file_by_filename!r}"
    if question.HasField("file_containing_symbol"):
        return f"the question for the service {question.file_containing_symbol!r}"
    return "the question for its services"


def _frame(message: Request) -> bytes:
    data = message.SerializeToString()
    return b"\0" + len(data).to_bytes(4, "big") + data


def _messages(body: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(body):
        end = at + _HEADER + int.from_bytes(body[at + 1 : at + _HEADER], "big")
        if body[at] or end > len(body) or end < at + _HEADER:
            raise SettingsError("reflection: the server's response is not whole messages of gRPC")
        yield body[at + _HEADER : end]
        at = end


def _response(message: bytes) -> Response:
    try:
        return Response.FromString(message)
    except DecodeError as error:
        raise SettingsError("reflection: the server's response is no message of server reflection") from error
