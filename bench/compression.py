"""Measures what compression costs a request that uses no summary: `python -m bench.compression`.

The models of one gateway take turns with the same histories, and the best round counts, because other load on the
machine affects all of them alike. A history above the trigger is looked up, counted and planned for each time, and
never summarised: `sightings` asks for more requests than are sent.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench import payload
from bench.gateways import BACKEND, BACKEND_PORT, CHAT, OWN_PORT, Running, started
from bench.load import Target, drive
from gateway.core.conversation import Json

# In tokens: no body of these comes near the trigger.
_HUGE: Final = 100_000_000
OFF, BELOW, ABOVE = "off", "on, below the trigger", "on, above it"


class History(msgspec.Struct, frozen=True):
    """So many messages of so many characters each. `window` is a context length of which they need about 0.8."""

    messages: int
    characters: int
    window: int


HISTORIES: Final[Mapping[str, History]] = {
    "20 messages, 40 KB": History(20, 2000, 12_000),
    "200 messages, 340 KB": History(200, 1650, 100_000),
    "2,000 messages, 450 KB": History(2000, 180, 120_000),
}


def main() -> None:
    """Measures and printss a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.compression", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of which the best counts")
    parser.add_argument("--seconds", type=float, default=1.5, help="of each model in a round")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = (sys.executable, "-m", "gateway", "serve", "--settings", str(_settings(folder)))
        mock = (sys.executable, "-m", "bench.mock", str(BACKEND_PORT))
        with (
            started(mock, BACKEND_PORT, 1, {}, folder / "mock.log"),
            started(command, OWN_PORT, 0, {}, folder / "gateway.log") as gateway,
        ):
            figures = uvloop.run(_measure(gateway, options.rounds, options.seconds))
    print(f"| processor time of a request, ms (times off) | {OFF} | {BELOW} | {ABOVE} |\n|---|---|---|---|")
    for history, found in figures.items():
        cells = [f"{1000 * found[way]:.2f} ({found[way] / found[OFF]:.2f})" for way in (OFF, BELOW, ABOVE)]
        print(f"| {history} | {' | '.join(cells)} |")


def _settings(folder: Path) -> Path:
    file = folder / "settings.json"
    on: Json = {"enabled": True, "sightings": 1_000_000_000}
    above = {name: {"context_length": history.window, "compress": on} for name, history in HISTORIES.items()}
    models: dict[str, dict[str, Json]] = {
        OFF: {"context_length": _HUGE},
        BELOW: {"context_length": _HUGE, "compress": on},
        **above,
    }
    settings = {
        "server": {"port": OWN_PORT, "api_keys_env": None},
        "log": {"file": None},
        "inspector": {"enabled": "off"},
        "backends": {"b": {"adapter": "openai_chat", "base_url": f"{BACKEND}/v1"}},
        "models": {name: {"backend": "b", "name": payload.model(), **entry} for name, entry in models.items()},
    }
    file.write_text(json.dumps(settings))
    return file


async def _measure(gateway: Running, rounds: int, seconds: float) -> Mapping[str, Mapping[str, float]]:
    """Returns seconds of processor time for a request, by history and way."""
    return {name: await _compare(gateway, rounds, seconds, name, history) for name, history in HISTORIES.items()}


async def _compare(gateway: Running, rounds: int, seconds: float, name: str, history: History) -> Mapping[str, float]:
    models = {OFF: OFF, BELOW: BELOW, ABOVE: name}
    best = dict.fromkeys(models, float("inf"))
    for number in range(rounds):
        # What is measured first in a round has an advantage of its own.
        for way, model in list(models.items())[:: 1 if number % 2 else -1]:
            body = payload.request(model, stream=False, messages=history.messages, size=history.characters)
            best[way] = min(best[way], await _cpu_s(gateway, body, seconds))
    return best


async def _cpu_s(gateway: Running, body: bytes, seconds: float) -> float:
    before = gateway.cpu_s
    load = await drive(Target(f"http://127.0.0.1:{OWN_PORT}{CHAT}"), body, connections=4, seconds=seconds, stream=False)
    # What follows from a request comes after its answer.
    await asyncio.sleep(0.2)
    if load.errors:
        raise ValueError(f"{load.errors} responses were not whole")
    return (gateway.cpu_s - before) / len(load.whole)


if __name__ == "__main__":
    main()
