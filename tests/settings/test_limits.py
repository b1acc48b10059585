"""Tests the limits of a model: its own, those of its backend, and, except for native backends, the top level's."""

import itertools
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Json, JsonObject
from gateway.core.errors import SettingsError
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.diagnostics.explain_request import explain_request, plan
from gateway.server.upstream.backends import Backends
from gateway.settings import read_settings

BACKENDS: Final[dict[str, JsonObject]] = {
    "native": {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "http://host"},
    "text": {"adapter": "adapters.text.backend:TextAdapter", "base_url": "http://host"},
    "flat": {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": "http://host"},
    "structured": {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": "http://host", "encoding": "structured"},
}
LIMITS: Final = ("max_tool_results", "max_history_messages")
SET: Final = st.fixed_dictionaries({}, optional=dict.fromkeys(LIMITS, st.none() | st.integers(0, 60)))


def settings_of(backend: str, top: Any, below: Any, own: Any) -> dict[str, Json]:
    return {
        **top,
        "backends": {"b": {**BACKENDS[backend], **below}},
        "models": {"m": {"backend": "b", **own}, "*": {"backend": "b", **own}},
    }


def policy_of(settings: dict[str, Json], model: str = "m") -> Policy:
    return Backends(read_settings(settings)).route(model)[0].policy


def rounds(count: int) -> list[JsonObject]:
    """A question, and so many calls with their results."""
    messages: list[JsonObject] = [{"role": "user", "content": "Read them all."}]
    for number in range(count):
        call: Json = {"id": f"c{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": f"the body of number {number}"})
    return messages


def limited(notices: tuple[Notice, ...]) -> list[str]:
    return [notice.detail for notice in notices if notice.detail.startswith("Limiting ")]


@given(st.sampled_from(sorted(BACKENDS)), SET, SET, SET)
def test_the_nearest_entry_decides_and_the_top_level_leaves_native_backends_alone(
    backend: str, top: Any, below: Any, own: Any
) -> None:
    settings = settings_of(backend, top, below, own)
    for name in LIMITS:
        inherited = None if backend == "native" else {**msgspec.structs.asdict(Policy()), **top}[name]
        wanted = {**{name: inherited}, **below, **own}[name]
        assert getattr(policy_of(settings), name) == wanted
        assert getattr(policy_of(settings, "any other"), name) == wanted


def test_an_agents_loop_on_a_native_backend_is_sent_whole_by_default() -> None:
    told = plan(rounds(40), settings_of("native", {}, {}, {}), model="m")
    assert limited(told.diagnostics) == []
    assert told.encoded is not None
    assert [f"the body of number {number}" in str(told.encoded.decoded) for number in range(40)] == [True] * 40


@pytest.mark.parametrize("backend", ["text", "flat", "structured"])
def test_the_same_loop_is_limited_where_all_of_it_would_be_one_text(backend: str) -> None:
    told = plan(rounds(40), settings_of(backend, {}, {}, {}), model="m")
    assert limited(told.diagnostics)[0] == "Limiting tool results from 40 to 10"


@pytest.mark.parametrize("place", ["backend", "model"])
def test_a_native_backend_is_limited_where_an_entry_says_so(place: str) -> None:
    limit: JsonObject = {"max_tool_results": 4}
    settings = settings_of("native", {}, *((limit, {}) if place == "backend" else ({}, limit)))
    settings["trim_step"] = 1
    assert limited(plan(rounds(10), settings, model="m").diagnostics) == ["Limiting tool results from 10 to 4"]


def test_a_native_backend_is_explained_with_the_limits_that_the_question_names() -> None:
    settings = read_settings(settings_of("native", {}, {}, {}))
    asked = {"model": "m", "messages": rounds(10), "settings": {"max_tool_results": 4, "trim_step": 1}}
    told = explain_request(msgspec.json.encode(asked), settings, Backends(settings).adapters)
    assert limited(told.diagnostics) == ["Limiting tool results from 10 to 4"]


def test_the_alias_is_read_in_a_backend_entry_too() -> None:
    assert policy_of(settings_of("native", {}, {"max_history": 7}, {})).max_history_messages == 7


@pytest.mark.parametrize(
    ("below", "said"),
    [
        ({"max_tool_results": -1}, "backends.b.max_tool_results must be a whole number of 0 or more; it is -1"),
        ({"max_tool_results": 2.0}, "backends.b.max_tool_results must be a whole number; it is 2.0"),
        ({"max_history": 1, "max_history_messages": 2}, "backends.b.max_history_messages is set twice"),
        ({"max_tool_results": "2"}, "backends.b.max_tool_results"),
    ],
)
def test_a_limit_of_a_backend_is_checked(below: Any, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings(settings_of("native", {}, below, {}))
    assert said in caught.value.message


def test_a_step_of_ten_keeps_the_beginning_for_several_turns() -> None:
    kept = []
    for count in range(60, 80):
        told = plan(rounds(count), settings_of("flat", {}, {}, {}), model="m")
        kept.append(told.indexes.trimmed[1])
    changes = sum(before != after for before, after in itertools.pairwise(kept))
    assert len(kept) == 20 and changes <= 5


def test_the_limits_of_each_model_are_told_in_one_line() -> None:
    settings: dict[str, Json] = {
        "backends": {name: dict(entry) for name, entry in BACKENDS.items()},
        "models": {
            "a": {"backend": "flat"},
            "b": {"backend": "native"},
            "c": {"backend": "text"},
            "d": {"backend": "native", "max_history_messages": 8, "trim_step": 4},
            "*": {"backend": "native", "max_tool_result_chars": 900},
        },
    }
    assert Backends(read_settings(settings)).limits == (
        "a, c: max_tool_results=10 max_history_messages=50 trim_step=10; b: none; "
        "d: max_history_messages=8 trim_step=4; *: max_tool_result_chars=900"
    )
