"""The official SDK's calls beside chat go through the gateway to a real server, which records what it got.

The package `openai` decides: what it sends, and what it reads of the answers.
"""

import io
import json
from collections.abc import AsyncIterator

import openai
import pytest

from gateway.testing.gateway import RunningGateway
from tests.server.api.passed.recording_server import AUDIO, CLIENT_KEY, KEY, Recorded, RecordingServer


@pytest.fixture
async def client(gateway: RunningGateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key=CLIENT_KEY, max_retries=0) as made:
        yield made


def _only(server: RecordingServer, line: str) -> Recorded:
    (seen,) = server.seen
    assert seen.line == f"{line} HTTP/1.1"
    assert seen.headers["authorization"] == f"Bearer {KEY}"
    assert CLIENT_KEY not in repr(seen)
    # Nothing that the SDK says of itself, of its user or of the connection is passed on.
    assert set(seen.headers) <= {
        *("host", "user-agent", "accept", "accept-encoding", "authorization", "content-type", "content-length"),
        "transfer-encoding",
    }
    assert seen.headers["user-agent"].startswith("dragoman/")
    return seen


async def test_embeddings(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    made = await client.embeddings.create(model="embed", input=["a", "b"], encoding_format="float", dimensions=2)
    assert made.data[0].embedding == [0.5, -0.25]
    assert made.usage.total_tokens == 3
    seen = _only(server, "POST /v1/embeddings")
    assert json.loads(seen.body) == {
        "input": ["a", "b"],
        "model": "inner",
        "encoding_format": "float",
        "dimensions": 2,
    }


async def test_moderations_need_no_model(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    made = await client.moderations.create(input="x")
    assert made.id == "modr-1"
    assert json.loads(_only(server, "POST /v1/moderations").body) == {"input": "x"}


async def test_images(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    made = await client.images.generate(model="big", prompt="a cat", n=1, size="1024x1024")
    assert made.data is not None
    assert made.data[0].b64_json == "AAAA"
    assert json.loads(_only(server, "POST /v1/images/generations").body)["model"] == "big"


async def test_edited_images(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    picture = ("cat.png", b"\x89PNG" + bytes(range(256)) * 4, "image/png")
    made = await client.images.edit(model="embed", image=[picture, picture], prompt="a hat")
    assert made.data is not None
    assert made.data[0].b64_json == "BBBB"
    seen = _only(server, "POST /v1/images/edits")
    assert seen.body.count(picture[1]) == 2
    assert b'name="model"\r\n\r\ninner\r\n' in seen.body


async def test_speech_is_passed_to_the_byte(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    made = await client.audio.speech.create(model="embed", voice="alloy", input="Hello")
    assert made.content == AUDIO
    assert made.response.headers["content-type"] == "audio/mpeg"
    assert json.loads(_only(server, "POST /v1/audio/speech").body)["model"] == "inner"


async def test_streamed_speech(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    async with client.audio.speech.with_streaming_response.create(model="big", voice="alloy", input="Hello") as made:
        assert b"".join([piece async for piece in made.iter_bytes()]) == AUDIO
    _only(server, "POST /v1/audio/speech")


@pytest.mark.parametrize("size", [1000, 3_000_000])
async def test_transcriptions(client: openai.AsyncOpenAI, server: RecordingServer, size: int) -> None:
    sound = bytes(range(256)) * (size // 256)
    made = await client.audio.transcriptions.create(model="embed", file=("a.wav", io.BytesIO(sound)), language="en")
    assert made.text == "Hello"
    seen = _only(server, "POST /v1/audio/transcriptions")
    assert sound in seen.body
    assert b'name="model"\r\n\r\ninner\r\n' in seen.body
    assert b'name="language"\r\n\r\nen\r\n' in seen.body


async def test_the_backends_error_is_the_sdks(client: openai.AsyncOpenAI, server: RecordingServer) -> None:
    from tests.server.api.passed.recording_server import respond

    said = {"error": {"message": f"dimensions: no, key {KEY}", "type": "invalid_request_error", "param": "dimensions"}}
    server.answer = lambda _: respond(json.dumps(said).encode(), status="400 Bad Request")
    with pytest.raises(openai.BadRequestError) as raised:
        await client.embeddings.create(model="embed", input="a", dimensions=7)
    assert "dimensions: no" in raised.value.message
    assert KEY not in str(raised.value.body)
