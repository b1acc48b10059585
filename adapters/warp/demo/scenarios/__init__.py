"""Maps every scenario of the agent wire by name, and lists the framing options and the scenarios' tools."""

from collections.abc import Mapping
from typing import Final

from adapters.warp.demo.framing_options import FRAMING_OPTIONS
from adapters.warp.demo.scenario import Expect, WarpScenario
from adapters.warp.demo.scenarios.calls import CALLS, TOOLS
from adapters.warp.demo.scenarios.edges import EDGES
from adapters.warp.demo.scenarios.failures import FAILURES
from adapters.warp.demo.scenarios.http import HTTP
from adapters.warp.demo.scenarios.moves import MOVES
from adapters.warp.demo.scenarios.text import TEXT
from adapters.warp.demo.scenarios.transactions import TRANSACTIONS

SCENARIOS: Final[Mapping[str, WarpScenario]] = {
    **TEXT,
    **CALLS,
    **TRANSACTIONS,
    **MOVES,
    **EDGES,
    **FAILURES,
    **HTTP,
}

__all__ = ["FRAMING_OPTIONS", "SCENARIOS", "TOOLS", "Expect", "WarpScenario"]
