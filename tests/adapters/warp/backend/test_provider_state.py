import pytest

from adapters.warp.backend.provider_state import NOTHING, ProviderState, read_provider_state, write_provider_state
from gateway.core.conversation import JsonObject


def test_what_is_carried_comes_back() -> None:
    opaque = ProviderState(conversation_id="c", server_message_data="ä\n")
    assert read_provider_state(write_provider_state(opaque)) == opaque


def test_nothing_to_carry_adds_nothing() -> None:
    assert write_provider_state(NOTHING) == {}


@pytest.mark.parametrize(
    "extra",
    [
        {},
        {"extra_content": None},
        {"extra_content": {"warp": "c1"}},
        {"extra_content": {"google": {"thought_signature": "x"}}},
        {"extra_content": {"warp": {"conversation_id": 7, "unknown": "x"}}},
    ],
)
def test_what_cannot_be_read_counts_as_absent(extra: JsonObject) -> None:
    assert read_provider_state(extra) == NOTHING


def test_the_rest_is_read_when_one_field_cannot_be() -> None:
    extra: JsonObject = {"extra_content": {"warp": {"conversation_id": 7, "task_id": "t"}}}
    assert read_provider_state(extra) == ProviderState(task_id="t")
