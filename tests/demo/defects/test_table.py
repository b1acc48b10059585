"""The table of defects: what can be named, and what cannot."""

import pytest

from gateway.demo import serve_demo
from gateway.demo.defects.table import DEFECTS, find_defect
from gateway.demo.player.serve import KINDS
from tests.demo.defects import (
    test_fields,
    test_keys,
    test_models,
    test_refusals,
    test_replies,
    test_responses,
    test_timing,
)

TESTS = (test_fields, test_refusals, test_keys, test_models, test_replies, test_responses, test_timing)


def test_every_defect_has_wires_and_says_what_is_wrong() -> None:
    for name, defect in DEFECTS.items():
        assert defect.wires and set(defect.wires) <= KINDS.keys(), name
        assert defect.about, name


def test_every_defect_is_tested_on_each_of_its_wires() -> None:
    tested = {case for module in TESTS for case in module.CASES}
    assert tested == {(name, kind) for name, defect in DEFECTS.items() for kind in defect.wires}


@pytest.mark.parametrize(("name", "kind"), [("none", "chat"), ("no_done", "text")])
async def test_a_wire_without_the_defect_is_refused(name: str, kind: str) -> None:
    with pytest.raises(
        ValueError, match=f"the demo backend '{kind}' has no defect '{name}'; it has wrong_key_accepted"
    ):
        find_defect(name, kind)
    with pytest.raises(ValueError, match=name):
        async with serve_demo(kind, defect=name):
            pass
