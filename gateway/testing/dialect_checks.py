"""Checks the rules that every dialect must keep. Each check takes a DialectCase and raises AssertionError.

from gateway.testing.dialect_checks import CHECKS, DialectCase, DialectCheck

CASE = DialectCase(MyDialect, write, read_stream, read_whole, read_error, read_models, {"stop": "end", ...})

@pytest.mark.parametrize("check", CHECKS)
def test_my_dialect_conforms(check: DialectCheck) -> None:
    check(CASE)
"""

from typing import Final

from gateway.testing import dialect_answer_checks, dialect_field_checks, dialect_request_checks
from gateway.testing.dialect_case import ClientAnswer, DialectCase, DialectCheck

__all__ = ["CHECKS", "PROMPT_CHECKS", "ClientAnswer", "DialectCase", "DialectCheck"]

CHECKS: Final[tuple[DialectCheck, ...]] = (
    *dialect_request_checks.CHECKS,
    *dialect_field_checks.CHECKS,
    *dialect_answer_checks.CHECKS,
)
# Those for a dialect whose requests are one prompt: it has no history, no tools and no calls.
PROMPT_CHECKS: Final[tuple[DialectCheck, ...]] = tuple(
    [check for check in CHECKS if check not in dialect_request_checks.HISTORY_CHECKS]
)
