"""The exported commands, run by real shells, send the recorded bytes."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from gateway.recording.export import export
from gateway.recording.export.curl import LOCAL, curl_commands, quoted
from gateway.recording.lines import RecordingError, data_of
from gateway.recording.recording import Recording
from tests.recording.samples import goldens, interaction_of

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
BODIES = [
    b'{"model": "m"}',
    b'{"a": "it\'s $HOME `id` \\"x\\" \\\\n"}\n',
    b"line\nBODY\nBODY_\n",
    b"",
    b"\n\n",
    b"\0\1\2 binary \xff",
    "Привет 漢字 \u2028".encode(),
    b"a\r\nb",
    b"x" * 100_000,
    b"-d @/etc/passwd\n--data x",
]


class Received:
    """The requests that came, heads and bodies."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        size = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        if b"expect: 100-continue" in lines:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.heads.append(head)
        self.bodies.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Received]:
    received = Received()
    server = await asyncio.start_server(received.answer, "127.0.0.1", 0)
    async with server:
        received.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield received


async def run(shell: str, script: str, url: str) -> str:
    environ = {"PATH": "/usr/bin:/bin", "DRAGOMAN_URL": url, "DRAGOMAN_KEY": "a key"}
    process = await asyncio.create_subprocess_exec(
        shell,
        "-s",
        stdin=-1,
        stdout=-1,
        stderr=-1,
        env=environ,  # the three are pipes
    )
    out, errors = await process.communicate(script.encode())
    assert process.returncode == 0, errors
    return out.decode()


def recording_of(*bodies: bytes, **request: object) -> Recording:
    one = interaction_of(goldens()[0])
    changed = [
        msgspec.structs.replace(
            one,
            request=msgspec.structs.replace(one.request, body=data_of(body), path="/v1/x", **request),
        )
        for body in bodies
    ]
    return Recording().with_interactions(each.numbered(x) for x, each in enumerate(changed, 1))


@pytest.mark.parametrize("shell", SHELLS)
async def test_a_shell_sends_the_recorded_bytes(shell: str) -> None:
    async with receiving() as received:
        out = await run(shell, curl_commands(recording_of(*BODIES)), received.url)
        assert out == "ok" * len(BODIES)
        assert received.bodies == BODIES
        assert all(b"authorization: bearer a key" in head.lower() for head in received.heads)


@pytest.mark.parametrize("shell", SHELLS)
async def test_nothing_of_a_recording_is_a_word_of_the_shell(shell: str) -> None:
    evil = "'; touch hacked; echo '$(id)`id`"
    headers = {"anthropic-beta": evil, "content-type": "application/json", "user-agent": evil}
    async with receiving() as received:
        script = curl_commands(recording_of(b"{}", headers=headers, method="POST"))
        await run(shell, script.replace("/v1/x", f"/v1/{evil.replace(' ', '%20')}".replace("'", "'\\''")), received.url)
        (head,) = received.heads
        assert f"anthropic-beta: {evil}".encode() in head and b"user-agent: curl" in head.lower()


def test_both_shells_are_here() -> None:
    assert SHELLS == ["dash", "bash"]


def test_a_quoted_word_is_one_word() -> None:
    assert quoted("it's") == "'it'\\''s'"


def test_a_request_without_its_body_has_no_command() -> None:
    one = interaction_of(goldens()[0])
    absent = msgspec.structs.replace(one, request=msgspec.structs.replace(one.request, body=None, absent="evicted"))
    with pytest.raises(RecordingError, match="not in the recording"):
        curl_commands(Recording().with_interactions([absent]))


@pytest.mark.parametrize("kind", ["curl", "python"])
@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://127.0.0.1:8123", "http://127.0.0.1:8123"),
        ("https://gateway.example", "https://gateway.example"),
        ("http://[::1]:8000", "http://[::1]:8000"),
        ("http://$(id)", LOCAL),
        ('http://a"; id; "', LOCAL),
        ("http://a/b", LOCAL),
        ("http://a}", LOCAL),
        ("file://a", LOCAL),
    ],
)
def test_an_address_that_is_more_than_one_is_not_written(kind: str, url: str, named: str) -> None:
    written = export(recording_of(b"{}"), kind, url)
    assert named in written
    assert named == url or url not in written
