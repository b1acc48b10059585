"""Text before a fault reaches a streaming client, also when one read contains both; a fault after the finish does not
change a complete answer."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Final

import msgspec
import pytest

from gateway.core.conversation import Json
from gateway.server.api import relay
from gateway.testing.faults import PAUSE_S
from gateway.testing.faulty import END, Connection, Script, chunk, faulty_backend, head
from tests.promises.wire_gateway import TIMEOUTS, finishes, frames, text_of, wire_gateway
from tests.promises.wires import WIRES, Wire, broken_call
from tests.server.samples import value_of
from tests.tiers import sample

ENVELOPE: Final = b'data: {"choices":[{"index":0,"delta":%s,"finish_reason":null}]}\n\n'


def _broken_call() -> bytes:
    """A wrapped call without a name, whole."""
    call: Json = {"index": 0, "id": "c", "type": "function", "function": {"name": "call_mcp_tool", "arguments": "{}"}}
    finish = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
    return ENVELOPE % json.dumps({"tool_calls": [call]}).encode() + finish


def _script(wire: Wire, *pieces: bytes) -> Script:
    async def script(connection: Connection) -> None:
        await connection.send(head(wire.spoken.media_type))
        for piece in pieces:
            await connection.send(chunk(piece))
            await asyncio.sleep(PAUSE_S)
        await connection.send(END)

    return script


def _faults(wire: str) -> Mapping[str, tuple[bytes, str]]:
    spoken = WIRES[wire].spoken
    faults = {
        "a malformed event": (spoken.malformed, "upstream_invalid_event"),
        "an error": (spoken.failure, "upstream_error"),
    }
    if wire == "native":
        faults["a broken call"] = (_broken_call(), "upstream_invalid_tool_call")
        faults["no finish"] = (b"data: [DONE]\n\n", "upstream_stream_truncated")
    if wire == "protobuf":
        faults["a broken call"] = (broken_call() + spoken.end, "upstream_invalid_tool_call")
    return faults


CASES: Final = [(wire, name) for wire in WIRES for name in _faults(wire)]


@pytest.mark.parametrize(("wire", "name"), CASES)
async def test_text_before_an_error_in_the_same_read_is_kept(wire: str, name: str) -> None:
    fault, code = _faults(wire)[name]
    spoken = WIRES[wire].spoken
    script = _script(WIRES[wire], spoken.begin, spoken.text + fault + spoken.text)
    async with faulty_backend(script) as backend, wire_gateway(WIRES[wire], {"m": backend}) as gateway:
        response = await gateway.chat(stream=True)
        whole = await gateway.chat()
    *data, last = frames(response.text)
    assert text_of(data) == "one two"
    assert (json.loads(last)["error"]["code"], finishes(data)) == (code, [])
    assert response.text.count('"error"') == 1
    assert (whole.status_code, whole.json()["error"]["code"]) == (502, code)


@pytest.mark.parametrize(("wire", "name"), CASES)
async def test_before_the_first_byte_the_same_read_is_a_status(wire: str, name: str) -> None:
    fault, code = _faults(wire)[name]
    script = _script(WIRES[wire], WIRES[wire].spoken.begin + fault)
    async with faulty_backend(script) as backend, wire_gateway(WIRES[wire], {"m": backend}) as gateway:
        response = await gateway.chat(stream=True)
    assert (response.status_code, response.json()["error"]["code"]) == (502, code)


class Behind(msgspec.Struct, frozen=True):
    """What comes behind the finish reason, where `[DONE]` should be: in the same read or in the next one."""

    sent: bytes = b""
    then: str = "hold"


CHAT_FINISH: Final = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE: Final = (
    b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}\n\ndata: [DONE]\n\n'
)
BEHIND: Final[Mapping[str, Behind]] = {
    "silence": Behind(),
    "comments": Behind(chunk(b": still here\n\n")),
    "a reset": Behind(then="reset"),
    "an end without framing": Behind(then="close"),
    "a chunk without a size": Behind(b"zz\r\n"),
    "a malformed event": Behind(chunk(b"data: {no event\n\n")),
    "an error": Behind(chunk(b'data: {"error":{"message":"too late"}}\n\n')),
    "half an event": Behind(chunk(b"data: {"), "close"),
}
COMPLETIONS: Final = Wire(
    {"adapter": "adapters.text.backend:TextAdapter", "wire": "completions"},
    WIRES["native"].spoken,
    WIRES["native"].said,
    b"",
)
BEGIN: Final = {"native": b'{"delta":{"content":"one"},"index":0}', "completions": b'{"text":"one","index":0}'}
TWO_ENDS: Final = {"native": WIRES["native"], "completions": COMPLETIONS}


@sample()
@pytest.mark.parametrize("at_once", [False, True], ids=["later", "at once"])
@pytest.mark.parametrize("name", BEHIND)
@pytest.mark.parametrize("wire", TWO_ENDS)
async def test_a_fault_behind_the_finish_takes_nothing_back(
    wire: str, name: str, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "REST_S", 0.2)
    behind = BEHIND[name]
    begin = b'data: {"choices":[%s]}\n\n' % BEGIN[wire]

    async def script(connection: Connection) -> None:
        await connection.send(head("text/event-stream"))
        await asyncio.sleep(PAUSE_S)
        if at_once:
            await connection.send(chunk(begin + CHAT_FINISH) + behind.sent)
        else:
            await connection.send(chunk(begin), chunk(CHAT_FINISH))
            await asyncio.sleep(PAUSE_S)
            await connection.send(behind.sent)
        if behind.then == "reset":
            await asyncio.sleep(PAUSE_S)  # a reset throws away what was not read yet
            connection.reset()
        elif behind.then == "close":
            connection.close()
        else:
            await connection.gone()

    silent: dict[str, Json] = {**TIMEOUTS, "first_byte": 120, "idle": 120}
    async with faulty_backend(script) as backend, wire_gateway(TWO_ENDS[wire], {"m": backend}, silent) as gateway:
        began = time.monotonic()
        streamed, whole = await asyncio.gather(gateway.chat(stream=True), gateway.chat())
        took = time.monotonic() - began
        failures = value_of(gateway.app.gateway_state.metrics, "gateway_truncated_streams_total", "m")
    assert (streamed.status_code, whole.status_code, failures) == (200, 200, 0)
    assert took < 30  # the idle limit is 120 s
    *data, done = frames(streamed.text)
    assert (text_of(data), finishes(data), done) == ("one", ["stop"], "[DONE]")
    choice = whole.json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("one", "stop")


async def test_usage_behind_the_finish_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "REST_S", 60)
    script = _script(WIRES["native"], WIRES["native"].spoken.begin, CHAT_FINISH, USAGE)
    async with faulty_backend(script) as backend, wire_gateway(WIRES["native"], {"m": backend}) as gateway:
        response = await gateway.chat(stream=True, stream_options={"include_usage": True})
    assert json.loads(frames(response.text)[-2])["usage"]["total_tokens"] == 7
