"""Measures what a gateway keeps of many long conversations: no more than `state.prefix_mb` allows."""

from typing import Final

import msgspec

from bench import payload
from bench.load_test.client_workload import Visitor
from bench.load_test.figures import Figure
from bench.load_test.gateway_process import GatewayProcess
from gateway.settings import StateSettings

# Two requests of each: the next one is longer by a call and its result.
TURNS: Final = 2
MESSAGES: Final = 120
CHARACTERS: Final = 2_100
# What the allocator keeps, and what is read of one request beside it.
SPARE_MB: Final = 48


async def conversations(gateway_process: GatewayProcess, many: int) -> list[Figure]:
    """Sends the requests of so many conversations, more than are kept."""
    visitor = Visitor(gateway_process.target, 0)
    before, unexpected = gateway_process.running.memory_mb, 0
    for number in range(many):
        for turn in range(TURNS):
            request = payload.request("native", stream=False, messages=MESSAGES + 4 * turn, size=CHARACTERS)
            # Each conversation is another from its first message on.
            fields = msgspec.json.decode(request)
            fields["messages"][0]["content"] = f"{number} {fields['messages'][0]['content']}"
            answer = await visitor.ask(msgspec.json.encode(fields))
            unexpected += answer.status != 200
    visitor.close()
    grown = gateway_process.running.memory_mb - before
    return [
        Figure("conversations", many),
        Figure("of a size each, KB", MESSAGES * CHARACTERS / 1024),
        Figure("unexpected answers", unexpected, most=0),
        Figure("memory more for all of them, MB", grown, most=StateSettings().prefix_mb + SPARE_MB),
    ]
