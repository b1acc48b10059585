"""Gives the tests one environment with the release installed."""

import pytest

from tests.dist.environment import Environment


@pytest.fixture(scope="package")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel of this release and its pinned requirements, and nothing else."""
    environment = Environment(tmp_path_factory.mktemp("release"))
    environment.install_release()
    return environment
