import pytest

from adapters.warp import multi_agent_pb2 as pb
from tests.adapters.warp.backend.sent import conversation, sent, user


def test_what_needs_the_wires_own_client_is_off() -> None:
    settings = sent(conversation(user("hi"))).settings
    written = {field.name for field, _ in settings.ListFields()}
    assert written == {
        "model_config",
        "supports_parallel_tool_calls",
        "supported_tools",
        "supports_reasoning_message",
    }


@pytest.mark.parametrize("reasoning", [True, False])
def test_reasoning_is_asked_for_as_the_options_say(reasoning: bool) -> None:
    assert sent(conversation(user("hi")), reasoning=reasoning).settings.supports_reasoning_message is reasoning


def test_the_model_is_the_one_of_the_route() -> None:
    assert sent(conversation(user("hi"))).settings.model_config == pb.Settings.ModelConfig(base="auto")
