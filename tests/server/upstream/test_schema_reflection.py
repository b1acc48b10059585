"""The schema of a server is fetched over HTTP/2, kept in a cache, and read from it when the server is down."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc
import httpx
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from gateway.cli import main
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from gateway.core.errors import SettingsError
from gateway.protobuf.reflection import SERVICES
from gateway.protobuf.reflection_pb2 import Request
from gateway.server.process.settings_reload import Reloader
from gateway.server.upstream import schema_reflection
from gateway.server.upstream.schema_cache import update_caches
from gateway.server.upstream.schema_reflection import fetch_schema
from gateway.settings import BackendSettings, Settings, parse_settings
from gateway.settings.descriptor_files import read_descriptor_set
from gateway.settings.source import SettingsSource
from gateway.testing.gateway import gateway_command, running_gateway
from tests.adapters.proto.backend.mappings import SET, TALK, Entry
from tests.certificates import Authority
from tests.protobuf.test_reflection import NOT_FOUND, answer, files, services

V1, V1ALPHA = SERVICES
HELLO: Final = {"role": "user", "content": "Hello"}
# Any: grpcio has no types.
Answers = Callable[[Iterator[bytes], Any], Iterator[bytes]]


def described(path: Path) -> dict[str, FileDescriptorProto]:
    """The files of a descriptor set, by name."""
    return {file.name: file for file in FileDescriptorSet.FromString(path.read_bytes()).file}


TALK_FILES: Final = described(Path(SET))


def echo(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
    """Answers every question of a call, one at a time."""
    for request in requests:
        yield answer(Request.FromString(request)).SerializeToString()


def talk(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
    """Describes the invented services of the tests."""
    for request in requests:
        question = Request.FromString(request)
        reply = services("acme.talk.v1.Talk") if question.HasField("list_services") else files(*TALK_FILES.values())
        yield reply.SerializeToString()


def refuse(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
    context.abort(grpc.StatusCode.PERMISSION_DENIED, "not for you")
    yield b""


def many(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
    """Sends more than a schema may have."""
    yield from [NOT_FOUND.SerializeToString() + b"\x0a\xff\xff\x3f" + b"x" * 0xFFFFF] * 8


@contextmanager
def server(answers: dict[str, Answers], port: int = 0, tls: grpc.ServerCredentials | None = None) -> Iterator[str]:
    """A server of gRPC with these versions of reflection; yields its URL."""
    found = grpc.server(ThreadPoolExecutor(4))
    for service, play in answers.items():
        method = grpc.stream_stream_rpc_method_handler(play)
        found.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"ServerReflectionInfo": method}),)
        )
    place = f"127.0.0.1:{port}"
    bound = found.add_insecure_port(place) if tls is None else found.add_secure_port(place, tls)
    found.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{bound}"
    finally:
        found.stop(0).wait()


@pytest.mark.parametrize("service", SERVICES)
async def test_a_schema_is_fetched_by_either_version(service: str) -> None:
    with server({service: echo}) as url:
        fetched = await fetch_schema(url, {})
    found = FileDescriptorSet.FromString(fetched.descriptors.data).file
    assert [file.name for file in found] == ["echo.proto", "shared.proto"]
    assert fetched.undescribed == ("acme.Hidden",)


async def test_a_schema_is_fetched_with_the_files_of_the_entry(tmp_path: Path) -> None:
    authority = Authority()
    signed = authority.sign("server")
    tls = grpc.ssl_server_credentials([(signed.key, signed.certificate)])
    ca_file, _ = authority.root.write(tmp_path, "ca")
    with server({V1: talk}, tls=tls) as url:
        trusted = backend(url, tmp_path / "b.pb", tls={"ca_file": ca_file})
        await update_caches({"b": trusted})
        assert described(tmp_path / "b.pb") == TALK_FILES
        with pytest.raises(SettingsError, match="No trusted TLS connection"):
            await fetch_schema(url, {})


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({}, "the server has no server reflection"),
        ({V1: refuse}, "the server's status is 7"),
        ({V1: many}, "reflection: .*larger"),
    ],
)
async def test_a_server_without_a_schema_is_an_error(answers: dict[str, Answers], message: str) -> None:
    with server(answers) as url, pytest.raises(SettingsError, match=message):
        await fetch_schema(url, {})


async def test_a_server_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_reflection, "LIMIT_S", 0.2)
    ended = threading.Event()

    def silent(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        ended.wait(10)
        yield b""

    with server({V1: silent}) as url:
        try:
            with pytest.raises(SettingsError, match=r"did not answer within 0\.2 s"):
                await fetch_schema(url, {})
        finally:
            ended.set()


def entry_of(url: str, cache: Path, **more: Json) -> Entry:
    schema = {"reflection": True, "cache": str(cache)}
    return {"adapter": "proto", "base_url": url, **TALK, "schema": schema, "carrier": "grpc", **more}


def backend(url: str, cache: Path, **more: Json) -> BackendSettings:
    return parse_settings(json.dumps({"backends": {"b": entry_of(url, cache, **more)}})).backends["b"]


async def test_the_cache_is_used_while_the_backend_is_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = tmp_path / "below" / "b.pb"
    with server({V1: talk}) as url:
        await update_caches({"b": backend(url, cache)})
    assert described(cache) == TALK_FILES
    kept = cache.read_bytes()
    await update_caches({"b": backend(url, cache)})
    assert cache.read_bytes() == kept
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("backends.b.schema: reflection: ") and line.endswith(f"the cache {cache} is used")


async def test_without_a_cache_a_backend_that_is_down_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^backends\.b\.schema: reflection: .*no cache"):
        await update_caches({"b": backend("http://127.0.0.1:9", tmp_path / "b.pb")})


async def test_the_server_is_asked_with_the_credential_of_the_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("B_KEY", "secret-key")
    seen: list[dict[str, str]] = []

    def look(requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        seen.append(dict(context.invocation_metadata()))
        return talk(requests, context)

    with server({V1: look}) as url:
        await update_caches({"b": backend(url, tmp_path / "b.pb", api_key_env="B_KEY")})
    assert {one["authorization"] for one in seen} == {"Bearer secret-key"}


async def test_a_reload_fetches_the_schema_of_a_new_entry_and_reads_it_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "b.pb"
    threads: list[threading.Thread] = []

    def read(raw: Json, where: str) -> DescriptorSet:
        threads.append(threading.current_thread())
        return read_descriptor_set(raw, where)

    monkeypatch.setattr("gateway.settings.read.read_descriptor_set", read)
    async with running_gateway({}) as gateway:
        with server({V1: talk}) as url:
            settings = parse_settings(json.dumps({"backends": {"b": entry_of(url, cache)}}))
            await gateway.app.gateway_state.change(settings)
    assert described(cache) == TALK_FILES
    assert threads and threading.main_thread() not in threads


async def test_a_changed_file_is_read_in_a_thread(tmp_path: Path) -> None:
    threads: list[threading.Thread] = []
    loaded = asyncio.Event()
    loop = asyncio.get_running_loop()

    def load() -> Settings:
        threads.append(threading.current_thread())
        loop.call_soon_threadsafe(loaded.set)
        return parse_settings("{}")

    async with running_gateway({}) as gateway:
        reloader = Reloader(gateway.app.gateway_state, SettingsSource(tmp_path / "settings.json", load))
        task = asyncio.create_task(reloader.run())
        reloader.request_reload()
        await asyncio.wait_for(loaded.wait(), 20)
        task.cancel()
    assert threading.main_thread() not in threads


@pytest.mark.full
@pytest.mark.parametrize("workers", ["1", "2"])
async def test_the_gateway_asks_at_its_start_and_starts_with_the_cache_while_the_backend_is_down(
    tmp_path: Path, workers: str
) -> None:
    with server({V1: talk}) as url:
        backends: dict[str, Json] = {"b": entry_of(url, Path("b.pb"))}
        settings: dict[str, Json] = {"backends": backends, "models": {"m": {"backend": "b"}}, "log": {}}
        log = tmp_path / "logs" / "gateway.log"
        async with gateway_command(tmp_path, settings, "serve", "--port", "0", "--workers", workers) as gateway:
            await gateway.wait_ready()
    assert described(tmp_path / "b.pb") == TALK_FILES
    assert "the cache" not in log.read_text()
    async with gateway_command(tmp_path, settings, "serve", "--port", "0", "--workers", workers) as gateway:
        await gateway.wait_ready()
        async with httpx.AsyncClient(base_url=gateway.base_url, timeout=30) as client:
            explained = await client.post("/v1/explain", json={"model": "m", "messages": [HELLO]})
    assert explained.json()["encoded"]["schema"]["source"] == "reflection, cached in b.pb"
    assert log.read_text().count("the cache b.pb is used") == 1


def test_the_command_writes_the_schema_of_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "echo.pb"
    with server({V1: echo}) as url, pytest.raises(SystemExit) as left:
        main(["schema", "fetch", url, "-o", str(output)])
    assert left.value.code == 0
    size, hidden = capsys.readouterr().out.splitlines()
    assert (
        size.startswith(f"{output}: {output.stat().st_size} bytes, sha256 ") and hidden == "not described: acme.Hidden"
    )
    with pytest.raises(SystemExit) as left:
        main(["schema", "show", str(output), "acme.shared.Counts"])
    assert (left.value.code, capsys.readouterr().out) == (0, "message acme.shared.Counts\n  int32 used = 1\n")
