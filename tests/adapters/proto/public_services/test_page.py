"""docs/proto-backends.md lists the scenarios, and what each service passes."""

import re
from typing import Final

from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.test_scenarios import PLAYED, SERVICES
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "proto-backends.md").read_text(encoding="utf-8")
# A test of its own.
CANCELLED: Final = "cancelled"


def test_the_page_lists_what_each_service_passes() -> None:
    ((head, table),) = re.findall(r"^\| scenario (\|.*\|)\n\| ---.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    services = re.findall(r"`(\w+)`", head)
    assert services == [service.name for service in SERVICES]
    rows = {name: cells for name, *cells in (row.strip("| \n").split(" | ") for row in table.splitlines())}
    assert [*rows] == [*SCENARIOS, CANCELLED]
    passed = {(service.name, name) for service, _, name in PLAYED} | {(name, CANCELLED) for name in services}
    listed = {
        (service, name)
        for name, cells in rows.items()
        for service, cell in zip(services, cells, strict=True)
        if cell == "yes"
    }
    assert listed == passed
