"""Maps every scenario of the agent wire by name, and lists the framing options and the scenarios' tools."""

from collections.abc import Mapping
from typing import Final

from gateway.demo.agent.framing_options import FRAMING_OPTIONS
from gateway.demo.agent.scenario import Expect, Scenario
from gateway.demo.agent.scenarios.calls import CALLS
from gateway.demo.agent.scenarios.edges import EDGES
from gateway.demo.agent.scenarios.failures import FAILURES
from gateway.demo.agent.scenarios.http import HTTP
from gateway.demo.agent.scenarios.text import TEXT
from gateway.demo.agent.scenarios.tools import TOOLS
from gateway.demo.agent.scenarios.transactions import TRANSACTIONS

SCENARIOS: Final[Mapping[str, Scenario]] = {**TEXT, **CALLS, **TRANSACTIONS, **EDGES, **FAILURES, **HTTP}

__all__ = ["FRAMING_OPTIONS", "SCENARIOS", "TOOLS", "Expect", "Scenario"]
