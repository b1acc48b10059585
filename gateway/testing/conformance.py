"""A Case in, an AssertionError or nothing out: what every adapter must keep, whoever wrote it.

from gateway.testing.conformance import CHECKS, Case, Check

CASES = [Case("plain", MyAdapter, wire=b"...", expected=(ResponseStart(), TextDelta("Hello"), Finish("stop")))]

@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_my_adapter_conforms(case: Case, check: Check) -> None:
    check(case)
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from gateway.testing import answering, asking
from gateway.testing.case import AdapterClass, Case

__all__ = ["CHECKS", "AdapterClass", "Case", "Check"]

Check: TypeAlias = Callable[[Case], None]

CHECKS: Final[tuple[Check, ...]] = (*asking.CHECKS, *answering.CHECKS)
