"""Every fault of the gRPC wire is on the wire what its description says."""

from collections.abc import AsyncIterator

import grpc
import pytest
import pytest_asyncio

from adapters.proto.demo import generation_pb2 as pb
from adapters.proto.demo.backend import METHOD
from adapters.proto.status_details_pb2 import RetryInfo, Status
from gateway.demo.serve import DemoBackend, serve_demo
from gateway.framing.base64 import decode_base64
from tests.demo.http2_client import Seen, asked, connected
from tests.e2e.demo_gateway import busy

COUNT = "Count to 9"


@pytest_asyncio.fixture
async def backend() -> AsyncIterator[DemoBackend]:
    async with serve_demo("grpc") as running:
        yield running


async def played(backend: DemoBackend, marker: str) -> Seen:
    async with connected(backend) as client:
        return await client.answer(f"{COUNT} [[demo:{marker}]]")


@pytest.mark.parametrize(
    ("marker", "code"),
    [
        ("status", "13"),
        ("status code=5", "5"),
        ("unavailable", "14"),
        ("quota", "8"),
        ("wrong_key", "16"),
        ("context_length", "3"),
    ],
)
async def test_a_failure_at_once_is_a_head_alone(backend: DemoBackend, marker: str, code: str) -> None:
    seen = await played(backend, marker)
    assert (seen.head[":status"], seen.head["grpc-status"], seen.trailers, seen.body) == ("200", code, None, b"")
    assert seen.ended and seen.head["grpc-message"]


async def test_a_status_tells_when_to_come_back(backend: DemoBackend) -> None:
    assert (await played(backend, "status code=14 retry_ms=250")).head["grpc-retry-pushback-ms"] == "250"
    details = decode_base64((await played(backend, "quota")).head["grpc-status-details-bin"].encode(), 4096)
    status = Status.FromString(details)
    delay, stack = status.details
    assert (status.code, delay.type_url) == (8, "type.googleapis.com/google.rpc.RetryInfo")
    assert RetryInfo.FromString(delay.value).retry_delay.seconds == 7
    assert stack.type_url.endswith(".DebugInfo") and b"not for clients" in stack.value


@pytest.mark.parametrize(
    ("marker", "count", "trailers"),
    [
        ("status_late", 3, "14"),
        ("status_late after=1 code=13", 1, "13"),
        ("status_last", 10, "14"),
        ("no_status", 10, None),
        ("no_finish", 9, "0"),
        ("half_message", 3, "0"),
        ("truncated", 3, None),
        ("cut_mid_event", 3, None),
        ("unknown_fields", 10, "0"),
        ("unknown_content", 11, "0"),
        ("bad_utf8", None, "0"),
        ("bytewise", 10, "0"),
        ("pings", 10, "0"),
    ],
)
async def test_a_response_ends_as_told(
    backend: DemoBackend, marker: str, count: int | None, trailers: str | None
) -> None:
    seen = await played(backend, marker)
    assert seen.ended and (seen.trailers or {}).get("grpc-status") == trailers
    assert count is None or len(seen.messages) == count


@pytest.mark.parametrize(
    ("marker", "begins"),
    [
        ("forged_status", b"\x80\x00\x00\x00\x10grpc-status: 0"),
        ("compressed_message", b"\x01\x00\x00\x00"),
        ("bad_message", b"\x00\x00\x00\x00\x05\x0a\xff\xff\xff\xff"),
        ("endless_message", b"\x00\xff\xff\xff\xff"),
        ("huge_message mb=1", b"\x00\x00\x10\x00"),
    ],
)
async def test_a_message_stands_in_the_middle(backend: DemoBackend, marker: str, begins: bytes) -> None:
    assert begins in (await played(backend, marker)).body


@pytest.mark.parametrize(("marker", "finish"), [("failed", pb.FINISH_FAILED), ("content_filter", pb.FINISH_FILTERED)])
async def test_the_finish_is_another_one(backend: DemoBackend, marker: str, finish: int) -> None:
    assert (await played(backend, marker)).messages[-1].finish == finish


@pytest.mark.parametrize(
    ("marker", "code", "begun"),
    [
        ("reset", 2, True),
        ("reset code=8", 8, True),
        ("reset_first", 2, False),
        ("refused", 7, False),
        ("calm", 11, False),
        ("insecure", 12, False),
    ],
)
async def test_a_stream_is_reset_and_its_connection_stays(
    backend: DemoBackend, marker: str, code: int, begun: bool
) -> None:
    async with connected(backend) as client:
        seen = await client.answer(f"{COUNT} [[demo:{marker}]]")
        assert (seen.code, bool(seen.head), bool(seen.messages)) == (code, begun, begun)
        assert (await client.answer("Count to 2")).text == "1, 2"


@pytest.mark.parametrize("how", ["fin", "reset"])
@pytest.mark.parametrize("name", ["disconnect", "disconnect_first"])
async def test_the_connection_breaks(backend: DemoBackend, name: str, how: str) -> None:
    async with connected(backend) as client:
        seen = await client.answer(f"{COUNT} [[demo:{name} how={how}]]")
        await client.closed.wait()
    assert not seen.ended and bool(seen.messages) is (name == "disconnect")


async def test_going_away_excludes_the_request(backend: DemoBackend) -> None:
    async with connected(backend) as client:
        seen = await client.answer(f"{COUNT} [[demo:go_away_first]]")
    assert (client.last_stream, seen.head) == (0, {})


async def test_going_away_leaves_the_request_its_answer(backend: DemoBackend) -> None:
    """The library of the other tests reads nothing behind a GOAWAY, and grpcio does."""
    request = asked(f"{COUNT} [[demo:go_away]]")[5:]
    async with grpc.aio.insecure_channel(backend.base_url.removeprefix("http://")) as channel:
        assert len([message async for message in channel.unary_stream(METHOD)(request)]) == 10


@pytest.mark.parametrize("name", ["continuations", "over_window"])
async def test_the_library_of_a_client_ends_the_connection(backend: DemoBackend, name: str) -> None:
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        async with connected(backend) as client:
            await client.answer(f"{COUNT} [[demo:{name}]]")


@pytest.mark.parametrize("name", ["ping_flood", "settings_flood", "data_flood"])
async def test_a_flood_stands_in_the_middle_of_a_complete_answer(backend: DemoBackend, name: str) -> None:
    async with connected(backend) as client:
        seen = await client.answer(f"{COUNT} [[demo:{name} count=2000]]")
        assert seen.text == "1, 2, 3, 4, 5, 6, 7, 8, 9" and seen.trailers == {"grpc-status": "0"}
        assert client.pings == (2000 if name == "ping_flood" else 0)


async def test_trailers_may_have_many_fields(backend: DemoBackend) -> None:
    assert (await played(backend, "large_trailers count=100")).trailers == {"x": "y"}
    with pytest.raises(ExceptionGroup, match="unhandled errors"):
        await played(backend, "large_trailers")


@pytest.mark.parametrize(
    ("name", "head", "count"),
    [("stall", True, 3), ("stall_first", True, 0), ("stall_headers", False, 0), ("held_open", True, 10)],
)
async def test_a_silence_ends_when_the_client_leaves(backend: DemoBackend, name: str, head: bool, count: int) -> None:
    async with connected(backend) as client:
        seen = client.ask(asked(f"{COUNT} [[demo:{name}]]"))
        await busy(backend)
        assert (bool(seen.head), len(seen.messages), seen.ended) == (head, count, False)
    await backend.idle()
    assert backend.aborted == 1
