"""docs/doctor.md has a row for every check, with the words of the code."""

import re
from typing import Final

from gateway.commands.doctor_offline import CHECKS
from gateway.diagnostics.doctor.examination import PROBES
from gateway.providers.registry import PROFILES, PROVIDERS
from tests.paths import ROOT

PAGE: Final = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
ROWS: Final = {row[0]: row[1:] for row in re.findall(r"^\| (D\d+) \| (.+?) \| (.+?) \| (.+?) \|$", PAGE, re.M)}


def test_the_page_lists_every_probe_with_what_it_asks() -> None:
    known = {probe.id: (probe.name, probe.asks) for probe in PROBES}
    assert {name: row[:2] for name, row in ROWS.items() if name in known} == known


def test_the_page_lists_every_check_of_this_machine_and_nothing_else() -> None:
    assert {row_id for row_id in ROWS if row_id.startswith("D1")} == {check_id for check_id, _, _ in CHECKS}
    assert ROWS.keys() - {probe.id for probe in PROBES} - {check_id for check_id, _, _ in CHECKS} == {"D200", "D268"}
    assert {check_id: ROWS[check_id][0] for check_id, _, _ in CHECKS} == {one: name for one, name, _ in CHECKS}


def test_every_host_has_a_profile_that_exists() -> None:
    assert {name for provider in PROVIDERS for name in provider.hosts.values()} <= set(PROFILES)
