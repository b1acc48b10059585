"""Measures the times of small requests, alternately with and without a crowd of other connections."""

import math
from typing import Final

from bench import payload
from bench.load import drive
from bench.load_test.figures import Figure, quantile
from bench.load_test.gateway_process import GatewayProcess

SERVED_MS: Final = 1500


class Service:
    """The times and errors that well-behaved clients experience."""

    def __init__(self, gateway_process: GatewayProcess, seconds: float) -> None:
        self._gateway = gateway_process
        self._seconds = seconds
        self._times: dict[bool, list[float]] = {False: [], True: []}
        self._errors = 0

    async def measure(self, crowded: bool) -> None:
        """Measures one round."""
        body = payload.request("native", stream=False)
        load = await drive(self._gateway.target, body, connections=4, seconds=self._seconds, stream=False)
        self._times[crowded] += load.whole
        self._errors += load.errors

    def figures(self) -> list[Figure]:
        """Returns the figures of all rounds together."""
        shares = [self._figure(share, crowded) for share in (0.5, 0.99) for crowded in (False, True)]
        return [*shares, Figure("small requests that failed", self._errors, most=0)]

    def _figure(self, share: float, crowded: bool) -> Figure:
        beside = "beside them" if crowded else "without them"
        seen = 1000 * quantile(self._times[crowded], share)
        return Figure(f"p{100 * share:.0f} of a small request {beside}, ms", seen, SERVED_MS if crowded else math.inf)
