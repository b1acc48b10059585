"""The words of a backend about its failure reach a client in no way but a 4xx that the client can act on: every kind of
error, on every wire, before the first text and after it, told to clients that stream and that do not."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Final

import pytest

from adapters.warp.multi_agent_pb2 import ResponseEvent
from gateway.core.conversation import Json
from gateway.testing.faults import PAUSE_S
from gateway.testing.faulty import END, Connection, Script, answer, chunk, faulty_backend, head
from gateway.testing.gateway import hello
from tests.promises.wire_gateway import frames, wire_gateway
from tests.promises.wires import WIRES, Wire, warp_frame
from tests.tiers import sample

WORD: Final = "kryptonite"
# What a client may read in the backend's own words: these statuses stay what they are.
QUOTED: Final = frozenset({400, 402, 404, 409, 413, 422, 429})

STATUSES: Final = (
    *(201, 301, 400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 429, 451),
    *(500, 501, 502, 503, 504, 520, 522, 529, 599),
)
FIELDS: Final[dict[str, Json]] = dict.fromkeys(("message", "detail", "code", "type", "param", "title"), WORD)
BODIES: Final[Mapping[str, Json]] = {
    "nested": {"error": FIELDS},
    "flat": {**FIELDS, "userDisplayMessage": WORD},
    "text": {"error": WORD, "error_type": WORD},
    # Without a word about a model, a 404 says that the address is wrong.
    "model": {"error": {"message": f"The model was not found: {WORD}", "param": WORD}},
}
# Errors inside an answer whose status is 200.
REPORTS: Final[Mapping[str, Json]] = {
    "an error": {"error": FIELDS},
    "an error of one word": {"error": WORD},
    "an object that is an error": {"object": "error", **FIELDS},
    "an error that a wire may name": {"error": {"message": WORD, "type": "overloaded"}},
    "too long": {"error": {"message": f"{WORD}: prompt is too long", "type": WORD, "param": WORD}},
    "too long by its code": {"error": {"message": WORD, "code": "context_length_exceeded", "param": WORD}},
    **{
        f"an error that means {status}": {"error": {**FIELDS, "code": status}}
        for status in (400, 401, 404, 413, 418, 422, 429, 500, 503)
    },
}
FINISHES: Final[Mapping[str, Mapping[str, Json]]] = {
    "internal_error": {"internal_error": {"message": WORD}},
    "invalid_api_key": {"invalid_api_key": {"provider": 1, "model_name": WORD}},
}


def _status(status: int, body: Json) -> Script:
    said = json.dumps(body).encode()
    headers = [f"{name}: {WORD}".encode() for name in ("retry-after", "location", "x-request-id", "www-authenticate")]

    async def script(connection: Connection) -> None:
        await connection.send(answer(f"{status} {WORD}", said, b"content-type: application/json", *headers))

    return script


def _media(media_type: str) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(answer("200 OK", WORD.encode(), f"content-type: {media_type}".encode()))

    return script


def _in_body(wire: Wire, failure: bytes, begun: bool) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(head(wire.spoken.media_type))
        if begun:
            await connection.send(chunk(wire.spoken.begin))
            await asyncio.sleep(PAUSE_S)
        await connection.send(chunk(failure), END)

    return script


def _failures(wire: str) -> Mapping[str, bytes]:
    if wire == "protobuf":
        events = {name: warp_frame(ResponseEvent(finished=said)) for name, said in FINISHES.items()}
        return {**events, "no event": b"data: %s\n\n" % WORD.encode()}
    lines = WIRES[wire].spoken.lines
    written = {name: json.dumps(said).encode() for name, said in REPORTS.items()}
    written |= {"no JSON": b'{"error": "' + WORD.encode(), "no event": json.dumps([WORD]).encode()}
    if wire == "native":
        choice: Json = {"index": 0, "delta": {"content": {"say": WORD}}, "finish_reason": None}
        written |= {
            "no content": json.dumps({"choices": [choice]}).encode(),
            "no choices": json.dumps({"choices": WORD}).encode(),
        }
    return {name: said + b"\n" if lines else b"data: " + said + b"\n\n" for name, said in written.items()}


def _cases(wire: str) -> Mapping[str, Script]:
    cases = {f"{status} {name}": _status(status, body) for status in STATUSES for name, body in BODIES.items()}
    cases |= {"200 odd media": _media(f"text/{WORD}"), "200 page": _media(f"text/html; charset={WORD}")}
    for name, failure in _failures(wire).items():
        cases[f"early {name}"] = _in_body(WIRES[wire], failure, False)
        cases[f"late {name}"] = _in_body(WIRES[wire], failure, True)
    return {name.replace(" ", "_"): script for name, script in cases.items()}


@sample(lambda wire: wire == "protobuf")
@pytest.mark.parametrize("wire", WIRES)
async def test_no_word_of_a_backend_gets_out_but_in_a_4xx_that_the_client_can_act_on(wire: str) -> None:
    async with AsyncExitStack() as stack:
        cases = _cases(wire)
        backends = {name: await stack.enter_async_context(faulty_backend(script)) for name, script in cases.items()}
        gateway = await stack.enter_async_context(wire_gateway(WIRES[wire], backends))
        asked = [(name, stream) for name in cases for stream in (False, True)]
        explained = {"x-dragoman-explain": "1"}
        told = {}
        for name, stream in asked:
            said = {**hello(name), "stream": stream}
            told[name, stream] = await gateway.client.post("/v1/chat/completions", json=said, headers=explained)
    leaks = {
        (*key, response.status_code): response.text
        for key, response in told.items()
        if WORD in f"{response.text} {response.headers}" and response.status_code not in QUOTED
    }
    assert not leaks
    quoted = {response.status_code for response in told.values() if WORD in response.text}
    assert quoted >= QUOTED
    for (name, stream), response in told.items():
        if response.status_code == 200 and stream:
            assert frames(response.text)[-1].startswith('{"error"'), name
