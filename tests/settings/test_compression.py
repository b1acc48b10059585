"""Tests the settings of compression: what a model inherits, what is refused, and what becomes of the limits."""

from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import read_settings
from gateway.settings.compression import cut_before_summary

BACKENDS: Final[dict[str, Json]] = {"b": {"adapter": "a:B", "base_url": "http://h"}}


def settings(compress: Json, model: dict[str, Json], **top: Json) -> dict[str, Json]:
    return {**top, "backends": BACKENDS, "compress": compress, "models": {"m": {"backend": "b", **model}}}


def test_a_model_changes_single_keys_of_the_general_settings() -> None:
    raw = settings({"trigger": 0.8, "sightings": 1}, {"context_length": 1000, "compress": {"enabled": True}})
    entry = read_settings(raw).models["m"]
    assert (entry.compress.enabled, entry.compress.trigger, entry.compress.sightings) == (True, 0.8, 1)
    assert not read_settings(raw).compress.enabled


@pytest.mark.parametrize(
    ("compress", "model", "told"),
    [
        ({"enabled": True}, {}, "models.m.context_length is missing: compress is enabled for this model"),
        ({}, {"compress": {"enabled": True}}, "models.m.context_length is missing: compress is enabled for this model"),
        (
            {"enabled": True, "model": "n"},
            {"context_length": 1000},
            "compress.model: there is no model 'n'; there are 'm'",
        ),
        ({"trigger": 0.2}, {}, "compress: tail, target and trigger must grow in this order; they are 0.15, 0.3, 0.2"),
        ({"trigger": 1}, {}, "compress.trigger must be a number less than 1; it is 1"),
        ({"least_gain": 0}, {}, "compress.least_gain must be a number greater than 0; it is 0"),
        ({}, {"compress": {"max_running": 3}}, "unknown setting 'models.m.compress.max_running'"),
        ({}, {"compress": True}, "models.m.compress must be an object"),
    ],
)
def test_what_cannot_work_is_refused_with_its_place(compress: Json, model: dict[str, Json], told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings(settings(compress, model))
    assert raised.value.message.startswith(told)


def test_the_window_of_the_model_that_writes_summaries_must_be_known_too() -> None:
    raw = settings({"enabled": True, "model": "small"}, {"context_length": 1000})
    models = raw["models"]
    assert isinstance(models, dict)
    models["small"] = {"backend": "b", "compress": {"enabled": False}}
    with pytest.raises(SettingsError, match=r"models\.small\.context_length is missing: compress\.model of 'm' names"):
        read_settings(raw)
    models["small"] = {"backend": "b", "context_length": 500, "compress": {"enabled": False}}
    assert read_settings(raw).models["m"].compress.model == "small"


def test_a_limit_that_nobody_sets_cuts_no_history_that_is_summarised() -> None:
    enabled: Json = {"enabled": True}
    policy = read_settings(settings(enabled, {"context_length": 1000})).models["m"].policy
    assert (policy.max_history_messages, policy.max_tool_results) == (None, None)
    policy = read_settings(settings({}, {})).models["m"].policy
    assert (policy.max_history_messages, policy.max_tool_results) == (50, 10)


def test_a_limit_that_is_set_stays_and_is_told() -> None:
    enabled: Json = {"enabled": True}
    models = read_settings(settings(enabled, {"context_length": 1000}, max_history=40)).models
    assert list(cut_before_summary(models)) == [
        "models.m: max_history_messages is 40, which removes turns before a summary holds them"
    ]
    assert not list(cut_before_summary(read_settings(settings({}, {"max_tool_results": 3})).models))
