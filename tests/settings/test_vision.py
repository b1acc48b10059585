"""Which model may describe pictures."""

import pytest

from gateway.commands.config_check import check
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import Settings, read_settings

CHAT: Json = {"adapter": "openai_chat", "base_url": "http://localhost:1"}
SEEING: Json = {"backend": "b", "images": "refuse"}


def read(top: dict[str, Json], **models: Json) -> Settings:
    return read_settings({"backends": {"b": CHAT, "c": CHAT}, "models": models, **top})


def test_a_model_is_described_for_by_another_one() -> None:
    told = read({"images": "describe", "vision": {"model": "seeing"}}, m={"backend": "b"}, seeing=SEEING)
    assert (told.vision.model, told.models["m"].policy.images) == ("seeing", "describe")
    assert told.models["seeing"].policy.images == "refuse"


WRONG: dict[str, tuple[dict[str, Json], dict[str, Json], str]] = {
    "no model": ({}, {"m": {"backend": "b", "images": "describe"}}, "vision.model is missing"),
    "unknown": (
        {"vision": {"model": "seing"}},
        {"m": {"backend": "b", "images": "describe"}, "seeing": SEEING},
        "there is no model 'seing'; did you mean 'seeing'?",
    ),
    "itself": ({"vision": {"model": "m"}}, {"m": {"backend": "b", "images": "describe"}}, "would ask itself"),
    "inherited": (
        {"images": "describe", "vision": {"model": "seeing"}},
        {"m": {"backend": "b"}, "seeing": {"backend": "b"}},
        "would ask itself",
    ),
    "the same one": (
        {"vision": {"model": "alias"}},
        {"m": {"backend": "b", "images": "describe"}, "alias": {"backend": "b", "name": "m"}},
        "the same model at the same backend",
    ),
    "blind": (
        {"vision": {"model": "seeing"}},
        {"m": {"backend": "b", "images": "describe"}, "seeing": {"backend": "c", "facts": {"images": False}}},
        "takes no pictures",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_model_that_cannot_describe_is_refused(wrong: str) -> None:
    top, models, said = WRONG[wrong]
    with pytest.raises(SettingsError, match=r"vision\.model") as refused:
        read(top, **models)
    assert said in refused.value.message


def checked(raw: Json) -> list[str]:
    return [found.message for found in check("settings.json", "{}", raw, {}).errors]


def test_config_check_says_so_where_the_backend_takes_no_pictures() -> None:
    text: Json = {"adapter": "text", "base_url": "http://localhost:1", "wire": "llama_cpp"}
    raw: Json = {
        "vision": {"model": "seeing"},
        "backends": {"b": CHAT, "t": text},
        "models": {"m": {"backend": "b", "images": "describe"}, "seeing": {"backend": "t"}},
    }
    assert checked(raw) == ["vision.model: the backend of 'seeing' (text) takes no pictures"]


def test_config_check_says_so_where_pypdf_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    raw: Json = {"backends": {"b": CHAT}, "models": {"m": {"backend": "b", "documents": "text"}}}
    assert checked(raw) == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (said,) = checked(raw)
    assert said.startswith("models.m.documents is text") and 'pip install "dragoman[documents]"' in said
