"""Measures what a request costs that somebody opens in the inspector: `python -m bench.redaction`.

Each row is a request of 402 messages and eleven tools with a streamed response of 2,000 chunks. `made again` is what
the gateway makes of the captured bytes, with the comparison to what was captured; `opened` is that and the same of
redacted bytes. The last column is the longest time for which another thread of the process, such as the one that
serves, got no turn while the request was opened. The texts are this project's own sources: of one word that comes again
and again, the redaction would be far cheaper.
"""

import argparse
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Final

import msgspec

from bench import payload
from gateway.core.policy import Policy
from gateway.inspector.views.redacted import remade_redacted
from gateway.inspector.views.remade import remake
from gateway.recording.lines import (
    AnswerLine,
    BytesLine,
    CloseLine,
    HeadLine,
    RedactionLevel,
    RequestLine,
    RouteLine,
    data_of,
)
from gateway.recording.offline_run import run_offline
from gateway.recording.recording import Interaction
from gateway.recording.redact.redact import redact_alike
from gateway.recording.remake import remade
from gateway.recording.route import policy_fields
from gateway.settings import Settings

MESSAGES: Final = 402
CHUNKS: Final = 2000
# Characters of a message.
SIZES: Final = {"330 KB": 740, "4 MB": 9200}
_SEED: Final = bytes(16)
_SECRETS: Final = ["a-configured-secret"]
_TICK_S: Final = 0.001


def captured(size: int) -> Interaction:
    """Returns the request as the inspector has captured it."""
    texts = _texts()
    document = msgspec.json.decode(
        payload.request("m", stream=True, messages=MESSAGES, tools=[f"tool_{at}" for at in range(11)])
    )
    for message in document["messages"]:
        if message["content"] is not None:
            message["content"] = "".join(islice(texts, size))
    reads = [*payload.chunks(CHUNKS, "word")]
    steps = [BytesLine(1, "backend", 2 + at, data_of(read)) for at, read in enumerate(reads)]
    inputs = Interaction(
        RequestLine(
            1, "req_1", "openai_chat", "POST", "/v1/chat/completions", body=data_of(msgspec.json.encode(document))
        ),
        RouteLine(1, "m", "b", "openai_chat", policy=policy_fields(Policy(max_history_messages=None))),
        answer=AnswerLine(1, "unique", 1760000000, (1760000001,) * 9),
        steps=(HeadLine(1, "backend", 1, 200, {"content-type": "text/event-stream"}), *steps, CloseLine(1, 5000)),
    )
    return remade(inputs, run_offline(inputs))


def _texts() -> Iterator[str]:
    sources = sorted(Path("gateway").rglob("*.py"))
    return cycle("".join(source.read_text() for source in sources))


def _ms(work: Callable[[], object], rounds: int) -> float:
    """Returns the shortest processor time of so many rounds."""
    times: list[float] = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return 1000 * min(times)


def _pause_ms(work: Callable[[], object]) -> float:
    """Returns the longest time for which this thread got no turn while another one works."""
    thread = threading.Thread(target=work)
    longest, before = 0.0, time.perf_counter()
    thread.start()
    while thread.is_alive():
        time.sleep(_TICK_S)
        now = time.perf_counter()
        longest, before = max(longest, now - before - _TICK_S), now
    return 1000 * longest


def _redact(interaction: Interaction, level: RedactionLevel) -> None:
    for _ in redact_alike([interaction], level, _SEED, _SECRETS):
        pass


def main() -> None:
    """Measures and printss a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.redaction", description="Measure what redaction costs.")
    parser.add_argument("--rounds", type=int, default=10, help="the shortest of so many counts")
    rounds = parser.parse_args().rounds
    settings = Settings()
    print("| ms | made again | redacted, shape | full | none | opened | longest pause |\n|---|---|---|---|---|---|---|")
    for name, size in SIZES.items():
        interaction = captured(size)
        levels: tuple[RedactionLevel, ...] = ("shape", "full", "none")
        opened = partial(remade_redacted, interaction, "shape", _SEED, _SECRETS, settings, str)
        works: list[Callable[[], object]] = [
            partial(remake, interaction, settings),
            *(partial(_redact, interaction, level) for level in levels),
            opened,
        ]
        figures = [*(_ms(work, rounds) for work in works), min(_pause_ms(opened) for _ in range(rounds))]
        print(f"| {name} | {' | '.join(f'{figure:.0f}' for figure in figures)} |", flush=True)


if __name__ == "__main__":
    main()
