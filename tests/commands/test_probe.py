"""`dragoman map learn --probe` asks a server of gRPC, after it has named the cost."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from adapters.proto.backend.schema import message_class
from gateway.cli import main
from gateway.protobuf.reflection import SERVICES
from gateway.protobuf.reflection_pb2 import Request
from tests.adapters.proto.backend.services import METHODS, SET
from tests.adapters.proto.backend.services import answer as message
from tests.adapters.proto.learn.recorded import Said, deltas, talk
from tests.protobuf.test_reflection import files, services

FILES: Final[dict[str, FileDescriptorProto]] = {
    file.name: file for file in FileDescriptorSet.FromString(SET.read_bytes()).file
}
# Any: grpcio has no types, and the messages exist only at run time.
Text = Callable[[Any], tuple[str, int]]
Write = Callable[[Said], list[dict[str, Any]]]


@contextmanager
def server(service: str, text: Text, write: Write, status: int = 0) -> Iterator[tuple[str, list[Any]]]:
    """A server that describes itself and answers one method: the last word of a question, or as many words as the
    limit allows."""
    method, asked = METHODS[service], []
    name, _, last = method.path[1:].partition("/")
    own = [file for file in FILES.values() if file.package in (name.rpartition(".")[0], "google.protobuf")]

    def describe(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        for question in map(Request.FromString, requests):
            listed = question.HasField("list_services")
            yield (services(name) if listed else files(*own)).SerializeToString()

    def answer(request: bytes, context: Any) -> Iterator[bytes]:
        asked.append(message_class(method.request).FromString(request))
        if status:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such model")
        said, limit = text(asked[-1])
        word = said.split("\n\n")[0].split()[-1]
        cut = "Count" in said
        pieces = tuple(f"{number} " for number in range(limit)) if cut else (word[:4], word[4:])
        finish = "length" if cut else "stop"
        for one in write(Said(pieces, finish=finish, prompt=9, completion=len(pieces), id=f"r{len(asked)}", model="m")):
            yield message(service, one)

    running = grpc.server(ThreadPoolExecutor(4))
    running.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                SERVICES[0], {"ServerReflectionInfo": grpc.stream_stream_rpc_method_handler(describe)}
            ),
            grpc.method_handlers_generic_handler(name, {last: grpc.unary_stream_rpc_method_handler(answer)}),
        )
    )
    port = running.add_insecure_port("127.0.0.1:0")
    running.start()
    try:
        yield f"http://127.0.0.1:{port}", asked
    finally:
        running.stop(0).wait()


def learn(*arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["map", "learn", *arguments])
    assert isinstance(left.value.code, int)
    return left.value.code


def of_talk(request: Any) -> tuple[str, int]:
    return request.text, request.limits.most_tokens


def of_deltas(request: Any) -> tuple[str, int]:
    return request.messages[-1].content, request.max_tokens


CASES: Final[dict[str, tuple[Text, Write]]] = {"talk": (of_talk, talk), "deltas": (of_deltas, deltas)}


@pytest.mark.parametrize("service", CASES)
def test_a_service_that_is_asked_gets_an_entry(
    service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with server(service, *CASES[service]) as (url, asked):
        assert learn("--probe", url, "--model", "small", "--yes", "-o", "entry.json", "--save", "kept") == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"This asks {url} for its schema (server reflection, no tokens), and then sends up to 3")
    assert "tokens of prompts, and at most 136 tokens of answers" in printed
    assert [*map(CASES[service][0], asked)][2][1] == 8
    assert "by the name of the field" in printed
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert entry["schema"] == {"reflection": True, "cache": "entry.pb"}
    with pytest.raises(SystemExit) as left:
        main(["map", "check", "entry.json"])
    assert (left.value.code, capsys.readouterr().out) == (0, "backends.entry: no fault\n")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == ["cut_off", "other_word", "word"]


def test_the_entry_reads_what_the_service_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with server("talk", *CASES["talk"]) as (url, _):
        learn("--probe", url, "--model", "small", "--yes", "-o", "entry.json")
    entry = json.loads((tmp_path / "entry.json").read_text())
    assert entry["request"] == {
        "text": "$prompt",
        "engine": "$model",
        "limits": {"most_tokens": "$max_tokens", "heat": "$temperature", "until": "$stop"},
        "seed": "$seed",
    }
    (rule,) = entry["read"]
    assert (rule["text"], rule["mode"], rule["finish"]["at"]) == ("so_far", "total", "ending")
    assert rule["finish"]["reasons"] == {"ENDING_DONE": "stop", "ENDING_FULL": "length"}
    assert rule["finish"]["failures"] == ["ENDING_BROKEN"]


@pytest.mark.parametrize("reply", ["n", ""])
def test_nothing_is_sent_where_the_answer_is_no(
    reply: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: reply)
    with server("talk", *CASES["talk"]) as (url, asked):
        assert learn("--probe", url, "--model", "small") == 1
    assert asked == [] and capsys.readouterr().out.endswith("nothing was sent\n")


def refused(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert learn(*arguments) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--probe", "http://127.0.0.1:9"], "--model is missing: the service's name of a model"),
        (["--probe", "http://127.0.0.1:9", "--model", "m"], "nothing was sent: this is no terminal, and without --yes"),
        (["--probe", "http://127.0.0.1:9", "--model", "m", "recorded"], "--probe asks a server for its schema and"),
        (["--probe", "http://127.0.0.1:9", "--model", "m", "--yes", "--api-key-env", "NONE_X"], "--api-key-env: there"),
        (["--probe", "127.0.0.1:9", "--model", "m", "--yes"], "'127.0.0.1:9' has no scheme; write http://127.0.0.1:9"),
        (["--probe", "http://127.0.0.1:9", "--model", "m", "--yes"], "reflection: "),
        ([], "there is nothing to learn from: name recorded exchanges, or a server with --probe"),
    ],
)
def test_what_a_probe_lacks_is_an_error(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert refused(arguments, capsys).startswith(f"dragoman: {said}")


def test_a_service_that_refuses_is_asked_once(capsys: pytest.CaptureFixture[str]) -> None:
    with server("talk", *CASES["talk"], status=3) as (url, asked):
        said = refused(["--probe", url, "--model", "none", "--yes"], capsys)
    assert len(asked) == 1
    assert "it refuses the request 'word' to acme.talk.v1.Talk/Speak: grpc-status 3 no such model" in said
