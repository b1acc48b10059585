"""Every kind of the fault catalogue is promised, played and documented, and no other kind is played."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio

from adapters.warp.demo.scenarios import SCENARIOS
from gateway.core.conversation import Json
from gateway.demo.faults.catalogue import FAULTS as CATALOGUE
from gateway.demo.faults.fault import Fault
from gateway.demo.faults.kinds import FAILURES, GRPC_FAILURES
from gateway.demo.faults.kinds import ODDITIES as ODD_KINDS
from gateway.registry import ADAPTERS
from gateway.testing.faults import FAULTS, FAULTS_BY_KIND
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.promises.table import GRPC_PROMISES, PROMISES
from tests.promises.test_oddities import ODDITIES
from tests.promises.wire_gateway import SHORT, TIMEOUTS, finishes, frames
from tests.promises.wires import WIRES
from tests.tiers import sample

PROMISED: Final = {row.id: row for row in (*PROMISES, *GRPC_PROMISES)}
# The faults that a marker can ask for. (Any: each wire has its own type of answers.)
DEMO: Final[Mapping[str, Mapping[str, Fault[Any]]]] = {
    wire: {name: fault for name, fault in faults.items() if fault.serves is None} for wire, faults in CATALOGUE.items()
}
AGENT: Final = {name: scenario.expect for name, scenario in SCENARIOS.items()}
# Only the agent wire has tasks, and a tool of the backend's own.
OF_ONE_WIRE: Final = {"moved_task_unknown", "native_tool"}
# Behind the name of a wire: the model whose limits are short, for the faults that wait for one.
WAITS: Final = "-waits"


def test_every_failure_is_promised_and_played_and_every_oddity_is_served() -> None:
    assert [row.id for row in PROMISES] == [*FAULTS_BY_KIND] == [*FAILURES]
    assert all(FAULTS_BY_KIND.values())
    assert len(FAULTS) == sum(map(len, FAULTS_BY_KIND.values()))
    assert [odd.id for odd in ODDITIES] == [*ODD_KINDS]
    assert not FAILURES.keys() & ODD_KINDS.keys()


def test_every_adapter_has_a_wire_on_which_they_are_played() -> None:
    assert {wire.entry["adapter"] for wire in WIRES.values()} == set(ADAPTERS.values())


def test_every_fault_of_a_demo_backend_is_of_a_listed_kind() -> None:
    for wire, faults in DEMO.items():
        kinds = FAILURES.keys() | ODD_KINDS.keys() | (GRPC_FAILURES.keys() if wire == "grpc" else set())
        assert {fault.kind for fault in faults.values() if fault.kind} <= kinds
    assert {name for name, expect in AGENT.items() if expect.fails and not expect.kind} == OF_ONE_WIRE
    assert not [name for name, expect in AGENT.items() if expect.kind and not expect.fails]


@pytest.mark.parametrize("name", [name for name, expect in AGENT.items() if expect.kind])
def test_a_scenario_of_the_agent_expects_what_is_promised(name: str) -> None:
    expect, row = AGENT[name], PROMISED[AGENT[name].kind]
    assert expect.status in (None, row.early.status)
    assert row.early.code == "its_code" or expect.code in (None, row.early.code, row.late)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway() -> AsyncIterator[RunningGateway]:
    entries: dict[str, dict[str, Json]] = {
        "chat": {"adapter": "openai_chat"},
        "messages": {"adapter": "anthropic_messages"},
        "responses": {"adapter": "openai_responses"},
        "gemini": {"adapter": "gemini"},
        "text": {"adapter": "text"},
        "grpc": {"adapter": "proto", "preset": "demo"},
        "agent": {"adapter": "warp"},
    }
    settings: dict[str, Json] = {
        "backends": {
            wire + suffix: {**entry, "base_url": f"demo:{wire}", "timeouts": dict(timeouts)}
            for wire, entry in entries.items()
            for suffix, timeouts in {"": TIMEOUTS, WAITS: SHORT}.items()
        },
        "models": {wire + suffix: {"backend": wire + suffix} for wire in entries for suffix in ("", WAITS)},
    }
    async with running_gateway(settings) as running:
        yield running


@sample("wire", lambda wire, name: DEMO[wire][name].kind)
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("wire", "name"), [(wire, name) for wire, kinds in DEMO.items() for name in kinds])
async def test_a_demo_fault_is_answered_as_its_kind_promises(wire: str, name: str, gateway: RunningGateway) -> None:
    marked: Json = [{"role": "user", "content": f"count to ten [[demo:{name}]]"}]
    kind = DEMO[wire][name].kind
    waits = kind in PROMISED and PROMISED[kind].waits
    response = await gateway.chat(model=wire + (WAITS if waits else ""), messages=marked, stream=True)
    if kind in PROMISED:
        row = PROMISED[kind]
        begun = response.status_code == 200
        last = json.loads(frames(response.text)[-1] if begun else response.text)["error"]
        assert begun or response.status_code == row.early.status
        # In a stream, clients know a failure that may pass by this type.
        passes = begun and row.early.type == "upstream_error"
        assert last["type"] == ("server_error" if passes else row.early.type)
        assert row.early.code == "its_code" or last["code"] == (row.late if begun else row.early.code)
    else:
        *data, done = frames(response.text)
        assert (response.status_code, finishes(data), done) == (200, [DEMO[wire][name].finish], "[DONE]")
