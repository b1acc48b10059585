"""Tests client keys, their names, and the errors of an invalid file."""

from pathlib import Path

import pytest

from gateway.core.errors import InvalidRequest, SettingsError
from gateway.dialect import KeyPlace, RequestHead
from gateway.server.access.api_keys import ANONYMOUS, ApiKeys, check_names, load_keys
from gateway.settings import ServerSettings, read_settings

BEARER = (KeyPlace(b"authorization", "Bearer"),)
# sha256 of "hidden"
HIDDEN = "sha256:e564b4081d7a9ea4b00dada53bdae70c99b87b6fce869f0c3dd4d2bfa1e53e1c"


def keys(folder: Path, text: str, environ: str = "") -> ApiKeys:
    (folder / "keys").write_text(text, encoding="utf-8")
    return load_keys(ServerSettings(api_keys_file=str(folder / "keys")), {"DRAGOMAN_API_KEYS": environ})


def asks(key: str, other: str = "", query: str = "") -> RequestHead:
    """The head of a request with a key for Bearer, another in a header of its own, and a query."""
    headers = {b"authorization": b"Bearer " + key.encode(), b"x-api-key": other.encode()}
    return RequestHead("/", query.encode(), {name: value for name, value in headers.items() if value})


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("k1", "alice"),
        ("k2", "alice"),
        ("with:colon", "bob"),
        ("hidden", "ci"),
        ("first", "env-1"),
        ("second", "env-2"),
    ],
)
def test_every_key_has_a_name(tmp_path: Path, key: str, name: str) -> None:
    text = f"# the team\n\nalice:k1\nalice: k2\nbob:with:colon\nci:{HIDDEN}\n"
    known = keys(tmp_path, text, "first, second,")
    assert known.check(asks(key), BEARER) == name
    assert known.names == {"alice", "bob", "ci", "env-1", "env-2"}


@pytest.mark.parametrize("key", ["", "k", "k11", "alice:k1", "alice", HIDDEN])
def test_no_other_key_is_let_in(tmp_path: Path, key: str) -> None:
    known = keys(tmp_path, f"alice:k1\nci:{HIDDEN}\n")
    with pytest.raises(InvalidRequest) as refused:
        known.check(asks(key), BEARER)
    assert (refused.value.status, refused.value.code) == (401, "invalid_api_key")


def test_a_key_is_read_where_the_dialect_has_it(tmp_path: Path) -> None:
    known = keys(tmp_path, "alice:k1\nbob:k2\n")
    places = (KeyPlace(b"x-api-key"), *BEARER)
    assert known.check(asks("", "k1"), places) == "alice"
    assert known.check(asks("k2", "k1"), places) == "alice"
    assert known.check(asks("k2"), places) == "bob"
    with pytest.raises(InvalidRequest, match="send it as 'X-Api-Key: KEY'") as refused:
        known.check(asks("k2"), places[:1])
    assert refused.value.headers == {}


def test_a_key_is_read_from_the_query(tmp_path: Path) -> None:
    known = keys(tmp_path, "alice:k1\nbob:k 2&\n")
    places = (KeyPlace(b"key", where="query"), *BEARER)
    assert known.check(asks("", query="alt=sse&key=k1"), places) == "alice"
    assert known.check(asks("", query="key=k%202%26"), places) == "bob"
    assert known.check(asks("k1", query="key="), places) == "alice"
    with pytest.raises(InvalidRequest, match=r"send it as '\?key=KEY'"):
        known.check(asks("k1", query="key=k3"), places)


def test_without_keys_everybody_is_nobody() -> None:
    assert load_keys(ServerSettings(), {}).check(RequestHead("/"), BEARER) == ANONYMOUS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no key was found in"),
        ("# only a remark\n", "no key was found in"),
        ("a:1\nsecret\n", "line 2: the line must have the form name:key"),
        ("a:\n", "line 1: the line must have the form name:key"),
        ("two words:secret\n", "line 1: the line must have the form name:key"),
        ("a:secret\nb:secret\n", "line 2: this key already belongs to another name"),
    ],
)
def test_a_wrong_file_is_told_by_line_without_any_key(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as wrong:
        keys(tmp_path, text)
    assert said in wrong.value.message
    assert "secret" not in wrong.value.message


def test_a_missing_file_is_told() -> None:
    with pytest.raises(SettingsError, match="none cannot be read: No such file"):
        load_keys(ServerSettings(api_keys_file="none"), {})


def test_an_entry_for_nobody_is_told(tmp_path: Path) -> None:
    known = keys(tmp_path, "alice:k1\n")
    check_names(read_settings({"keys": {"alice": {}, "*": {}}}), known)
    with pytest.raises(SettingsError, match=r"keys\.alise: .* did you mean 'alice'\?"):
        check_names(read_settings({"keys": {"alise": {}}}), known)
