"""Checks the rules that every adapter must keep. Each check takes a Case and raises AssertionError for a broken rule.

from gateway.testing.conformance import CHECKS, Case, Check

CASES = [Case("plain", MyAdapter, wire=b"...", expected=(ResponseStart(), TextDelta("Hello"), Finish("stop")))]

@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_my_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.testing import declaration_checks, decode_checks, encode_checks, loss_checks
from gateway.testing.adapter_case import AdapterClass, Case

__all__ = ["CHECKS", "AdapterClass", "Case", "Check"]

Check: TypeAlias = Callable[[Case], None]

CHECKS: Final[tuple[Check, ...]] = (
    *encode_checks.CHECKS,
    *declaration_checks.CHECKS,
    *loss_checks.CHECKS,
    *decode_checks.CHECKS,
)
