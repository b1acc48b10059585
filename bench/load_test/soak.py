"""Runs a mixture of all workloads for some minutes and checks that memory, descriptors and tasks do not grow."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

import msgspec

from bench.load_test.client_workload import VISITS, Visitor, plain
from bench.load_test.figures import Figure, number, quantile, slope
from bench.load_test.gateway_process import GatewayProcess

# Each kind of request, with its weight and its outcome.
Visits: TypeAlias = Mapping[Callable[[Visitor], Awaitable[str]], tuple[int, str]]

CLIENTS: Final = 24
SAMPLES: Final = 20
WAIT_S: Final = 30
WARM_SHARE: Final = 0.2
# The gateway closes a connection to a backend after a quarter of a minute without use.
SETTLED_S: Final = 40
# The mixture of a minute changes it by some megabytes in either direction; in twenty minutes this is a hundred bytes a
# request.
GROWN_MB: Final = 16
# Values that are cached on first use remain: names of metrics, compiled patterns.
GROWN_BLOCKS: Final = 10_000


class SoakSample(msgspec.Struct, frozen=True):
    """`minute` counts since the warm-up, `requests` until then; the times are those of plain requests since the
    previous sample, and the event loop's greatest delay in the last half second."""

    minute: float
    requests: int
    memory_mb: float
    descriptors: int
    tasks: int
    blocks: int
    late_ms: float
    p50_ms: float
    p99_ms: float


class Mixture:
    """The clients and their outcomes so far."""

    def __init__(self, gateway_process: GatewayProcess, visits: Visits) -> None:
        self._gateway = gateway_process
        self._visits = visits
        self._loop = asyncio.get_running_loop()
        self._until = 0.0
        self._times: list[float] = []
        self.wrong: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """Runs all clients for this many seconds."""
        self._until = self._loop.time() + seconds
        await asyncio.gather(*(self._visit(Visitor(self._gateway.target, seed)) for seed in range(CLIENTS)))

    async def _visit(self, visitor: Visitor) -> None:
        kinds, weights = list(self._visits), [weight for weight, _ in self._visits.values()]
        while self._loop.time() < self._until:
            visit = visitor.chance.choices(kinds, weights)[0]
            begun = self._loop.time()
            came = await _outcome(visit, visitor)
            self.done[visit.__name__] += 1
            if came != self._visits[visit][1]:
                self.wrong[f"{visit.__name__}: {came}"] += 1
            if visit is plain:
                self._times.append(1000 * (self._loop.time() - begun))
            # Users pause between requests, and the machine has other work.
            await asyncio.sleep(visitor.chance.random() * 0.05)
        visitor.close()

    def sample(self, begun: float) -> SoakSample:
        read, running, times = self._gateway.read(), self._gateway.running, self._times
        self._times = []
        return SoakSample(
            (self._loop.time() - begun) / 60,
            self.done.total(),
            running.memory_mb,
            running.descriptors,
            read.tasks,
            read.blocks,
            read.late_ms,
            quantile(times, 0.5),
            quantile(times, 0.99),
        )


async def _outcome(visit: Callable[[Visitor], Awaitable[str]], visitor: Visitor) -> str:
    try:
        async with asyncio.timeout(WAIT_S):
            return await visit(visitor)
    except (OSError, TimeoutError) as error:
        visitor.close()
        return type(error).__name__


async def soak(
    gateway_process: GatewayProcess,
    minutes: float,
    tell: Callable[[str], None],
    samples: int = SAMPLES,
    settled_s: float = SETTLED_S,
    visits: Visits = VISITS,
    pooled: int = 0,
) -> list[Figure]:
    """Reports every sample as a line of a table. The final comparison uses readings without any requests in progress.
    So many connections may stay open in pools (`pooled`)."""
    seconds = 60 * minutes
    mixture = Mixture(gateway_process, visits)
    await mixture.run(WARM_SHARE * seconds)
    before = await quiet(gateway_process, settled_s)
    warm, begun = mixture.done.total(), asyncio.get_running_loop().time()
    running = asyncio.create_task(mixture.run((1 - WARM_SHARE) * seconds))
    tell(f"| {' | '.join(SoakSample.__struct_fields__)} |\n|{'---|' * len(SoakSample.__struct_fields__)}")
    told: list[SoakSample] = []
    for _ in range(samples):
        await asyncio.sleep((1 - WARM_SHARE) * seconds / samples)
        told.append(mixture.sample(begun))
        tell(f"| {' | '.join(number(value) for value in msgspec.structs.astuple(told[-1]))} |")
    await running
    after = await quiet(gateway_process, settled_s)
    return [*_asked(mixture, warm), *_grown(told, mixture.done.total() - warm), *_kept(before, after, pooled)]


class Quiet(msgspec.Struct, frozen=True):
    """The figures of the gateway without any requests in progress."""

    memory_mb: float
    descriptors: int
    tasks: int
    blocks: int


async def quiet(gateway_process: GatewayProcess, seconds: float) -> Quiet:
    """Waits until the connections to backends are closed as well, for this many seconds at most."""
    descriptors = await gateway_process.settled(gateway_process.least_descriptors, seconds)
    read = await gateway_process.collect()
    return Quiet(gateway_process.running.memory_mb, descriptors, read.tasks, read.blocks)


def _asked(mixture: Mixture, warm: int) -> list[Figure]:
    return [
        Figure("requests", mixture.done.total(), least=1),
        Figure("of them to warm up", warm),
        *(Figure(f"of them {kind}", count) for kind, count in sorted(mixture.done.items())),
        Figure("unexpected answers", mixture.wrong.total(), most=0),
        *(Figure(what, count, most=0) for what, count in mixture.wrong.items()),
    ]


def _grown(told: list[SoakSample], requests: int) -> list[Figure]:
    steep = slope([(sample.minute, sample.memory_mb) for sample in told])
    grown = steep * (told[-1].minute - told[0].minute)
    return [
        Figure("slope of memory, KB a minute", 1024 * steep),
        Figure("the same, bytes a request", 2**20 * grown / max(1, requests)),
        Figure("grown by that slope, MB", grown, most=GROWN_MB),
    ]


def _kept(before: Quiet, after: Quiet, pooled: int) -> list[Figure]:
    return [
        Figure("quiet memory before, MB", before.memory_mb),
        Figure("quiet memory afterwards, MB", after.memory_mb, most=before.memory_mb + GROWN_MB),
        Figure("the interpreter's blocks before", before.blocks),
        Figure("the interpreter's blocks afterwards", after.blocks, most=before.blocks + GROWN_BLOCKS),
        Figure("tasks before", before.tasks),
        Figure("tasks afterwards", after.tasks, most=before.tasks),
        Figure("descriptors before", before.descriptors),
        Figure("descriptors afterwards", after.descriptors, most=before.descriptors + pooled),
    ]
