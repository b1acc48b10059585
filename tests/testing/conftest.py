"""What the tests of both kits share."""

import pytest
from hypothesis import Phase, settings

from gateway.testing import decode_checks, dialect_answer_checks, dialect_request_checks, encode_checks


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A law that fails on purpose ends with the first example that breaks it: nobody reads a smaller one."""
    for checks in (decode_checks, dialect_answer_checks, dialect_request_checks, encode_checks):
        monkeypatch.setattr(checks, "LAW", settings(checks.LAW, phases=(Phase.explicit, Phase.generate)))
