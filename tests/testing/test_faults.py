"""The kit plays what the catalogue of the demo backends lists, on the bytes of any wire."""

import asyncio
from typing import Final
from urllib.parse import urlsplit

import pytest

from gateway.testing.faults import IN_BODY, ResponseEvents, listed, playing

EVENTS: Final = ResponseEvents("text/x", begin=b"one\n", text=b"two\n", end=b"the end\n", failure=b"no\n", lines=True)


async def received(name: str, begun: bool, **options: str) -> bytes:
    """All bytes behind the head, up to the end of the connection or of the body, or a silence."""
    async with playing(listed(name, **options), EVENTS, begun) as backend:
        url = urlsplit(backend.base_url)
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\ncontent-type: text/x\r\n")
        body = b""
        try:
            async with asyncio.timeout(0.5):
                while not body.endswith(b"0\r\n\r\n") and (data := await reader.read(100)):
                    body += data
        except (TimeoutError, ConnectionResetError):
            body += b"..."
        writer.close()
    return body


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


@pytest.mark.parametrize(
    ("name", "options", "body"),
    [
        ("truncated", {"after": "1"}, chunks(b"two\n") + b"0\r\n\r\n"),
        ("cut_mid_event", {"after": "1"}, chunks(b"two\n", b"the ") + b"0\r\n\r\n"),
        ("disconnect", {"after": "1"}, chunks(b"two\n")),
        ("disconnect_first", {"how": "reset"}, b""),
        ("stall", {"after": "1"}, chunks(b"two\n") + b"..."),
        ("stall_first", {}, b"..."),
        ("slow", {"ms": "1"}, chunks(b"two\n", b"the end\n") + b"0\r\n\r\n"),
        ("held_open", {}, chunks(b"two\n", b"the end\n") + b"..."),
        ("bytewise", {"chunk": "5"}, chunks(b"two\nt", b"he en", b"d\n") + b"0\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
async def test_a_listed_fault_is_played_on_any_wire(
    name: str, options: dict[str, str], body: bytes, begun: bool
) -> None:
    assert await received(name, begun, **options) == (chunks(b"one\n") if begun else b"") + body


def test_only_what_changes_a_body_is_listed() -> None:
    assert {"truncated", "stall", "bad_json", "comments", "stream_reset"} <= IN_BODY.keys()
    assert not {"html", "redirect", "stall_headers", "wrong_content_type", "error_in_200"} & IN_BODY.keys()
    with pytest.raises(ValueError, match="there is no fault 'html' in the body of a stream; there are truncated,"):
        listed("html")
    with pytest.raises(ValueError, match="no option 'secs'"):
        listed("stall", secs="1")
