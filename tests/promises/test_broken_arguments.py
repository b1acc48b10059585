"""A call that the backend cut off, and finished as if it were complete, reaches no client as a call: on every wire that
carries arguments as text, in every dialect, streamed and whole; and the official SDK raises."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from gateway.core.conversation import Json
from gateway.registry import load_dialect
from gateway.testing.faulty import END, Connection, Script, chunk, faulty_backend, head
from tests.promises.wire_gateway import frames, wire_gateway
from tests.promises.wires import WIRES
from tests.tiers import sample

WHOLE: Final = '{"path":"a.py","content":"def f(): pass"}'
CUT: Final = '{"path":"a.py","content":"def'


def _sse(*events: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def _chat(*pieces: str, late: str = "") -> bytes:
    def delta(arguments: str, **call: Json) -> Json:
        call = {"index": 0, **call, "function": {"arguments": arguments, **({"name": "f"} if "id" in call else {})}}
        return {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}

    first, *rest = pieces
    deltas = [delta(first, id="c1", type="function"), *(delta(piece) for piece in rest)]
    finish: Json = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return _sse(*deltas, finish, *([delta(late)] if late else ())) + b"data: [DONE]\n\n"


def _messages(*pieces: str) -> bytes:
    block: Json = {"type": "tool_use", "id": "c1", "name": "f", "input": {}}
    usage: Json = {"input_tokens": 1, "output_tokens": 1}
    message: Json = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    deltas: list[Json] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    return _sse(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage},
        {"type": "message_stop"},
    )


def _responses(*pieces: str) -> bytes:
    item: dict[str, Json] = {"type": "function_call", "id": "i", "call_id": "c1", "name": "f", "status": "completed"}
    place: dict[str, Json] = {"item_id": "i", "output_index": 0}
    whole = "".join(pieces)
    response: dict[str, Json] = {"id": "r", "object": "response", "status": "completed", "output": []}
    return _sse(
        {"type": "response.created", "response": {**response, "status": "in_progress"}},
        {"type": "response.output_item.added", **place, "item": {**item, "arguments": ""}},
        *({"type": "response.function_call_arguments.delta", **place, "delta": piece} for piece in pieces),
        {"type": "response.function_call_arguments.done", **place, "arguments": whole},
        {"type": "response.output_item.done", **place, "item": {**item, "arguments": whole}},
        {"type": "response.completed", "response": {**response, "output": [{**item, "arguments": whole}]}},
    )


SPEAKS: Final = {"native": _chat, "messages": _messages, "responses": _responses}
# The path of a dialect, streamed and whole, and what a client reads as the end of a call or of a complete answer.
DIALECTS: Final[Mapping[str, tuple[str, str, tuple[str, ...]]]] = {
    "openai_chat": ("/v1/chat/completions", "/v1/chat/completions", ('"finish_reason":"', "[DONE]")),
    "openai_responses": (
        "/v1/responses",
        "/v1/responses",
        ("output_item.done", "arguments.done", "response.completed"),
    ),
    "anthropic_messages": ("/v1/messages", "/v1/messages", ("content_block_stop", "message_delta", "message_stop")),
    "gemini": (
        "/v1beta/models/m:streamGenerateContent?alt=sse",
        "/v1beta/models/m:generateContent",
        ("functionCall", "finishReason"),
    ),
    "ollama": ("/api/chat", "/api/chat", ("tool_calls", '"done":true')),
}


def _script(body: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(head("text/event-stream"), chunk(body), END)

    return script


def _asked(dialect: str, stream: bool) -> dict[str, Json]:
    body = load_dialect(dialect).example("m")
    return dict(body) if dialect == "gemini" else {**body, "stream": stream}


@pytest.mark.parametrize("wire", SPEAKS)
async def test_a_cut_call_is_an_error_on_every_wire_and_in_every_dialect(wire: str) -> None:
    async with (
        faulty_backend(_script(SPEAKS[wire](*_pieces(CUT)))) as backend,
        wire_gateway(WIRES[wire], {"m": backend}) as gateway,
    ):
        for dialect, (streamed, whole, ends) in DIALECTS.items():
            response = await gateway.client.post(streamed, json=_asked(dialect, True))
            assert "upstream_invalid_tool_call" in response.text, dialect
            assert not [end for end in ends if end in response.text], dialect
            response = await gateway.client.post(whole, json=_asked(dialect, False))
            assert (response.status_code, "upstream_invalid_tool_call" in response.text) == (502, True), dialect
            assert CUT.replace('"', '\\"') not in response.text, dialect


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + 7] for at in range(0, len(text), 7))


@sample()
@pytest.mark.parametrize("rest", ["{}", '{"path":"b.py"}', " oops", "</tool_call>"])
@pytest.mark.parametrize("wire", SPEAKS)
async def test_only_the_first_value_of_the_arguments_reaches_a_client(wire: str, rest: str) -> None:
    async with (
        faulty_backend(_script(SPEAKS[wire](*_pieces(WHOLE + rest)))) as backend,
        wire_gateway(WIRES[wire], {"m": backend}) as gateway,
    ):
        explained = {"x-dragoman-explain": "1"}
        for dialect, (streamed, whole, _) in DIALECTS.items():
            for path, stream in ((streamed, True), (whole, False)):
                response = await gateway.client.post(path, json=_asked(dialect, stream), headers=explained)
                assert response.status_code == 200, dialect
                assert "ARGUMENTS_EXTENDED" in response.text, dialect
                assert "b.py" not in response.text and "oops" not in response.text, dialect
                assert "error" not in response.text.replace('"error":null', ""), dialect


async def test_what_comes_behind_the_finish_completes_no_call() -> None:
    scripts = {
        "m": _script(_chat(CUT, late=WHOLE[len(CUT) :])),
        "whole": _script(_chat(WHOLE, late="{}")),
    }
    async with (
        faulty_backend(scripts["m"]) as cut,
        faulty_backend(scripts["whole"]) as whole,
        wire_gateway(WIRES["native"], {"m": cut, "whole": whole}) as gateway,
    ):
        *_, last = frames((await gateway.chat(stream=True)).text)
        assert json.loads(last)["error"]["code"] == "upstream_invalid_tool_call"
        body = {**_asked("openai_chat", False), "model": "whole"}
        answer = (await gateway.client.post("/v1/chat/completions", json=body)).json()
        assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == WHOLE


@pytest.mark.parametrize("wire", SPEAKS)
async def test_the_official_sdk_raises_for_a_cut_call(wire: str) -> None:
    async with (
        faulty_backend(_script(SPEAKS[wire](*_pieces(CUT)))) as backend,
        wire_gateway(WIRES[wire], {"m": backend}) as gateway,
    ):
        base_url = f"{gateway.base_url}/v1"
        async with openai.AsyncOpenAI(base_url=base_url, api_key="unused", max_retries=0) as client:
            asked: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
            with pytest.raises(openai.APIError, match="arguments are not JSON"):
                async for _ in await client.chat.completions.create(model="m", stream=True, messages=asked):
                    pass
            with pytest.raises(openai.InternalServerError, match="arguments are not JSON"):
                await client.chat.completions.create(model="m", messages=asked)
            kinds: list[str] = []
            with pytest.raises(openai.APIError, match="arguments are not JSON"):
                stream = await client.responses.create(model="m", input="hi", stream=True, store=False)
                async for event in stream:
                    kinds.append(event.type)  # noqa: PERF401 (a comprehension would lose those before the error)
            assert "response.output_item.done" not in kinds and "response.completed" not in kinds
