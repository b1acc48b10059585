"""Answers of Google's API in shapes that its own SDK reads: behind the gateway the SDK reads the same.

The SDK asks the backend itself, then the gateway before it, whole and streamed, and prints what it has read.
"""

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.provider_state import LABEL
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import running_gateway
from tests.clients.installed import SDKS

# What the SDK reads of an answer, without what names its sender.
READ: Final = """
import json, sys
from google import genai
client = genai.Client(api_key="unused", http_options={"base_url": sys.argv[1]})
asked = {"model": "m", "contents": "Hello"}
def read(response):
    sender = {"sdk_http_response", "response_id", "model_version"}
    found = response.model_dump(mode="json", exclude_none=True, exclude=sender)
    return [found, response.text, [call.model_dump(mode="json") for call in response.function_calls or ()]]
def history(send):
    chat = client.chats.create(model="m")
    send(chat)
    return [content.model_dump(mode="json", exclude_none=True) for content in chat.get_history(curated=True)]
print(json.dumps({
    "whole": read(client.models.generate_content(**asked)),
    "streamed": [read(chunk) for chunk in client.models.generate_content_stream(**asked)],
    "chat": history(lambda chat: chat.send_message("Hello")),
    "streamed chat": history(lambda chat: [*chat.send_message_stream("Hello")]),
}))
"""
USAGE: Final[dict[str, Any]] = {
    "promptTokenCount": 9,
    "candidatesTokenCount": 4,
    "totalTokenCount": 20,
    "thoughtsTokenCount": 7,
    "toolUsePromptTokenCount": 2,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}],
    "trafficType": "ON_DEMAND",
    "serviceTier": "standard",
}
SIGNATURE: Final = "RHJhZ29tYW4="


def said(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    """A chunk with these parts and fields of the candidate."""
    content = {"content": {"role": "model", "parts": [*parts]}} if parts else {}
    return {"candidates": [{**content, "index": 0, **candidate}], "usageMetadata": USAGE}


SHAPES: Final[dict[str, list[dict[str, Any]]]] = {
    "a blocked prompt": [
        {
            "promptFeedback": {
                "blockReason": "PROHIBITED_CONTENT",
                "safetyRatings": [{"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH"}],
            },
            "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        }
    ],
    "a call that is none": [
        said(finishReason="MALFORMED_FUNCTION_CALL", finishMessage="Malformed function call: print(default_api.f(")
    ],
    "a prohibited answer": [
        said({"text": "Once"}),
        said(
            finishReason="PROHIBITED_CONTENT", safetyRatings=[{"category": "HARM_CATEGORY_HARASSMENT", "blocked": True}]
        ),
    ],
    "thoughts with a signature": [
        said({"text": "Hm. ", "thought": True}),
        said({"text": "Yes."}),
        said({"text": "", "thoughtSignature": SIGNATURE}, finishReason="STOP"),
    ],
    "calls without ids": [
        said(
            {"functionCall": {"name": "f", "args": {"n": 1}}, "thoughtSignature": SIGNATURE},
            {"functionCall": {"name": "g"}},
        ),
        said({"text": ""}, finishReason="STOP"),
    ],
    "a call with its id": [said({"functionCall": {"id": "k", "name": "f", "args": {}}}, finishReason="STOP")],
    "a grounded answer": [
        said({"text": "Rain."}),
        said(
            {"text": " Stay in."},
            finishReason="STOP",
            groundingMetadata={
                "webSearchQueries": ["weather"],
                "groundingChunks": [{"web": {"uri": "https://example.com", "title": "Weather"}}],
                "groundingSupports": [{"segment": {"endIndex": 5, "text": "Rain."}, "groundingChunkIndices": [0]}],
            },
            citationMetadata={"citations": [{"uri": "https://example.com", "startIndex": 0, "endIndex": 5}]},
            avgLogprobs=-0.25,
        ),
    ],
    "code that has run": [
        said({"executableCode": {"language": "PYTHON", "code": "print(1)"}}),
        said(
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
            {"text": "It is 1."},
            finishReason="STOP",
        ),
    ],
    "an image": [
        said(
            {"text": "Here:"},
            {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
            {"text": "Done."},
            finishReason="STOP",
        )
    ],
    "a call in pieces": [
        said({"functionCall": {"name": "f", "willContinue": True}}),
        said({"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}], "willContinue": True}}),
        said({"functionCall": {}}),
        said(finishReason="STOP"),
    ],
}


async def read(address: str, folder: Path) -> Any:
    """What the SDK reads at this address, without the label before each state."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    asking = await asyncio.create_subprocess_exec(
        SDKS, "-c", READ, address, env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, errors = await asyncio.wait_for(asking.communicate(), 60)
    assert asking.returncode == 0, errors.decode()
    return json.loads(re.sub(LABEL, "", printed.decode()))


def merged(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole answer of the same content."""
    candidates = [candidate for one in chunks for candidate in one.get("candidates", ())]
    parts = [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]
    fields = {name: value for candidate in candidates for name, value in candidate.items()}
    whole = {name: value for one in chunks for name, value in one.items() if name != "candidates"}
    if not candidates:
        return whole
    content = {"content": {"role": "model", "parts": parts}} if parts else {}
    return {"candidates": [{**fields, **content}], **whole}


@pytest.mark.clients
@pytest.mark.skipif(not Path(SDKS).exists(), reason="make clients installs the SDK and runs this")
@pytest.mark.parametrize("shape", SHAPES)
async def test_the_sdk_reads_an_answer_as_if_no_gateway_were_between(shape: str, tmp_path: Path) -> None:
    chunks = SHAPES[shape]

    async def say(connection: Connection) -> None:
        if b":streamGenerateContent" in connection.head:
            await connection.send(HEAD, *[chunk(b"data: %b\r\n\r\n" % json.dumps(one).encode()) for one in chunks], END)
        else:
            await connection.send(
                answer("200 OK", json.dumps(merged(chunks)).encode(), b"content-type: application/json")
            )

    async with faulty_backend(say) as backend:
        entry = {"adapter": "gemini", "base_url": f"{backend.base_url}/v1beta"}
        settings: dict[str, Any] = {"backends": {"b": entry}, "models": {"m": {"backend": "b", "name": "m"}}}
        async with running_gateway(settings) as gateway:
            assert await read(str(gateway.client.base_url), tmp_path) == await read(backend.base_url, tmp_path)
