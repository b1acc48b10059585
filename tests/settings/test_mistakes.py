"""Tests errors in settings.json at any depth: the key's path, the nearest known key, the allowed values."""

import json
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
import pytest

from adapters.openai_chat.backend import OpenAIChatOptions
from adapters.text.backend import TextOptions
from adapters.text.backend.wire import Wire
from adapters.warp.backend.options import WarpOptions
from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.core.policy import Policy
from gateway.providers.profile import Profile
from gateway.server.upstream.backends import Backends
from gateway.settings import (
    BackendSettings,
    CompressSettings,
    KeySettings,
    LimitSettings,
    LogSettings,
    ServerSettings,
    StateSettings,
    TracingSettings,
    parse_settings,
)

URL: Final[dict[str, Json]] = {"base_url": "http://host"}
NATIVE: Final[dict[str, Json]] = {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", **URL}
TEXT: Final[dict[str, Json]] = {"adapter": "adapters.text.backend:TextAdapter", **URL}
WARP: Final[dict[str, Json]] = {"adapter": "adapters.warp.backend:WarpAdapter", **URL}
WIRE: Final[dict[str, Json]] = {"base": "plain"}

# Every struct of the file, where it stands, and what a sound entry needs around it.
PLACES: Final[dict[str, tuple[type[msgspec.Struct], dict[str, Json]]]] = {
    "": (Policy, {}),
    "server": (ServerSettings, {}),
    "limits": (LimitSettings, {}),
    "log": (LogSettings, {}),
    "tracing": (TracingSettings, {}),
    "state": (StateSettings, {}),
    "compress": (CompressSettings, {}),
    "keys.k": (KeySettings, {}),
    "profiles.p": (Profile, {}),
    "backends.b": (BackendSettings, {"backends": {"b": NATIVE}}),
    "models.m": (Policy, {"backends": {"b": NATIVE}, "models": {"m": {"backend": "b"}}}),
    "backends.n": (OpenAIChatOptions, {"backends": {"n": NATIVE}}),
    "backends.t": (TextOptions, {"backends": {"t": TEXT}}),
    "backends.t.wire": (Wire, {"backends": {"t": {**TEXT, "wire": WIRE}}}),
    "backends.w": (WarpOptions, {"backends": {"w": WARP}}),
}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{\n"trim_step": 0}', "line 2: trim_step must be a whole number of 1 or more; it is 0"),
        (
            '{"backends": {"b": {"adapter": "a:B", "base_url": "http://h"}},\n'
            '"models": {"m": {"backend": "b", "trim_step": 0}}}',
            "line 2: models.m: trim_step must be a whole number of 1 or more; it is 0",
        ),
    ],
)
def test_a_value_that_leads_nowhere_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        parse_settings(text)
    assert raised.value.message == told


# The adapter's own keys, and what is chosen by its name.
ELSEWHERE: Final = ((BackendSettings, "options"), (Policy, "profile"))


def below(kind: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every annotation in a type, with the path at which a value of it would stand."""
    yield path, kind
    parts = get_args(kind)
    match get_origin(kind):
        case origin if origin in (Union, UnionType):
            for part in parts:
                yield from below(part, path)
        case origin if origin is Annotated:
            yield from below(parts[0], path)
        case origin if origin is Mapping:
            yield from below(parts[1], f"{path}.any")
        case _ if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            for field in msgspec.structs.fields(kind):
                if (kind, field.name) not in ELSEWHERE:
                    yield from below(field.type, f"{path}.{field.name}" if path else field.name)
        case _:
            pass


EVERY: Final = [(place, path, kind) for place, (top, _) in PLACES.items() for path, kind in below(top, place)]
STRUCTS: Final = [row for row in EVERY if isinstance(row[2], type) and issubclass(row[2], msgspec.Struct)]
WORDS: Final = [row for row in EVERY if get_origin(row[2]) is Literal]


def settings_with(place: str, path: str, value: Json) -> str:
    """Sound settings but for one value, one key a line."""
    settings: dict[str, Any] = json.loads(json.dumps(PLACES[place][1]))
    entry = settings
    *above, last = path.split(".")
    for name in above:
        entry = entry.setdefault(name, {})
    entry[last] = value
    return json.dumps(settings, indent=1)


def mistake(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        Backends(parse_settings(text))
    return caught.value.message


@pytest.mark.parametrize(("place", "path", "kind"), STRUCTS, ids=[path or "top" for _, path, _ in STRUCTS])
def test_a_misspelt_key_of_any_object_is_told_with_the_one_that_is_meant(place: str, path: str, kind: Any) -> None:
    meant = max(kind.__struct_fields__, key=len)
    misspelt = f"{path}.{meant[:-1]}".lstrip(".")
    said = mistake(settings_with(place, misspelt, 1))
    assert f"unknown setting '{misspelt}'; did you mean '{meant}'?" in said


@pytest.mark.parametrize(("place", "path", "kind"), STRUCTS, ids=[path or "top" for _, path, _ in STRUCTS])
def test_a_key_like_no_other_is_told_with_those_that_there_are(place: str, path: str, kind: Any) -> None:
    strange = f"{path}.{'x' * 40}".lstrip(".")
    said = mistake(settings_with(place, strange, 1))
    assert f"unknown setting '{strange}'; there are " in said
    assert [
        name
        for name in kind.__struct_fields__[:10]
        if f"'{name}'" not in said and name not in ("options", "policy", "wire")
    ] == []


@pytest.mark.parametrize(("place", "path", "kind"), WORDS, ids=[path for _, path, _ in WORDS])
@pytest.mark.parametrize("value", ["nonsense", 7])
def test_a_wrong_word_is_told_with_those_that_are_allowed(place: str, path: str, kind: Any, value: Json) -> None:
    said = mistake(settings_with(place, path, value))
    assert f"{path} must be one of {', '.join(map(repr, get_args(kind)))}; it is {value!r}" in said


def test_the_objects_and_words_that_are_tried_are_many() -> None:
    assert len(STRUCTS) > 25 and len(WORDS) > 25
    assert {"backends.t.wire.usage", "wrapper_tools.any", "profiles.p.call_id"} <= {path for _, path, _ in STRUCTS}
    assert {"backends.t.wire.framing", "backends.t.wire.reasons.any", "log.level"} <= {path for _, path, _ in WORDS}
