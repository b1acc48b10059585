import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.recording.redact.secrets import is_secret_field, without_secrets
from tests.recording.redact.canaries import CANARIES, core_of


@pytest.mark.parametrize("kind", CANARIES)
def test_a_secret_of_every_shape_is_redacted(kind: str) -> None:
    canary = CANARIES[kind]
    text = f"before {canary} behind"
    clean = without_secrets(text)
    assert core_of(canary) not in clean
    assert len(clean) == len(text) and clean.startswith("before ") and clean.endswith(" behind")
    assert without_secrets(clean) == clean


@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_secret_at_the_begin_of_a_line_is_found_in_json_in_json(kind: str, depth: int) -> None:
    text = f"first\n{CANARIES[kind]}\nlast"
    for _ in range(depth):
        text = json.dumps({"file": text})
    clean = without_secrets(text)
    assert core_of(CANARIES[kind]) not in clean and len(clean) == len(text)


@given(st.sampled_from([*CANARIES.values()]), st.text(max_size=30), st.text(max_size=30))
def test_a_secret_is_found_in_any_text(canary: str, before: str, behind: str) -> None:
    text = f"{before} {canary} {behind}"
    clean = without_secrets(text)
    assert core_of(canary) not in clean and len(clean) == len(text)
    assert clean.count("\n") == text.count("\n")


@given(st.text("ske-yJantb[]:*AIza0123456789.=@/ ", max_size=60))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    assert without_secrets(without_secrets(text)) == without_secrets(text)


def test_a_placeholder_names_the_kind_and_the_length() -> None:
    assert without_secrets("sk-" + "a" * 48) == "[key:openai:51]".ljust(51, "*")


def test_configured_secrets_are_found_whatever_they_look_like() -> None:
    assert without_secrets("it is hunter22, yes", ["hunter22"]) == "it is ********, yes"
    assert without_secrets("a b", ["b"]) == "a b"


@pytest.mark.parametrize("text", ["a risk-free task-oriented desk-top", "the token of a word", "sk-8", "eyJ", "1:2@3"])
def test_ordinary_text_stays(text: str) -> None:
    assert without_secrets(text) == text


@pytest.mark.parametrize("name", ["api_key", "x-api-key", "Authorization", "client_secret", "db_password", "apiKey"])
def test_a_field_with_the_name_of_a_secret_holds_one(name: str) -> None:
    assert is_secret_field(name)


@pytest.mark.parametrize("name", ["token", "tokens", "max_tokens", "key", "keys", "content", "secretary"])
def test_any_other_field_does_not(name: str) -> None:
    assert not is_secret_field(name)


@pytest.mark.parametrize("kind", CANARIES)
def test_a_secret_alone_is_found(kind: str) -> None:
    """Nothing around it leads to it."""
    assert core_of(CANARIES[kind]) not in without_secrets(CANARIES[kind])


def test_letters_that_only_fold_to_others_lead_to_a_secret_too() -> None:
    assert "abcdefghijklmnopqrst" not in without_secrets("baſic abcdefghijklmnopqrst")


def test_the_first_secret_of_several_that_overlap_wins() -> None:
    openai, github = CANARIES["openai"], CANARIES["github"]
    assert (
        without_secrets(f"https://user:{openai}@host")
        == "https://" + f"[key:url:{len(openai) + 5}]".ljust(len(openai) + 5, "*") + "@host"
    )
    both = without_secrets(f"{github} {openai}")
    assert both.startswith("[key:github:") and "[key:openai:" in both


def test_a_quoted_value_ends_at_its_quote() -> None:
    """With a second look for each backslash this test would not end."""
    value = "ab" + "\\" * 500_000 + "c"
    assert (
        without_secrets(f'password="{value}"')
        == 'password="' + f"[key:value:{len(value)}]".ljust(len(value), "*") + '"'
    )
