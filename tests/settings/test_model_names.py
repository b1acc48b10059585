import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import read_settings
from gateway.settings.model_names import ModelNames

BACKENDS: Json = {"b": {"adapter": "a:B", "base_url": "http://x"}}


@pytest.mark.parametrize(
    ("names", "asked", "known"),
    [
        (("m",), "m", "m"),
        (("m",), "m:latest", "m"),
        (("m",), "m:7b", "m:7b"),
        (("m",), "other:latest", "other:latest"),
        (("m", "m:latest"), "m:latest", "m:latest"),
        (("*",), "m:latest", "m"),
        (("m*",), "mistral:latest", "mistral"),
        (("m:*",), "m:latest", "m:latest"),
    ],
)
def test_the_tag_latest_is_that_of_a_name_without_one(names: tuple[str, ...], asked: str, known: str) -> None:
    assert ModelNames(dict.fromkeys(names, 1)).known_name(asked) == known


def test_the_route_of_a_name_with_the_tag_is_that_of_the_name() -> None:
    settings = read_settings({"backends": BACKENDS, "models": {"m": {"backend": "b", "name": "inner"}}})
    assert settings.route("m:latest") == settings.route("m") != settings.route("m:7b")


def test_a_model_may_have_a_context_length() -> None:
    models: Json = {"m": {"backend": "b", "context_length": 8192}, "n": {"backend": "b"}}
    settings = read_settings({"backends": BACKENDS, "models": models})
    assert [entry.context_length for entry in settings.models.values()] == [8192, None]


@pytest.mark.parametrize("length", [0, -1, 1.5, True, "8k"])
def test_a_context_length_is_a_positive_whole_number(length: Json) -> None:
    models: Json = {"m": {"backend": "b", "context_length": length}}
    with pytest.raises(SettingsError, match=r"models\.m\.context_length must be a whole number of 1 or more"):
        read_settings({"backends": BACKENDS, "models": models})


@pytest.mark.parametrize(
    ("names", "asked", "known"),
    [
        (("m",), "claude-dragoman-m", "m"),
        (("m",), "claude-dragoman-m:latest", "m"),
        (("m:latest",), "claude-dragoman-m:latest", "m:latest"),
        (("m", "claude-dragoman-m"), "claude-dragoman-m", "claude-dragoman-m"),
        (("m",), "claude-dragoman-x", "claude-dragoman-x"),
        (("claude-*",), "claude-dragoman-m", "claude-dragoman-m"),
        (("claude-*", "m"), "claude-dragoman-m", "m"),
        (("*",), "claude-dragoman-m", "m"),
        (("m*",), "claude-dragoman-mistral", "mistral"),
    ],
)
def test_an_id_for_claude_code_is_that_of_the_name_behind_it(names: tuple[str, ...], asked: str, known: str) -> None:
    assert ModelNames(dict.fromkeys(names, 1)).known_name(asked) == known
