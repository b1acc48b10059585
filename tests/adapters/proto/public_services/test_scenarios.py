"""Each public service passes the table of scenarios in each dialect, streamed and whole, behind its own preset.

The servers are those of `yandex` and `gigachat` in this folder, on the official server of gRPC.
"""

from typing import Final

import pytest

from adapters.proto.backend import ProtoOptions
from adapters.proto.backend.schema import Schema
from gateway.settings.presets import preset_defaults
from gateway.testing.dialect_case import DialectCase
from tests.adapters.proto.public_services.gigachat import GIGACHAT
from tests.adapters.proto.public_services.playing import KEY_VARIABLE, cancel, pass_scenario, possible
from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.service import KEY, Service, running_service
from tests.adapters.proto.public_services.yandex import YANDEX
from tests.dialects.cases import CASES
from tests.tiers import sample

SERVICES: Final[tuple[Service, ...]] = (YANDEX, GIGACHAT)
METHODS: Final = {
    service.name: Schema(preset_defaults({"preset": service.name}, ProtoOptions, "b")["schema"]).method(
        service.path[1:]
    )
    for service in SERVICES
}
PLAYED: Final = [
    (service, case, name)
    for service in SERVICES
    for case in CASES
    for name, scenario in SCENARIOS.items()
    if possible(service, case, scenario)
]


@pytest.fixture(autouse=True)
def credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def test_every_scenario_is_played_by_a_service() -> None:
    assert {name for _, _, name in PLAYED} == SCENARIOS.keys()


@sample(lambda service: service.name, "scenario", "case", "stream")
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("service", "case", "scenario"), PLAYED, ids=[f"{service.name}-{case}-{name}" for service, case, name in PLAYED]
)
async def test_a_scenario_passes(service: Service, case: DialectCase, scenario: str, stream: bool) -> None:
    method = METHODS[service.name]
    with running_service(service, method.request, method.response) as backend:
        await pass_scenario(service, backend, case, SCENARIOS[scenario], stream=stream)


@sample()
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
async def test_the_service_learns_that_a_client_has_left(service: Service, case: DialectCase) -> None:
    method = METHODS[service.name]
    with running_service(service, method.request, method.response) as backend:
        await cancel(service, backend, case, SCENARIOS["plain"])
