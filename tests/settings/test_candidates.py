"""Which models may answer in the place of one."""

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import Candidate, ModelSettings, read_settings

CHAT: Json = {"adapter": "openai_chat", "base_url": "http://localhost:1"}


def read(**entry: Json) -> ModelSettings:
    models: Json = {
        "m": {"backend": "b", **entry},
        "n": {"backend": "b", "context_length": 1000},
        "o-*": {"backend": "b"},
    }
    return read_settings({"backends": {"b": CHAT}, "models": models}).models["m"]


def test_a_candidate_is_a_name_or_an_object() -> None:
    assert read(candidates=["n"]).candidates == (Candidate("n"),)
    assert read(candidates=[{"model": "n", "weight": 0.5}]).candidates == (Candidate("n", 0.5),)
    assert read(longer="n", context_length=10).longer == "n"
    assert (read().candidates, read().longer) == ((), None)


WRONG: dict[str, tuple[dict[str, Json], str]] = {
    "no list": ({"candidates": "n"}, "models.m.candidates must be a list of names of other models"),
    "itself": ({"candidates": ["m"]}, "models.m.candidates[0]: 'm' is the model itself; name another one"),
    "unknown": ({"candidates": ["nn"]}, "models.m.candidates[0]: there is no model 'nn'"),
    "a pattern": ({"candidates": ["o-*"]}, "models.m.candidates[0]: 'o-*' is a pattern; name one model"),
    "a name of a pattern": ({"candidates": ["o-1"]}, "models.m.candidates[0]: there is no model 'o-1'"),
    "twice": ({"candidates": ["n", {"model": "n"}]}, "models.m.candidates[1]: 'n' stands there twice"),
    "no weight": ({"candidates": [{"model": "n", "weight": 0}]}, "models.m.candidates[0].weight must be"),
    "another key": ({"candidates": [{"model": "n", "wieght": 1}]}, "wieght"),
    "a number": ({"candidates": [1]}, "models.m.candidates[0]"),
    "longer itself": ({"longer": "m"}, "models.m.longer: 'm' is the model itself"),
    "longer than known": ({"longer": "x"}, "models.m.longer: there is no model 'x'"),
    "longer a number": ({"longer": 3}, "models.m.longer must name another model"),
    "not longer": ({"longer": "n", "context_length": 1000}, "the context_length of 'n' is not longer"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_other_model_is_refused(wrong: str) -> None:
    entry, said = WRONG[wrong]
    with pytest.raises(SettingsError) as refused:
        read(**entry)
    assert said in refused.value.message
