from collections.abc import Iterator

import pytest

from gateway.core.errors import SettingsError
from gateway.local import RAW, LocalModel, find_weights, run_model
from tests.local.compare_tools import CONTEXT, LOADS, right, right_calls

pytestmark = pytest.mark.tools_on_demand


@pytest.fixture(scope="module")
def large_server() -> Iterator[LocalModel]:
    """The real model server with room for sixty schemas."""
    try:
        weights = find_weights()
    except SettingsError as error:
        pytest.skip(f"{error.message.partition(':')[0]}; make tools-on-demand installs them and runs this")
    with run_model(weights, context=CONTEXT) as running:
        yield running


async def test_at_least_as_many_calls_are_right_on_demand(large_server: LocalModel) -> None:
    found = await right_calls(large_server.base_url)
    assert right(found[LOADS]) >= right(found[RAW])
