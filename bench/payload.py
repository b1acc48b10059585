"""Builds request bodies of given sizes and a backend's response bytes, the same for every measured gateway."""

import base64
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import msgspec

from adapters.proto.demo import generation_pb2 as pb2
from adapters.proto.demo.answer import Answer
from adapters.proto.demo.response import frame
from adapters.proto.demo.response import frames as grpc_frames
from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo.actions import Ids, actions_event, add, append, create_task, init_event, output

CHUNKS: Final = 100
TEXT: Final = "twenty letters here "
_IDS: Final = Ids("conversation", "request", "task")


def model(chunks: int = CHUNKS, delay_ms: int = 0) -> str:
    """Returns a model name that contains the options of the backend, because gateways forward this name."""
    return f"bench-{chunks}-{delay_ms}"


def request(
    name: str, *, stream: bool, messages: int = 2, size: int = 60, tools: Sequence[str] = (), deltas: int | None = None
) -> bytes:
    """Builds a chat request with this many messages of this many characters; every fourth is a tool's result. `deltas`:
    the number that the last message asks the backend for, instead of `CHUNKS`."""
    history = [turn for group in range(messages // 4) for turn in _round(group, size)]
    rest = [{"role": "user", "content": _text(size)} for _ in range(messages % 4 or 1)]
    if deltas is not None:
        rest[-1]["content"] += f" deltas-{deltas}"
    offered = {"tools": [{"type": "function", "function": {"name": tool}} for tool in tools]} if tools else {}
    fields = {"model": name, "stream": stream, "temperature": 0.7, "messages": history + rest}
    return msgspec.json.encode({**fields, **offered})


def responses_request(name: str, *, stream: bool, deltas: int | None = None) -> bytes:
    """Builds a request of the Responses API like the smallest of `request`."""
    return msgspec.json.encode(
        {"model": name, "stream": stream, "temperature": 0.7, "store": False, "input": _question(deltas)}
    )


def messages_request(name: str, *, stream: bool, deltas: int | None = None) -> bytes:
    """Builds the same of the Messages API."""
    return msgspec.json.encode(
        {"model": name, "stream": stream, "temperature": 0.7, "max_tokens": 4096, "messages": _question(deltas)}
    )


def gemini_request() -> bytes:
    """Builds the same of generateContent, whose model stands in the path."""
    config = {"temperature": 0.7, "maxOutputTokens": 4096}
    contents = [{"role": "user", "parts": [{"text": _text(60)}]}]
    return msgspec.json.encode({"contents": contents, "generationConfig": config})


def _question(deltas: int | None) -> list[dict[str, str]]:
    return [{"role": "user", "content": _text(60) if deltas is None else f"{_text(60)} deltas-{deltas}"}]


def _round(number: int, size: int) -> list[dict[str, object]]:
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"a"}'}}
    return [
        {"role": "user", "content": _text(size)},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": _text(size)},
        {"role": "assistant", "content": _text(size)},
    ]


def _text(size: int) -> str:
    return (TEXT * (size // len(TEXT) + 1))[:size]


def completion() -> bytes:
    """Builds a whole response of 600 characters."""
    message = {"role": "assistant", "content": _text(600), "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 19, "completion_tokens": 150, "total_tokens": 169}
    return msgspec.json.encode({**_head("chat.completion"), "choices": [choice], "usage": usage})


def said(count: int, mark: str) -> list[str]:
    """Returns the texts of the deltas of a response; with a mark they differ from those of every other response."""
    return [f"{mark}.{number} " for number in range(count)] if mark else [TEXT] * count


def chunks(count: int, mark: str = "") -> list[bytes]:
    """Builds a streamed response, one item per event."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": text} for text in said(count, mark))]
    return [*(_chunk(delta, None) for delta in deltas), _chunk({}, "stop"), b"data: [DONE]\n\n"]


def _chunk(delta: dict[str, str], reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + msgspec.json.encode({**_head("chat.completion.chunk"), "choices": [choice]}) + b"\n\n"


def _head(kind: str) -> dict[str, object]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1760000000, "model": "m", "system_fingerprint": "fp_1"}


def whole_message() -> bytes:
    """Builds a whole response of the Messages API, of as many characters as `completion`."""
    return msgspec.json.encode(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": _text(600)}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 19, "output_tokens": 150},
        }
    )


def message_events(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response as the Messages API does."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    usage = {"input_tokens": 19, "output_tokens": 1}
    deltas = [{"type": "text_delta", "text": text} for text in said(count, mark)]
    stopped = {"stop_reason": "end_turn", "stop_sequence": None}
    return [
        _event({"type": "message_start", "message": {**message, "usage": usage}}),
        _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        *(_event({"type": "content_block_delta", "index": 0, "delta": delta}) for delta in deltas),
        _event({"type": "content_block_stop", "index": 0}),
        _event({"type": "message_delta", "delta": stopped, "usage": {"output_tokens": count}}),
        _event({"type": "message_stop"}),
    ]


def _event(event: dict[str, object]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), msgspec.json.encode(event))


def response_events(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response on the wire of OpenAI Responses."""
    texts = said(count, mark)
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"type": "message", "id": "msg_1", "status": "in_progress", "role": "assistant", "content": []}
    response = {"id": "resp_1", "object": "response", "created_at": 1760000000, "model": "m", "status": "in_progress"}
    done = {**item, "status": "completed", "content": [{**part, "text": "".join(texts)}]}
    usage = {"input_tokens": 9, "output_tokens": count, "total_tokens": 9 + count}
    events: list[dict[str, object]] = [
        {"type": "response.created", "response": {**response, "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": text, "logprobs": []} for text in texts),
        {"type": "response.output_text.done", **place, "text": "".join(texts), "logprobs": []},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [done], "usage": usage},
        },
    ]
    return [
        b"event: %s\ndata: %s\n\n"
        % (str(event["type"]).encode(), msgspec.json.encode({**event, "sequence_number": at}))
        for at, event in enumerate(events)
    ]


def gemini_chunks(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response as Google does: with CRLF, and with the token counts so far in every chunk."""
    *texts, last = said(count, mark)
    candidates = [*({"content": _content(text), "index": 0} for text in texts), _ended(last)]
    return [_gemini_chunk(candidate, at + 1) for at, candidate in enumerate(candidates)]


def _content(text: str) -> dict[str, object]:
    return {"parts": [{"text": text}], "role": "model"}


def _ended(text: str) -> dict[str, object]:
    return {"content": _content(text), "finishReason": "STOP", "index": 0}


def _gemini_chunk(candidate: dict[str, object], tokens: int) -> bytes:
    usage = {
        "promptTokenCount": 19,
        "candidatesTokenCount": tokens,
        "totalTokenCount": 19 + tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 19}],
    }
    made = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
    return b"data: " + msgspec.json.encode(made) + b"\r\n\r\n"


def frames(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response on the agent wire."""
    first = actions_event(create_task(_IDS.task), add(_IDS.task, output("m1", _IDS.task, "")))
    grown = [
        actions_event(append(_IDS.task, "agent_output.text", output("m1", _IDS.task, text)))
        for text in said(count, mark)
    ]
    done = pb.ResponseEvent(finished=pb.StreamFinished(done=pb.StreamFinished.Done()))
    events = [init_event(_IDS), first, *grown, done]
    return [b"data: " + base64.urlsafe_b64encode(event.SerializeToString()) + b"\n\n" for event in events]


def generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response as the gRPC demo backend does, each message in its envelope."""
    answer = Answer("r1", "m", tuple(said(count, mark)), (), (), "FINISH_STOP", 19)
    return grpc_frames(answer)


def counted_generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response with the token counts so far in every message, as many services report them."""
    texts = said(count, mark)
    pieces = [
        pb2.GenerateResponse(id="r1", model="m", text=text, usage=_counts(at + 1)) for at, text in enumerate(texts)
    ]
    return [frame(message) for message in (*pieces, _generated(count))]


def total_generation(count: int) -> list[bytes]:
    """Builds the same response with the text so far in every message."""
    totals = accumulate(said(count, ""))
    return [frame(pb2.GenerateResponse(id="r1", model="m", text=total)) for total in totals] + [
        frame(_generated(count))
    ]


def _generated(count: int) -> pb2.GenerateResponse:
    return pb2.GenerateResponse(id="r1", model="m", finish="FINISH_STOP", usage=_counts(count))


def _counts(tokens: int) -> pb2.Usage:
    return pb2.Usage(prompt_tokens=19, completion_tokens=tokens)


def connect_generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response over Connect, whose last envelope holds its end."""
    return [*generation(count, mark), b"\x02\0\0\0\x02{}"]


def varint_generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response behind lengths as varints; each message is shorter than 128 bytes."""
    return [message[4:] for message in generation(count, mark)]


def u32_generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response behind lengths in four bytes."""
    return [message[1:] for message in generation(count, mark)]


def web_generation(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response over gRPC-Web, whose last envelope holds the trailers."""
    trailers = b"grpc-status: 0\r\n"
    return [*generation(count, mark), b"\x80" + len(trailers).to_bytes(4, "big") + trailers]


def words(count: int, mark: str = "") -> list[bytes]:
    """Builds the same response as llama.cpp's completion endpoint does, for a model that takes one text."""
    return _completion(said(count, mark))


def written_call(count: int) -> list[bytes]:
    """Builds a call of `write_file` as a model writes it into its text, in this many pieces."""
    return _completion(
        ['<tool_call>\n{"name": "write_file", "arguments": {"text": "', *[TEXT] * count, '"}}\n</tool_call>']
    )


def _completion(texts: Sequence[str]) -> list[bytes]:
    pieces = [{"index": 0, "content": text, "stop": False} for text in texts]
    last = {
        "index": 0,
        "content": "",
        "stop": True,
        "stop_type": "eos",
        "tokens_evaluated": 9,
        "tokens_predicted": len(texts),
    }
    return [b"data: " + msgspec.json.encode(event) + b"\n\n" for event in (*pieces, last)]
