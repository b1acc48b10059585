"""Runs two backends of the soak in one process: `python -m bench.load_test.faulty_backends PORT PORT`.

The first plays the fault of gateway.testing.faults that the model's name selects; the second is the scripted demo
model, which calls tools.
"""

import asyncio
import re
import sys
from typing import Final

import uvloop

from bench import payload
from gateway.demo.serve import serve_demo
from gateway.testing.faults import FAULTS, ResponseEvents
from gateway.testing.faulty import Connection, FaultyBackend

_BEGIN, _TEXT, _NEXT, *_END = payload.chunks(2)
EVENTS: Final = ResponseEvents(
    "text/event-stream",
    begin=_BEGIN + _TEXT,
    text=_NEXT,
    end=b"".join(_END),
    failure=b'data: {"error": {"message": "said in the answer"}}\n\n',
    lost_call=b"".join(_END).replace(b'"stop"', b'"tool_calls"'),
)
_MODEL: Final = re.compile(rb'"model": ?"([^"]*)"')


async def serve(faulty_port: int, demo_port: int) -> None:
    """Serves until the process ends."""
    backend: FaultyBackend

    async def play(connection: Connection) -> None:
        backend.seen.clear()
        found = _MODEL.search(connection.body)
        await FAULTS[found[1].decode() if found else "status 500"].script(EVENTS)(connection)

    backend = FaultyBackend(play)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", faulty_port)
    async with serve_demo("chat", port=demo_port):
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
