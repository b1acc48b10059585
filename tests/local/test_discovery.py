"""A real model server is recognised by its answers, and the first settings file lets a gateway ask it."""

import pytest

from gateway.discovery.identify import identify
from gateway.discovery.new_settings import new_settings, server_backend
from gateway.local import LocalModel
from gateway.settings import parse_settings

pytestmark = pytest.mark.local


async def test_a_real_llama_cpp_is_recognised_and_its_model_gets_a_short_name(model_server: LocalModel) -> None:
    server = await identify(model_server.base_url, answer_s=20)
    assert server is not None and server.kind is not None
    assert (server.kind.name, server.locked, len(server.models)) == ("llama-cpp", False, 1)
    backend = server_backend(server)
    assert backend is not None
    models = parse_settings(new_settings([backend], 8000)).models
    assert {name: entry.name for name, entry in models.items()} == {
        "SmolLM2-135M-Instruct.Q4_1": server.models[0],
        "*": None,
    }
