"""Tests how the opaque state of a provider stands in `extra`."""

import pytest

from gateway.core.conversation import JsonObject
from gateway.core.provider_state import provider_state, with_provider_state


def test_a_state_is_read_by_its_own_provider_alone() -> None:
    extra = with_provider_state("anthropic", {"signature": "s"})
    assert provider_state(extra, "anthropic") == {"signature": "s"}
    assert provider_state(extra, "google") == {}


@pytest.mark.parametrize(
    "extra", [{}, {"extra_content": None}, {"extra_content": []}, {"extra_content": {"google": 1}}]
)
def test_any_other_value_is_no_state(extra: JsonObject) -> None:
    assert provider_state(extra, "google") == {}
