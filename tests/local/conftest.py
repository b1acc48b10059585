from collections.abc import Iterator

import pytest

from gateway.core.errors import SettingsError
from gateway.local import LocalModel, find_weights, run_model


@pytest.fixture(scope="session")
def model_server() -> Iterator[LocalModel]:
    """The real model server, one for all tests."""
    try:
        weights = find_weights()
    except SettingsError as error:
        pytest.skip(f"{error.message.partition(':')[0]}; make e2e installs them and runs this")
    with run_model(weights) as running:
        yield running
