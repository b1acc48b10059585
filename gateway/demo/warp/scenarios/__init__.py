"""Maps every scenario of the agent wire by name, and lists the framing options and the scenarios' tools."""

from collections.abc import Mapping
from typing import Final

from gateway.demo.warp.framing_options import FRAMING_OPTIONS
from gateway.demo.warp.scenario import Expect, WarpScenario
from gateway.demo.warp.scenarios.calls import CALLS
from gateway.demo.warp.scenarios.edges import EDGES
from gateway.demo.warp.scenarios.failures import FAILURES
from gateway.demo.warp.scenarios.http import HTTP
from gateway.demo.warp.scenarios.text import TEXT
from gateway.demo.warp.scenarios.tools import TOOLS
from gateway.demo.warp.scenarios.transactions import TRANSACTIONS

SCENARIOS: Final[Mapping[str, WarpScenario]] = {**TEXT, **CALLS, **TRANSACTIONS, **EDGES, **FAILURES, **HTTP}

__all__ = ["FRAMING_OPTIONS", "SCENARIOS", "TOOLS", "Expect", "WarpScenario"]
