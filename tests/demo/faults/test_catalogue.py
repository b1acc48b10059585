"""The catalogue of faults: what can be named, and what cannot."""

from typing import Final

import pytest

from adapters.openai_chat.demo.chunk_faults import CHUNK_FAULTS
from adapters.openai_chat.demo.refusals import REFUSALS
from gateway.demo.faults.catalogue import COMMON, FAULTS, OTHER_KINDS, OWN, find_fault
from gateway.demo.serve import KINDS, serve_demo
from tests.demo.faults import (
    test_asking,
    test_fields,
    test_keys,
    test_models,
    test_refusals,
    test_replies,
    test_responses,
    test_timing,
)

TESTS: Final = (test_fields, test_refusals, test_keys, test_models, test_replies, test_responses, test_timing)


def test_every_fault_has_wires_and_says_what_is_wrong() -> None:
    assert FAULTS.keys() == OWN.keys() == KINDS.keys()
    for name, fault in COMMON.items():
        assert fault.wires and set(fault.wires) <= KINDS.keys(), name
    for faults in FAULTS.values():
        assert all(fault.about and not fault.about.endswith(".") for fault in faults.values())


def test_no_fault_of_a_wire_hides_a_common_one() -> None:
    assert not [(wire, name) for wire, own in OWN.items() for name in own if wire in wires_of(name)]
    assert all(wire in wires_of(name) for wire, name in OTHER_KINDS)


def wires_of(name: str) -> tuple[str, ...]:
    return COMMON[name].wires if name in COMMON else ()


def test_every_fault_is_tested_on_each_of_its_wires() -> None:
    tested = {case for module in (*TESTS, test_asking) for case in module.CASES}
    assert tested == {(name, kind) for kind, faults in FAULTS.items() for name in faults}


def test_every_fault_that_no_response_alone_shows_is_tested_against_a_sound_backend() -> None:
    tested = {case for module in TESTS for case in module.CASES}
    compared = {name for name, fault in COMMON.items() if not fault.kind and not fault.options}
    shown = {(name, kind) for name in compared for kind in COMMON[name].wires}
    assert tested >= shown | {(name, "chat") for name in (*CHUNK_FAULTS, *REFUSALS)} | {("needs_signature", "gemini")}


@pytest.mark.parametrize(("name", "kind"), [("none", "chat"), ("no_done", "text")])
async def test_a_wire_without_the_fault_is_refused(name: str, kind: str) -> None:
    with pytest.raises(
        ValueError, match=f"the demo backend '{kind}' has no defect '{name}'; it has wrong_key_accepted"
    ):
        find_fault(name, kind)
    with pytest.raises(ValueError, match=name):
        async with serve_demo(kind, defect=name):
            pass
