"""A mixture of everything for so many minutes -> whether memory, descriptors and tasks stay what they were."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from bench.under_load.figures import Figure, number, quantile, slope
from bench.under_load.house import House
from bench.under_load.visits import VISITS, Visitor, plain

CLIENTS: Final = 24
SAMPLES: Final = 20
WAIT_S: Final = 30
WARM_SHARE: Final = 0.2
# The gateway closes a connection to a backend that nobody has used for a quarter of a minute.
SETTLED_S: Final = 40
# A minute's mixture moves it by some megabytes either way; in twenty minutes this is a hundred bytes a request.
GROWN_MB: Final = 16
# Whatever is met for the first time stays: names of metrics, compiled patterns.
GROWN_BLOCKS: Final = 10_000


class Sample(msgspec.Struct, frozen=True):
    """`minute` since the warm-up, `requests` until then; the times are those of plain requests since the sample
    before, and what the event loop was late at worst in the last half second."""

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
    """What the clients have seen so far."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._loop = asyncio.get_running_loop()
        self._until = 0.0
        self._times: list[float] = []
        self.wrong: Counter[str] = Counter()
        self.done: Counter[str] = Counter()

    async def run(self, seconds: float) -> None:
        """All clients, for so long."""
        self._until = self._loop.time() + seconds
        await asyncio.gather(*(self._visit(Visitor(self._house.target, seed)) for seed in range(CLIENTS)))

    async def _visit(self, visitor: Visitor) -> None:
        kinds, weights = list(VISITS), [weight for weight, _ in VISITS.values()]
        while self._loop.time() < self._until:
            visit = visitor.chance.choices(kinds, weights)[0]
            begun = self._loop.time()
            came = await _outcome(visit, visitor)
            self.done[visit.__name__] += 1
            if came != VISITS[visit][1]:
                self.wrong[f"{visit.__name__}: {came}"] += 1
            if visit is plain:
                self._times.append(1000 * (self._loop.time() - begun))
            # People think; and the machine has other things to do.
            await asyncio.sleep(visitor.chance.random() * 0.05)
        visitor.leave()

    def sample(self, begun: float) -> Sample:
        read, running, times = self._house.read(), self._house.running, self._times
        self._times = []
        return Sample(
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
        visitor.leave()
        return type(error).__name__


async def soak(
    house: House, minutes: float, tell: Callable[[str], None], samples: int = SAMPLES, settled_s: float = SETTLED_S
) -> list[Figure]:
    """Every sample is told as a line of a table. What is compared in the end was read while nobody asked anything."""
    seconds = 60 * minutes
    mixture = Mixture(house)
    await mixture.run(WARM_SHARE * seconds)
    before = await quiet(house, settled_s)
    warm, begun = mixture.done.total(), asyncio.get_running_loop().time()
    running = asyncio.create_task(mixture.run((1 - WARM_SHARE) * seconds))
    tell(f"| {' | '.join(Sample.__struct_fields__)} |\n|{'---|' * len(Sample.__struct_fields__)}")
    told: list[Sample] = []
    for _ in range(samples):
        await asyncio.sleep((1 - WARM_SHARE) * seconds / samples)
        told.append(mixture.sample(begun))
        tell(f"| {' | '.join(number(value) for value in msgspec.structs.astuple(told[-1]))} |")
    await running
    after = await quiet(house, settled_s)
    return [*_asked(mixture, warm), *_grown(told, mixture.done.total() - warm), *_kept(before, after)]


class Quiet(msgspec.Struct, frozen=True):
    """The gateway while nobody asks anything."""

    memory_mb: float
    descriptors: int
    tasks: int
    blocks: int


async def quiet(house: House, seconds: float) -> Quiet:
    """Wait, for so long at most, until connections to backends have been closed, too."""
    descriptors = await house.settled(house.least_descriptors, seconds)
    read = await house.collect()
    return Quiet(house.running.memory_mb, descriptors, read.tasks, read.blocks)


def _asked(mixture: Mixture, warm: int) -> list[Figure]:
    return [
        Figure("requests", mixture.done.total(), least=1),
        Figure("of them to warm up", warm),
        *(Figure(f"of them {kind}", count) for kind, count in sorted(mixture.done.items())),
        Figure("unexpected answers", mixture.wrong.total(), most=0),
        *(Figure(what, count, most=0) for what, count in mixture.wrong.items()),
    ]


def _grown(told: list[Sample], requests: int) -> list[Figure]:
    steep = slope([(sample.minute, sample.memory_mb) for sample in told])
    grown = steep * (told[-1].minute - told[0].minute)
    return [
        Figure("slope of memory, KB a minute", 1024 * steep),
        Figure("the same, bytes a request", 2**20 * grown / max(1, requests)),
        Figure("grown by that slope, MB", grown, most=GROWN_MB),
    ]


def _kept(before: Quiet, after: Quiet) -> list[Figure]:
    return [
        Figure("quiet memory before, MB", before.memory_mb),
        Figure("quiet memory afterwards, MB", after.memory_mb, most=before.memory_mb + GROWN_MB),
        Figure("the interpreter's blocks before", before.blocks),
        Figure("the interpreter's blocks afterwards", after.blocks, most=before.blocks + GROWN_BLOCKS),
        Figure("tasks before", before.tasks),
        Figure("tasks afterwards", after.tasks, most=before.tasks),
        Figure("descriptors before", before.descriptors),
        Figure("descriptors afterwards", after.descriptors, most=before.descriptors),
    ]
