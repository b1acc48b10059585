"""What every test shares: how hypothesis runs, and the option that rewrites the expected golden files."""

import pytest
from hypothesis import settings

# A shared machine is slow at random moments: only the number of examples bounds a law.
settings.register_profile("house", deadline=None, max_examples=100)
settings.register_profile("thorough", deadline=None, max_examples=2000)
settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="rewrite the expected files in tests/golden from what is"
    )


@pytest.fixture(scope="session")
def rewrite_golden(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--rewrite-golden"))
