"""Builds messages of the invented services, and the bytes of whole responses on each carrier."""

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.json_format import ParseDict

from adapters.proto.backend.schema import Schema, message_class
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet
from tests.paths import ROOT

SET: Final = ROOT / "tests" / "adapters" / "proto" / "backend" / "services.pb"
SOURCES: Final = ROOT / "tests" / "adapters" / "proto" / "backend" / "services"
TRAILERS: Final = b"grpc-status: 0\r\ngrpc-message: \r\n"


def schema(path: Path = SET) -> Schema:
    return Schema(DescriptorSet(path.read_bytes()))


_SCHEMA: Final = schema()
_TALK: Final = _SCHEMA.method("acme.talk.v1.Talk/Speak")
_PARTS: Final = _SCHEMA.method("acme.parts.v1.Parts/Answer")
_DELTAS: Final = _SCHEMA.method("acme.deltas.v1.Deltas/Complete")
METHODS: Final = {
    "talk": _TALK,
    "parts": _PARTS,
    "deltas": _DELTAS,
    "relay": _SCHEMA.method("acme.relay.v1.Relay/Complete"),
    "forms": _SCHEMA.method("acme.forms.v1.Forms/Answer"),
    "tensors": _SCHEMA.method("acme.tensors.v1.Tensors/Infer"),
    "lists": _SCHEMA.method("acme.lists.v1.Lists/Complete"),
    "single": _SCHEMA.method("acme.single.v1.Single/ChatStream"),
    "events": _SCHEMA.method("acme.events.v1.Events/Answer"),
    "bare_tensors": _SCHEMA.method("acme.tensors.v1.Tensors/InferBare"),
}


def answer(service: str, fields: dict[str, Any]) -> bytes:
    """A message of the response. (Any: protobuf's JSON, in which bytes are base64.)"""
    return ParseDict(fields, message_class(METHODS[service].response)()).SerializeToString()


def envelope(payload: bytes, flags: int = 0) -> bytes:
    return bytes([flags]) + len(payload).to_bytes(4, "big") + payload


def varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def grpc_web(messages: Sequence[bytes], trailers: bytes = TRAILERS) -> bytes:
    return b"".join(map(envelope, messages)) + envelope(trailers, 0x80)


def grpc_web_text(messages: Sequence[bytes]) -> bytes:
    """Every envelope is base64 of its own, so that padding stands inside the body."""
    return b"".join(base64.b64encode(part) for part in [*map(envelope, messages), envelope(TRAILERS, 0x80)])


def connect(messages: Sequence[bytes], end: bytes = b"{}") -> bytes:
    return b"".join(map(envelope, messages)) + envelope(end, 2)


def frames_varint(messages: Sequence[bytes]) -> bytes:
    return b"".join(varint(len(message)) + message for message in messages)


def frames_u32(messages: Sequence[bytes]) -> bytes:
    return b"".join(len(message).to_bytes(4, "big") + message for message in messages)


def sse_base64(messages: Sequence[bytes]) -> bytes:
    return b"".join(b"data: " + base64.b64encode(message) + b"\n\n" for message in messages)


def body(messages: Sequence[bytes]) -> bytes:
    (message,) = messages
    return message


def grpc(messages: Sequence[bytes]) -> bytes:
    return b"".join(map(envelope, messages))


WRITERS: Final = {
    "grpc": grpc,
    "grpc_web": grpc_web,
    "grpc_web_text": grpc_web_text,
    "connect": connect,
    "frames_varint": frames_varint,
    "frames_u32": frames_u32,
    "sse_base64": sse_base64,
    "body": body,
}


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


TALK: Final = [
    answer("talk", {"soFar": "Good "}),
    answer("talk", {"soFar": "Good morning, 日", "tokensIn": 3}),
    answer("talk", {"soFar": "Good morning, 日本.", "tokensIn": 3, "tokensOut": 5, "ending": "ENDING_DONE"}),
]
PARTS: Final = [
    answer("parts", {"id": "r1", "model": "parts-1", "parts": [{"thought": "Hm."}, {"text": "Look: "}]}),
    answer("parts", {"parts": [{"call": {"id": "c1", "name": "look", "fields": {"depth": 3, "at": "x"}}}]}),
    answer("parts", {"parts": [{"call": {"name": "walk", "fields": {}}}], "counts": {"input": 7, "output": 9}}),
    answer("parts", {"counts": {"input": 7, "output": 9, "thinking": 2}, "ended": {"fully": {}}}),
]
DELTAS: Final = [
    answer("deltas", {"outputs": [{"thinking": "Hm.", "reason": "running"}], "newTokens": 1}),
    answer("deltas", {"outputs": [{"content": b64("日本"), "index": 0}], "newTokens": 2}),
    answer("deltas", {"outputs": [{"index": 1, "content": b64("not this one")}]}),
    answer("deltas", {"outputs": [{"calls": [{"index": 1, "id": "c1", "name": "look", "arguments": b64('{"at"')}]}]}),
    answer("deltas", {"outputs": [{"calls": [{"index": 2, "id": "c2", "name": "walk"}]}], "newTokens": 3}),
    answer("deltas", {"outputs": [{"calls": [{"index": 1, "arguments": b64(': "日"}')}]}], "newTokens": 2}),
    answer("deltas", {"outputs": [{"reason": "tool_calls"}], "newTokens": 1}),
]


def relayed(**fields: Json) -> bytes:
    """A message with a chunk of OpenAI's chat completions."""
    return answer("relay", {"body": b64(json.dumps({"object": "chat.completion.chunk", **fields}))})


def _delta(**delta: Json) -> bytes:
    return relayed(id="r1", model="relay-1", choices=[{"index": 0, "delta": delta}])


RELAY: Final = [
    _delta(role="assistant", reasoning_content="Hm."),
    _delta(content="日本"),
    _delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "look", "arguments": '{"at"'}}]),
    _delta(tool_calls=[{"index": 0, "function": {"arguments": ': "日"}'}}]),
    relayed(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]),
    relayed(choices=[], usage={"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}),
    answer("relay", {"last": True}),
]
_SEALED: Final = {"id": "c1", "name": "look", "fields": {"depth": "3", "at": "7"}, "seal": b64("sealed")}
FORMS: Final = [
    answer("forms", {"blocks": [{"thought": {"text": "Hm.", "seal": b64("mind")}}], "labels": {"model": "forms-1"}}),
    answer("forms", {"blocks": [{"text": "<s>"}], "special": True}),
    answer("forms", {"blocks": [{"text": "Look: "}, {"call": _SEALED}]}),
    answer("forms", {"counts": [{"name": "out", "value": 9}, {"name": "in", "value": 7}]}),
    answer("forms", {"labels": {"why": "halt", "halted_by": "END"}}),
]


def tensor(name: str, datatype: str, **contents: Json) -> dict[str, Json]:
    return {"name": name, "datatype": datatype, "shape": [1], "contents": contents}


def raw(*parts: bytes) -> list[Json]:
    """Raw contents, in protobuf's JSON; those of BYTES stand behind their length."""
    return [base64.b64encode(part).decode() for part in parts]


def element(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(4, "little") + data


_OUTPUTS: Final[list[Json]] = [tensor("text", "BYTES"), tensor("why", "BYTES"), tensor("count", "UINT32")]


def _tensors(text: str, why: str, count: int) -> bytes:
    contents = raw(element(text), element(why), count.to_bytes(4, "little"))
    return answer("tensors", {"answer": {"outputs": _OUTPUTS, "rawOutputContents": contents}})


TENSORS: Final = [_tensors("Good ", "None", 1), _tensors("morning, 日本.", "None", 2), _tensors("", "length", 1)]
LISTS: Final = [
    answer("lists", {"alternatives": [{"message": {"text": "Look"}, "status": "PARTIAL"}], "version": "lists-1"}),
    answer("lists", {"alternatives": [{"message": {"text": "Look: 日本"}, "status": "PARTIAL"}]}),
    answer(
        "lists",
        {
            "alternatives": [
                {
                    "message": {
                        "callList": {
                            "calls": [{"name": "look", "arguments": {"at": "x"}}, {"name": "walk", "arguments": {}}]
                        }
                    },
                    "status": "TOOL_CALLS",
                }
            ],
            "usage": {"input": 7, "output": 9, "total": 16},
        },
    ),
]
SINGLE: Final = [
    answer("single", {"alternatives": [{"message": {"content": "Look: "}}]}),
    answer("single", {"alternatives": [{"message": {"content": "日本"}}]}),
    answer(
        "single",
        {
            "alternatives": [
                {
                    "message": {"functionCall": {"name": "look", "arguments": '{"at": "日"}'}},
                    "finishReason": "function_call",
                }
            ],
            "usage": {"promptTokens": 7, "completionTokens": 9},
        },
    ),
]
ANSWERS: Final = {
    "talk": TALK,
    "parts": PARTS,
    "deltas": DELTAS,
    "relay": RELAY,
    "forms": FORMS,
    "tensors": TENSORS,
    "lists": LISTS,
    "single": SINGLE,
}
