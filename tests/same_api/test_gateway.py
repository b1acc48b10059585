"""Over sockets, one API on both sides: what each side writes arrives, but for the label before each state."""

import json
import re
from typing import Any, Final

import openai
import pytest
from openai.types.responses import ResponseCompletedEvent

from gateway.core.provider_state import LABEL
from gateway.testing.faulty import END, HEAD, Connection, answer, chunk, faulty_backend
from gateway.testing.gateway import running_gateway
from tests.same_api.test_chat import BODY as CHAT_BODY
from tests.same_api.test_chat import MESSAGES, completion, plain
from tests.same_api.test_gemini_answer import THOUGHT
from tests.same_api.test_gemini_answer import chunk as gemini_chunk
from tests.same_api.test_gemini_request import BODY as GEMINI_BODY
from tests.same_api.test_gemini_request import HELLO as GEMINI_HELLO
from tests.same_api.test_messages_answer import CONTENT, KINDS, message_with, stream_of
from tests.same_api.test_messages_request import BODY, HELLO, messages_with
from tests.same_api.test_responses_answer import HOSTED, TEXT_ITEM, item_of, response_with, texts, theirs
from tests.same_api.test_responses_answer import stream_of as stream_of_items
from tests.same_api.test_responses_request import BODY as RESPONSES_BODY
from tests.same_api.test_responses_request import RESULT
from tests.same_api.unknown import NEW_FIELDS, with_new_fields

STATEFUL: Final = ("compaction", "thinking", "redacted_thinking", "x_block")
PATH: Final = "/v1/messages"


def settings(base_url: str, adapter: str = "anthropic_messages") -> dict[str, Any]:
    entry = {"adapter": adapter, "base_url": base_url}
    return {"backends": {"b": entry}, "models": {"m": {"backend": "b", "name": "m"}}}


def unlabelled(text: str) -> str:
    return re.sub(LABEL, "", text)


@pytest.mark.parametrize("kind", STATEFUL)
async def test_a_whole_answer_and_the_history_with_it_arrive(kind: str) -> None:
    message = message_with(CONTENT[KINDS.index(kind)])

    async def say(connection: Connection) -> None:
        await connection.send(answer("200 OK", json.dumps(message).encode(), b"content-type: application/json"))

    async with faulty_backend(say) as backend, running_gateway(settings(backend.base_url)) as gateway:
        body = BODY | {"system": "Be brief.", "messages": with_new_fields([HELLO]), **NEW_FIELDS}
        got = await gateway.client.post(PATH, json=body)
        read = json.loads(unlabelled(got.text))
        assert {**read, "id": message["id"]} == message
        # The client sends back what it got, labels included.
        said = {"role": "assistant", "content": got.json()["content"]}
        await gateway.client.post(PATH, json=BODY | {"messages": [HELLO, said, HELLO]})
    first, second = [json.loads(seen) for _, seen in backend.seen]
    assert first == body
    assert second["messages"] == [HELLO, {"role": "assistant", "content": message["content"]}, HELLO]


@pytest.mark.parametrize("kind", STATEFUL)
async def test_every_event_of_a_stream_arrives(kind: str) -> None:
    events = stream_of(CONTENT[KINDS.index(kind)])

    async def say(connection: Connection) -> None:
        written = [b"event: %b\ndata: %b\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events]
        await connection.send(HEAD, *[chunk(event) for event in written], END)

    block = next(block for block in CONTENT if block["type"] == kind)
    body = BODY | {"stream": True, "messages": messages_with(block)}
    async with faulty_backend(say) as backend, running_gateway(settings(backend.base_url)) as gateway:
        got = await gateway.client.post(PATH, json=body)
    frames = [frame.partition("data: ")[2] for frame in unlabelled(got.text).split("\n\n") if frame]
    read = [event for frame in frames if (event := json.loads(frame))["type"] != "ping"]
    read[0]["message"]["id"] = events[0]["message"]["id"]
    assert read == events
    assert json.loads(backend.seen[0][1]) == body


@pytest.mark.parametrize("name", MESSAGES)
async def test_a_chat_completion_and_the_history_with_it_arrive(name: str) -> None:
    written = completion(MESSAGES[name])

    async def say(connection: Connection) -> None:
        await connection.send(answer("200 OK", json.dumps(written).encode(), b"content-type: application/json"))

    async with (
        faulty_backend(say) as backend,
        running_gateway(settings(backend.base_url, "openai_chat")) as gateway,
    ):
        got = (await gateway.chat(**CHAT_BODY, **NEW_FIELDS)).json()
        said = got["choices"][0]["message"]
        await gateway.chat(**CHAT_BODY | {"messages": [HELLO, said, HELLO]})
    first, second = [json.loads(seen) for _, seen in backend.seen]
    assert plain(got) == plain(written)
    assert first == CHAT_BODY | NEW_FIELDS
    assert second["messages"] == [HELLO, said, HELLO]


SIGNED: Final = {"thoughtSignature": "c2ln"}
CHUNKS: Final = [
    gemini_chunk(THOUGHT, {"text": "a", **SIGNED}),
    gemini_chunk({"functionCall": {"name": "f", "args": {}}, **SIGNED}, {"x_part": 1}),
    gemini_chunk({"text": "", **SIGNED}, reason="STOP"),
]


@pytest.mark.parametrize("streamed", [False, True])
async def test_chunks_of_gemini_and_the_history_with_them_arrive(streamed: bool) -> None:
    chunks = CHUNKS if streamed else CHUNKS[1:2]

    async def say(connection: Connection) -> None:
        written = [json.dumps(one).encode() for one in chunks]
        if streamed:
            await connection.send(HEAD, *[chunk(b"data: %b\r\n\r\n" % one) for one in written], END)
        else:
            await connection.send(answer("200 OK", *written, b"content-type: application/json"))

    path = "/v1beta/models/m:" + ("streamGenerateContent?alt=sse" if streamed else "generateContent")
    async with faulty_backend(say) as backend, running_gateway(settings(backend.base_url, "gemini")) as gateway:
        got = await gateway.client.post(path, json=GEMINI_BODY)
        read = [json.loads(frame.removeprefix("data: ")) for frame in got.text.split("\n\n") if frame]
        # The client keeps what it got chunk by chunk, labels included.
        said = [one["candidates"][0]["content"] for one in read]
        result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "7"}}}]}
        await gateway.client.post(path, json=GEMINI_BODY | {"contents": [GEMINI_HELLO, *said, result]})
    assert "Dragoman" in got.text
    named = [{**one, "responseId": read[0]["responseId"]} for one in chunks]
    assert json.loads(unlabelled(json.dumps(read))) == named
    first, second = [json.loads(seen) for _, seen in backend.seen]
    assert first == GEMINI_BODY
    written = [one["candidates"][0]["content"] for one in chunks]
    assert second["contents"] == [GEMINI_HELLO, *written, result]


SENT_BACK: Final = ("message", "reasoning", "compaction", "tool_search_call", "shell_call", "function_call", "x_item")


@pytest.mark.parametrize("kind", SENT_BACK)
async def test_a_response_and_the_history_with_it_arrive(kind: str) -> None:
    item = texts(item_of(kind)) | HOSTED.get(kind, {})
    written = response_with(item)

    async def say(connection: Connection) -> None:
        await connection.send(answer("200 OK", json.dumps(written).encode(), b"content-type: application/json"))

    # OpenAI refuses reasoning behind which nothing of the model follows.
    behind = {"function_call": [RESULT | {"call_id": item.get("call_id")}], "reasoning": [TEXT_ITEM]}
    output = behind.get(kind, [])
    async with (
        faulty_backend(say) as backend,
        running_gateway(settings(backend.base_url, "openai_responses")) as gateway,
    ):
        got = await gateway.client.post("/v1/responses", json=RESPONSES_BODY | NEW_FIELDS)
        assert theirs(json.loads(unlabelled(got.text))) == theirs(written)
        said = [HELLO, *got.json()["output"], *output, HELLO]
        await gateway.client.post("/v1/responses", json=RESPONSES_BODY | {"input": said})
    first, second = [json.loads(seen) for _, seen in backend.seen]
    assert first == RESPONSES_BODY | NEW_FIELDS
    assert second["input"] == [HELLO, item, *output, HELLO]


async def test_the_official_client_reads_every_event_of_a_stream() -> None:
    events = stream_of_items(*[texts(item_of(kind)) | {"call_id": kind} for kind in SENT_BACK[3:6]], TEXT_ITEM)

    async def say(connection: Connection) -> None:
        written = [b"data: %b\n\n" % json.dumps(event).encode() for event in events]
        await connection.send(HEAD, *[chunk(event) for event in written], END)

    async with (
        faulty_backend(say) as backend,
        running_gateway(settings(backend.base_url, "openai_responses")) as gateway,
        openai.AsyncOpenAI(base_url=f"{gateway.base_url}/v1", api_key="unused", max_retries=0) as client,
    ):
        stream = await client.responses.create(model="m", input="Hello", store=False, stream=True)
        read = [event async for event in stream]
    assert [event.type for event in read] == [event["type"] for event in events]
    last = read[-1]
    assert isinstance(last, ResponseCompletedEvent) and last.response.output_text == "ab"
    assert [item.type for item in last.response.output] == [*SENT_BACK[3:6], "message"]
