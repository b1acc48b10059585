"""docs/proto-backends.md lists the servers and proxies that `make grpc` runs."""

import re

from tests.grpc_servers.wires import WIRES
from tests.paths import ROOT


def names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def test_the_page_lists_every_way_to_a_server() -> None:
    page = (ROOT / "docs" / "proto-backends.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| server \| proxy \| carriers \|\n\| ---.*\n((?:\|.*\n)+)", page, re.MULTILINE)
    listed = {
        (server, proxy, carrier)
        for row in table.splitlines()
        for server, proxies, carriers in [map(names, row.strip("|").split("|"))]
        for proxy in proxies or (None,)
        for carrier in carriers
    }
    assert listed == {((wire.program,), wire.proxy, carrier) for wire in WIRES.values() for carrier in wire.carriers}
