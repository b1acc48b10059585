"""Lets agents work before two gateways and a store, to compare what they need with what was computed and simulated."""

import asyncio
import random
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

import msgspec

from bench import payload
from bench.agent_body import TURNS, AgentBody, agent_body
from bench.load import Load, Target, connect
from bench.scale.demand import Agents
from bench.scale.measurement import commands
from bench.scale.processes import Gateway, Store, backend, gateways, store
from bench.scale.simulation import Outcome

GATEWAYS: Final = 2
_SAMPLE_S: Final = 0.1


class _Work(msgspec.Struct):
    """The requests of all agents, how many are open, and how many of them were open at once at most."""

    load: Load
    open: int = 0
    most: int = 0


async def work(folder: Path, number: int, agents: Agents, seconds: float, pinned: bool = True) -> Outcome:
    """Returns what so many agents cause in these seconds, behind the first period, in which they begin. Raises
    RuntimeError when a response was not whole: figures of the others would be none."""
    async with store(folder) as opened:
        with (
            backend(folder, agents.chunks, pinned=pinned) as base_url,
            gateways(folder, GATEWAYS, base_url, number, opened.port, pinned) as running,
        ):
            return await _observed(running, opened, number, agents, seconds)


async def _observed(running: Sequence[Gateway], opened: Store, number: int, agents: Agents, seconds: float) -> Outcome:
    done = _Work(Load())
    # Made before the agents begin: it takes seconds.
    model = payload.model(agents.chunks, round(1000 * agents.answer_s / agents.chunks))
    bodies = {size: agent_body(size, model, stream=True) for size in agents.mix}
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                _agent(running[at % len(running)].target(at), bodies[size], agents, done, random.Random(at))
            )
            for at, size in enumerate(_sizes(number, agents))
        ]
        await asyncio.sleep(agents.period_s)
        begun, asked, ran = time.perf_counter(), len(done.load.first), await commands(opened)
        spent, store_spent = _spent(running), opened.running.cpu_s
        most_mb, done.most = 0.0, done.open
        while time.perf_counter() < begun + seconds:
            await asyncio.sleep(_SAMPLE_S)
            most_mb = max(most_mb, sum(gateway.running.memory_mb - gateway.running.idle_mb for gateway in running))
        passed = time.perf_counter() - begun
        outcome = Outcome(
            requests=(len(done.load.first) - asked) / passed,
            cores=(_spent(running) - spent) / passed,
            open=done.most,
            memory_mb=most_mb,
            commands=(await commands(opened) - ran) / passed,
            store_cores=(opened.running.cpu_s - store_spent) / passed,
            waits=done.load.first[asked:],
        )
        for task in tasks:
            task.cancel()
    if done.load.errors:
        raise RuntimeError(f"{done.load.errors} responses were not whole")
    return outcome


def _sizes(number: int, agents: Agents) -> list[str]:
    """Returns the size of each agent's requests, in the shares of the mix."""
    sizes = [size for size, share in agents.mix.items() for _ in range(round(share * number))]
    return (sizes * 2)[:number] if sizes else list(agents.mix)[:1] * number


def _spent(running: Sequence[Gateway]) -> float:
    return sum(gateway.running.cpu_s for gateway in running)


async def _agent(target: Target, body: AgentBody, agents: Agents, done: _Work, chance: random.Random) -> None:
    await asyncio.sleep(agents.next_s(chance))
    for request in count():
        turn = request % (TURNS + 1)
        if turn == 0:
            conversation = chance.randrange(10**6)
        # The gateway may close an idle connection while the tools run.
        connection = await connect(target, done.load, agents.chunks)
        done.open += 1
        done.most = max(done.most, done.open)
        try:
            await connection.ask(target.encode(body.request(conversation, turn)))
        finally:
            done.open -= 1
            connection.close()
        await asyncio.sleep(chance.expovariate(1 / agents.tools_s))
