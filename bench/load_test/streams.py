"""Opens many streams with a unique mark in every delta and checks that each is complete, ordered and unmixed."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec

from bench import payload
from bench.load import Target
from bench.load_test.figures import Figure, quantile
from bench.load_test.gateway_process import GatewayProcess
from bench.load_test.http_client import WholeResponse, connect

WIRES: Final = ("native", "agent", "text", "grpc")
# The memory that the allocator may keep for later streams after the first thousand has ended.
KEPT_MB: Final = 64
_SHED: Final = (429, 503)
_MARKS: Final = re.compile(r"mark-\d+")


class _Delta(msgspec.Struct):
    content: str | None = None


class _ChunkChoice(msgspec.Struct):
    delta: _Delta
    finish_reason: str | None = None


class _Chunk(msgspec.Struct):
    choices: list[_ChunkChoice]


def verdict(answer: WholeResponse | None, mark: str, deltas: int) -> str:
    """Returns `complete`, `shed`, or what is wrong with the response."""
    if answer is None:
        return "no answer"
    if answer.status in _SHED:
        return "shed" if "retry-after" in answer.headers else "shed without retry-after"
    *events, last = answer.body.rstrip().split(b"\n\n")
    if answer.status != 200 or last != b"data: [DONE]":
        return f"status {answer.status}, {last[:200]!r}"
    chunks = [msgspec.json.decode(event.removeprefix(b"data: "), type=_Chunk) for event in events if event[:1] != b":"]
    choices = [choice for chunk in chunks for choice in chunk.choices]
    text = "".join(choice.delta.content or "" for choice in choices)
    if text != "".join(payload.said(deltas, mark)):
        return "another's text" if set(_MARKS.findall(text)) - {mark} else "not all of its text, or not in order"
    return "complete" if choices[-1].finish_reason == "stop" else "no finish"


def request(target: Target, model: str, mark: str, deltas: int, delay_ms: int) -> bytes:
    """Returns the bytes of a request for one stream."""
    # Wires without a model name receive the options in the text.
    text = f"{payload.model(deltas, delay_ms)} {mark}"
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": text}]}
    return target.encode(msgspec.json.encode(body))


async def ask(target: Target, model: str, mark: str, deltas: int, delay_ms: int) -> WholeResponse | None:
    """Requests one stream on a separate connection; None when there was no response."""
    try:
        connection = await connect(target)
    except OSError:
        return None
    try:
        return await connection.ask(request(target, model, mark, deltas, delay_ms))
    except ConnectionError:
        return None
    finally:
        connection.abort()


def at_once(answers: Sequence[WholeResponse | None]) -> int:
    """Returns the greatest number of simultaneous streams."""
    found = [answer for answer in answers if answer is not None and answer.status == 200]
    moments = sorted([(answer.begun, 1) for answer in found] + [(answer.ended, -1) for answer in found])
    most = running = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    return most


async def streams(
    gateway_process: GatewayProcess, models: Sequence[str], many: int, deltas: int = 20, delay_ms: int = 250
) -> list[Figure]:
    """Requests this many streams at once, from the models in turn. Memory and descriptors are compared with those
    before."""
    model = [models[number % len(models)] for number in range(many)]
    await asyncio.gather(
        *(ask(gateway_process.target, model[number], f"mark-{number}", 3, 1) for number in range(min(50, many)))
    )
    memory = gateway_process.running.memory_mb
    descriptors = await gateway_process.settled(gateway_process.least_descriptors, 1)
    marks = [f"mark-{number}" for number in range(many)]
    asking = [
        asyncio.create_task(ask(gateway_process.target, name, mark, deltas, delay_ms))
        for name, mark in zip(model, marks, strict=True)
    ]
    await asyncio.sleep(deltas * delay_ms / 2000)
    while_open, taken = gateway_process.running.memory_mb, gateway_process.running.descriptors - descriptors
    answers = await asyncio.gather(*asking)
    verdicts = Counter(verdict(answer, mark, deltas) for answer, mark in zip(answers, marks, strict=True))
    last = await gateway_process.settled(descriptors)
    complete = [answer for answer in answers if answer is not None and answer.status == 200]
    seconds = [answer.ended - answer.begun for answer in complete]
    wrong = {what: count for what, count in verdicts.items() if what not in ("complete", "shed")}
    return [
        Figure("streams asked for", many),
        Figure("under way at once", at_once(answers)),
        Figure("complete, in order, with their own marks", verdicts["complete"], least=1),
        Figure("shed with retry-after", verdicts["shed"]),
        *(Figure(what, count, most=0) for what, count in wrong.items()),
        Figure("complete or shed", verdicts["complete"] + verdicts["shed"], many, many),
        Figure("longest stream, s", quantile(seconds, 1)),
        Figure("memory before, MB", memory),
        Figure("a stream under way, KB", (while_open - memory) * 1024 / many),
        Figure("connections to the backend", taken - many),
        Figure("memory afterwards, MB", gateway_process.running.memory_mb, most=memory + KEPT_MB),
        Figure("descriptors afterwards", last, most=descriptors),
    ]
