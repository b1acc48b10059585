"""The scenarios of public services with the messages that a provider itself publishes.

The server reads and writes the classes of the provider's own package; nothing here uses the schema of the preset.
"""

from typing import Final

import pytest

from gateway.testing.dialect_case import DialectCase
from tests.adapters.openai_chat.client.test_conformance import CASE as CHAT
from tests.adapters.proto.public_services.playing import KEY_VARIABLE, pass_scenario, possible
from tests.adapters.proto.public_services.scenarios import SCENARIOS
from tests.adapters.proto.public_services.service import KEY, running_service
from tests.adapters.proto.public_services.yandex import YANDEX
from tests.grpc_servers.installed import needs
from tests.grpc_servers.published import PUBLISHED, Published

pytestmark = [pytest.mark.grpc, needs("schemas")]
CLIENT: Final[DialectCase] = CHAT
PLAYED: Final = [name for name, scenario in SCENARIOS.items() if possible(YANDEX, CLIENT, scenario)]


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", PLAYED)
async def test_a_scenario_passes_with_the_published_messages(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    published = PUBLISHED[YANDEX.name]
    assert isinstance(published, Published)
    with running_service(YANDEX, *published.messages()) as backend:
        await pass_scenario(YANDEX, backend, CLIENT, SCENARIOS[name], stream=stream)
