import pytest

from gateway.core.events import Finish, ResponseStart, TextDelta, UsageReport
from gateway.testing.conformance import CHECKS, Case, Check
from tests.examples.parrot import ParrotAdapter

WIRE = b"""\
data: {"text": "Good "}

data: {"text": "morning, \xe6\x97\xa5\xe6\x9c\xac."}

data: {"tokens": 5}

"""

CASES = [
    Case(
        "greeting",
        ParrotAdapter,
        WIRE,
        expected=(
            ResponseStart(),
            TextDelta("Good morning, 日本."),
            UsageReport(completion_tokens=5),
            Finish("stop"),
        ),
    ),
    Case("options", ParrotAdapter, WIRE, options={"voice": "loud"}),
]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_parrot_conforms(case: Case, check: Check) -> None:
    check(case)
