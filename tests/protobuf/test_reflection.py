"""The schema of a server is collected in rounds, within its bounds, whatever the server answers."""

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.errors import SettingsError
from gateway.protobuf.reflection import LARGEST, MOST_FILES, SERVICES, Reflection, reflection_path
from gateway.protobuf.reflection_pb2 import Failure, Files, Request, Response, Service, Services
from tests.adapters.proto.backend.services import envelope
from tests.protobuf.schemas import ECHO, SHARED

FILES: Final = {file.name: file for file in (ECHO, SHARED)}


def questions(body: bytes) -> list[Request]:
    found = []
    while body:
        size = int.from_bytes(body[1:5], "big")
        found.append(Request.FromString(body[5 : 5 + size]))
        body = body[5 + size :]
    return found


def files(*found: FileDescriptorProto) -> Response:
    return Response(files=Files(file_descriptor_proto=[file.SerializeToString() for file in found]))


def services(*names: str) -> Response:
    return Response(services=Services(service=[Service(name=name) for name in names]))


NOT_FOUND: Final = Response(failure=Failure(error_code=5, error_message="no such thing"))


def answer(question: Request, served: Mapping[str, FileDescriptorProto] = FILES) -> Response:
    """A server that answers each question with one file, so that imports must be asked for."""
    match question.WhichOneof("question"):
        case "list_services":
            return services(*SERVICES, "acme.Echoes", "acme.Hidden")
        case "file_containing_symbol" if question.file_containing_symbol == "acme.Echoes":
            return files(ECHO)
        case "file_by_filename" if question.file_by_filename in served:
            return files(served[question.file_by_filename])
        case _:
            return NOT_FOUND


def collect(reply: Callable[[Request], Response]) -> Reflection:
    reflection = Reflection()
    rounds = 0
    while body := reflection.body():
        reflection.feed(b"".join(envelope(reply(one).SerializeToString()) for one in questions(body)))
        rounds += 1
        assert rounds < 10
    return reflection


def test_the_services_their_files_and_the_imports_of_these_are_collected() -> None:
    reflection = collect(answer)
    found = FileDescriptorSet.FromString(reflection.descriptor_set().data).file
    assert [file.name for file in found] == ["echo.proto", "shared.proto"]
    assert found[0] == ECHO and found[1] == SHARED
    assert reflection.undescribed == ["acme.Hidden"]


def test_the_numbers_on_the_wire_are_those_of_the_protocol() -> None:
    assert Reflection().body() == bytes.fromhex("00000000023a00")  # field 7, empty
    reflection = Reflection()
    reflection.feed(envelope(bytes.fromhex("320a 0a08 0a06 612e4563686f")))  # field 6: field 1: field 1 "a.Echo"
    assert reflection.body() == envelope(bytes.fromhex("2206 612e4563686f"))  # field 4
    reflection.feed(envelope(bytes.fromhex("2209 0a07 0a0161 1a026262")))  # field 4: a file "a" that imports "bb"
    assert reflection.body() == envelope(bytes.fromhex("1a02 6262"))  # field 3
    assert [reflection_path(service) for service in SERVICES] == [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda question: services(), "describes no service"),
        (lambda question: services(*SERVICES), "describes no service"),
        (lambda question: NOT_FOUND, "no answer to the question for its services"),
        (lambda question: Response(), "no answer to the question for its services"),
        (lambda question: answer(question, {}), "no answer to the question for the file 'shared.proto'"),
        (
            lambda question: answer(question, {"shared.proto": ECHO}),
            "no answer to the question for the file 'shared.proto'",
        ),
        (lambda question: services("acme.Echoes"), "no answer to the question for the service 'acme.Echoes'"),
        (
            lambda question: services(*(f"acme.S{number}" for number in range(MOST_FILES + 1))),
            f"more than {MOST_FILES} files",
        ),
        (
            lambda question: (
                answer(question)
                if question.HasField("list_services")
                else files(FileDescriptorProto(name="huge", package="p" * LARGEST))
            ),
            f"more than {LARGEST} bytes",
        ),
        (
            lambda question: (
                answer(question)
                if question.HasField("list_services")
                else files(*(FileDescriptorProto(name=f"f{number}") for number in range(MOST_FILES + 1)))
            ),
            f"or {MOST_FILES} files",
        ),
        (
            lambda question: (
                answer(question)
                if question.HasField("list_services")
                else Response(files=Files(file_descriptor_proto=[b"\x0a\xff"]))
            ),
            "no FileDescriptorProto",
        ),
    ],
)
def test_an_answer_that_is_no_schema_is_refused(reply: Callable[[Request], Response], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        collect(reply).descriptor_set()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        envelope(services("a.A").SerializeToString())[:-1],
        envelope(services("a.A").SerializeToString(), 1),
        envelope(services("a.A").SerializeToString()) * 2,
        envelope(b"\xff"),
        b"\0\0\0",
    ],
)
def test_a_body_that_is_not_whole_answers_is_refused(body: bytes) -> None:
    with pytest.raises(SettingsError, match=r"^reflection: "):
        Reflection().feed(body)


def test_a_file_that_imports_itself_is_asked_for_once() -> None:
    loop = FileDescriptorProto(name="loop", dependency=["loop"])
    reflection = collect(lambda question: answer(question) if question.HasField("list_services") else files(loop))
    assert len(FileDescriptorSet.FromString(reflection.descriptor_set().data).file) == 1


@given(st.lists(st.binary(max_size=80), max_size=4), st.booleans())
def test_law_any_answer_is_a_schema_or_a_settings_error(bodies: list[bytes], framed: bool) -> None:
    reflection = Reflection()
    with contextlib.suppress(SettingsError):
        for body in bodies:
            reflection.feed(envelope(body) if framed else body)
        assert FileDescriptorSet.FromString(reflection.descriptor_set().data).file
