"""Defines the kinds of requests of the soak: each sends one and returns its outcome as a word."""

import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from bench import payload
from bench.load import Target
from bench.load_test.http_client import HttpConnection, WholeResponse, connect
from bench.load_test.streams import WIRES, ask, verdict
from gateway.core.conversation import Json
from gateway.testing.faults import FAULTS

DELTAS: Final = 20
MEGABYTE: Final = 2**20
# The faults that end by themselves, or by the gateway's timeouts.
_ENDING: Final = [
    name for name, fault in FAULTS.items() if fault.listens and not fault.tls and not name.endswith("without end")
]
_PARAMETERS: Final[Json] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOLS: Final[Json] = [{"type": "function", "function": {"name": "get_weather", "parameters": _PARAMETERS}}]


class Visitor:
    """One client. It reuses its connection as long as that is open."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self.chance = random.Random(seed)
        self._connection: HttpConnection | None = None

    async def ask(self, body: bytes) -> WholeResponse:
        """Sends a request on the reused connection and returns the response."""
        if self._connection is None or self._connection.gone.done():
            self._connection = await connect(self.target)
        return await self._connection.ask(self.target.encode(body))

    async def chat(self, model: str, *messages: Json, **fields: Json) -> WholeResponse:
        return await self.ask(msgspec.json.encode({"model": model, "messages": messages, **fields}))

    def close(self) -> None:
        if self._connection is not None:
            self._connection.abort()


def _user(text: str) -> Json:
    return {"role": "user", "content": text}


async def plain(visitor: Visitor) -> str:
    answer = await visitor.ask(payload.request("native", stream=False))
    return "complete" if answer.status == 200 and payload.TEXT.encode() in answer.body else f"status {answer.status}"


async def stream(visitor: Visitor) -> str:
    mark = f"mark-{visitor.chance.randrange(10**9)}"
    answer = await ask(visitor.target, visitor.chance.choice(WIRES), mark, DELTAS, 10)
    return verdict(answer, mark, DELTAS)


async def tools(visitor: Visitor) -> str:
    """A call, followed by a request with its result."""
    question = _user("What is the weather in Paris?")
    first = await visitor.chat("demo", question, tools=_TOOLS)
    message = msgspec.json.decode(first.body)["choices"][0]["message"]
    calls = message.get("tool_calls") or []
    results: list[Json] = [{"role": "tool", "tool_call_id": call["id"], "content": "sunny"} for call in calls]
    second = await visitor.chat("demo", question, message, *results, tools=_TOOLS)
    return "complete" if calls and b"sunny" in second.body else f"statuses {first.status}, {second.status}"


async def repaired(visitor: Visitor) -> str:
    """A history with a result whose call is missing."""
    answer = await visitor.chat("native", _user("go"), {"role": "tool", "tool_call_id": "x", "content": "lost"})
    changed = answer.headers.get("x-dragoman-changes") == "repair=1"
    return "complete" if answer.status == 200 and changed else f"status {answer.status}"


async def large(visitor: Visitor) -> str:
    """A request of up to some megabytes, which the gateway reads in a thread."""
    messages, size = visitor.chance.choice([(200, 2_100), (2_000, 400), (40, 50_000)])
    answer = await visitor.ask(payload.request("native", stream=False, messages=messages, size=size))
    return "complete" if answer.status == 200 else f"status {answer.status}"


async def too_large(visitor: Visitor) -> str:
    """A request whose head declares a size above the limit; its body is never sent."""
    connection = await connect(visitor.target)
    try:
        head = visitor.target.encode(b"").replace(b"content-length: 0", b"content-length: %d" % (99 * MEGABYTE))
        return f"status {(await connection.ask(head)).status}"
    finally:
        connection.abort()


async def garbage(visitor: Visitor) -> str:
    return f"status {(await visitor.ask(b'{no json')).status}"


async def departure(visitor: Visitor) -> str:
    """The client disconnects, at once or during the response."""
    connection = await connect(visitor.target)
    text = f"{payload.model(200, 20)} mark-1"
    body = {"model": visitor.chance.choice(WIRES), "stream": True, "messages": [_user(text)]}
    request = visitor.target.encode(msgspec.json.encode(body))
    try:
        if visitor.chance.random() < 0.5:
            connection.say(request)
        else:
            await connection.begin(request)
    finally:
        connection.abort()
    return "left"


async def fault(visitor: Visitor) -> str:
    """The backend fails; the response must not look complete."""
    answer = await visitor.chat(visitor.chance.choice(_ENDING), _user("go"), stream=visitor.chance.random() < 0.5)
    last = answer.body.rstrip().rpartition(b"\n")[2].removeprefix(b"data: ")
    return "an error" if b'"error"' in last[:9] else f"status {answer.status} and no error"


# The share of each kind in percent, and its required outcome.
VISITS: Final[Mapping[Callable[[Visitor], Awaitable[str]], tuple[int, str]]] = {
    plain: (40, "complete"),
    stream: (25, "complete"),
    tools: (6, "complete"),
    repaired: (6, "complete"),
    large: (3, "complete"),
    too_large: (2, "status 413"),
    garbage: (2, "status 400"),
    departure: (8, "left"),
    fault: (8, "an error"),
}
