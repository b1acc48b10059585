"""Every scenario of the agent wire by name, the framing knobs, and the tools that the scenarios call."""

from collections.abc import Mapping
from typing import Final

from gateway.demo.framing import KNOBS
from gateway.demo.scenario import Expect, Scenario
from gateway.demo.scenarios.calls import CALLS
from gateway.demo.scenarios.edges import EDGES
from gateway.demo.scenarios.failures import FAILURES
from gateway.demo.scenarios.http import HTTP
from gateway.demo.scenarios.text import TEXT
from gateway.demo.scenarios.tools import TOOLS
from gateway.demo.scenarios.transactions import TRANSACTIONS

SCENARIOS: Final[Mapping[str, Scenario]] = {**TEXT, **CALLS, **TRANSACTIONS, **EDGES, **FAILURES, **HTTP}

__all__ = ["KNOBS", "SCENARIOS", "TOOLS", "Expect", "Scenario"]
