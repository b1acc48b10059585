"""A compressed request body is read as it arrives, and its size and its work are bounded (RFC 9110, section 8.4.1)."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.server.upstream.http1.content_coding import FREE, ContentDecoder
from gateway.testing.gateway import hello
from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start

PATH: Final = "/v1/chat/completions"
BODY: Final = json.dumps(hello()).encode()
CODINGS: Final[Mapping[str, tuple[str, Callable[[bytes], bytes]]]] = {
    "gzip": ("gzip", gzip.compress),
    "upper case": ("GZIP", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "members": ("gzip", lambda body: b"".join(gzip.compress(body[at : at + 9]) for at in range(0, len(body), 9))),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", lambda body: zlib.compress(body, wbits=-15)),
    "identity": ("identity", bytes),
}


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hello", "finish"), END)


def headers(coding: str) -> dict[str, str]:
    return {"content-type": "application/json", "content-encoding": coding}


async def in_pieces(body: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]
        await asyncio.sleep(0)


@pytest.mark.parametrize("name", CODINGS)
async def test_a_compressed_request_is_served_like_its_plain_body(start: Start, name: str) -> None:
    coding, compress = CODINGS[name]
    gateway, backend = await start(well)
    plain = await gateway.client.post(PATH, content=BODY, headers=headers("identity"))
    whole = await gateway.client.post(PATH, content=compress(BODY), headers=headers(coding))
    chunked = await gateway.client.post(PATH, content=in_pieces(compress(BODY), 7), headers=headers(coding))
    assert [answer.status_code for answer in (plain, whole, chunked)] == [200] * 3, plain.text
    assert len(backend.seen) == 3 and len({body for _, body in backend.seen}) == 1


async def test_other_routes_read_it_too(start: Start) -> None:
    gateway, backend = await start(well)
    response = await gateway.client.post("/v1/explain", content=gzip.compress(BODY), headers=headers("gzip"))
    assert response.status_code == 200 and response.json()["model"] == "m"
    counted: Json = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}
    packed = zlib.compress(json.dumps(counted).encode())
    response = await gateway.client.post("/v1/messages/count_tokens", content=packed, headers=headers("deflate"))
    assert response.status_code == 200 and response.json()["input_tokens"] > 0
    assert not backend.seen


@pytest.mark.parametrize("coding", ["br", "zstd", "compress", "gzip, gzip", "gzip, identity", "*", "\xff"])
async def test_another_coding_is_a_415_that_names_those_that_are_read(start: Start, coding: str) -> None:
    gateway, backend = await start(well)
    raw = [(b"content-type", b"application/json"), (b"content-encoding", coding.encode("latin-1"))]
    response = await gateway.client.post(PATH, content=b"x", headers=raw)
    assert (response.status_code, response.json()["error"]["code"]) == (415, "unsupported_media_type")
    # RFC 9110, section 15.5.16
    assert response.headers["accept-encoding"] == "gzip, deflate"
    assert not backend.seen


PACKED: Final = gzip.compress(BODY)


BROKEN: Final[Mapping[str, tuple[str, bytes]]] = {
    "plain as gzip": ("gzip", BODY),
    "plain as deflate": ("deflate", BODY),
    "without its last byte": ("gzip", PACKED[:-1]),
    "its beginning": ("gzip", PACKED[:12]),
    "with a byte more": ("gzip", PACKED + b"\0"),
    "with another checksum": ("gzip", PACKED[:-8] + bytes(8)),
    "deflate with a byte more": ("deflate", zlib.compress(BODY) + b"x"),
    "deflate as gzip": ("gzip", zlib.compress(BODY)),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_body_that_is_not_what_its_head_says_is_a_400(start: Start, name: str) -> None:
    coding, body = BROKEN[name]
    gateway, backend = await start(well)
    response = await gateway.client.post(PATH, content=body, headers=headers(coding))
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_content_encoding")
    assert not backend.seen
    assert (await gateway.chat()).status_code == 200


def large(size: int) -> bytes:
    """A request of about so many bytes that shrinks little enough."""
    words = " ".join(str(number) for number in range(size // 7))
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": words}]}).encode()


async def test_the_limit_is_that_of_the_decompressed_body(start: Start) -> None:
    gateway, backend = await start(well, max_body_mb=2)
    fits, exceeds = large(1_900_000), large(2_400_000)
    assert len(fits) < 2 << 20 < len(exceeds) and len(gzip.compress(exceeds)) < 1 << 20
    for body, status in ((fits, 200), (exceeds, 413), (fits, 200)):
        response = await gateway.client.post(PATH, content=gzip.compress(body), headers=headers("gzip"))
        assert response.status_code == status
    (_, first), (_, second) = backend.seen
    assert first == second
    response = await gateway.client.post(PATH, content=gzip.compress(exceeds), headers=headers("gzip"))
    assert response.json()["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("times", [1, 2])
async def test_of_a_bomb_little_is_decompressed(start: Start, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bomb of 100 MB stands for one of any size: what is made of it does not depend on what it would become."""
    given = 0
    feed = ContentDecoder.feed

    def counting(self: ContentDecoder, data: bytes = b"") -> bytes:
        nonlocal given
        found = feed(self, data)
        given += len(found)
        return found

    monkeypatch.setattr(ContentDecoder, "feed", counting)
    bomb = b" " * 100_000_000
    for _ in range(times):
        bomb = gzip.compress(bomb)
    gateway, backend = await start(well)
    response = await gateway.client.post(PATH, content=bomb, headers=headers("gzip"))
    assert response.status_code == (413 if times == 1 else 400)
    # Within the first bytes the ratio leaves room for a megabyte, and then for 200 times the size of the bomb.
    assert given <= FREE + 200 * len(bomb)
    assert not backend.seen


async def test_many_empty_members_leave_the_loop_to_others(start: Start) -> None:
    gateway, _ = await start(well)
    body = gzip.compress(b"") * 50_000 + PACKED
    sent = asyncio.create_task(gateway.client.post(PATH, content=body, headers=headers("gzip")))
    turns = 0
    while not sent.done():
        turns += 1
        await asyncio.sleep(0)
    assert (await sent).status_code == 200
    # A turn of the loop for each part of 64 KiB, at least.
    assert turns > len(body) // 2**16
