import base64
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.secrets import is_secret_field, without_secrets
from tests.recording.redact.canaries import CANARIES, core_of
from tests.tiers import sample


@pytest.mark.parametrize("kind", CANARIES)
def test_a_secret_of_every_shape_is_redacted(kind: str) -> None:
    canary = CANARIES[kind]
    text = f"before {canary} behind"
    clean = without_secrets(text)
    assert core_of(canary) not in clean
    assert len(clean) == len(text) and clean.startswith("before ") and clean.endswith(" behind")
    assert without_secrets(clean) == clean


@sample()
@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_secret_at_the_begin_of_a_line_is_found_in_json_in_json(kind: str, depth: int) -> None:
    text = f"first\n{CANARIES[kind]}\nlast"
    for _ in range(depth):
        text = json.dumps({"file": text})
    clean = without_secrets(text)
    assert core_of(CANARIES[kind]) not in clean and len(clean) == len(text)


def percent_encoded(text: str) -> str:
    return "".join(char if char.isalpha() else f"%{ord(char):02X}" for char in text)


@sample()
@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("written", [quote, percent_encoded, lambda text: quote(percent_encoded(text))])
def test_a_percent_encoded_secret_is_found(kind: str, written: Callable[[str], str]) -> None:
    text = f"https://example.org/{written(f'a {CANARIES[kind]}')}"
    clean = without_secrets(text)
    assert core_of(CANARIES[kind]) in unquote(unquote(text)) and len(clean) == len(text)
    assert core_of(CANARIES[kind]) not in unquote(unquote(clean)) and without_secrets(clean) == clean


@sample()
@pytest.mark.parametrize("kind", CANARIES)
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "a", "user:", '{"é": "'])
def test_a_secret_in_base64_is_found(kind: str, encode: Callable[[bytes], bytes], before: str) -> None:
    encoded = encode(f"{before} {CANARIES[kind]} behind".encode()).decode().rstrip("=")
    assert (
        without_secrets(f"data: {encoded}.")
        == "data: " + f"[key:encoded:{len(encoded)}]".ljust(len(encoded), "*") + "."
    )


@pytest.mark.parametrize("piece", ["\\u005c", "%25"])
def test_a_text_that_is_escaped_very_often_is_searched_in_bounded_time(piece: str) -> None:
    """One look for each level would exceed the stack, and need a second for each character."""
    deep = piece + piece[1:] * 20_000 + " " + CANARIES["openai"]
    assert core_of(CANARIES["openai"]) not in without_secrets(deep)


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
    assert without_secrets("hunter22 hunter22", ["hunter22"]) == "******** ********"


@pytest.mark.parametrize(
    "secret", ["canary-7", "canary-78", "canary-789", 'can"ary\\/of:Москва', "canäry-7", "a %41 canary"]
)
@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
def test_a_configured_secret_is_found_however_it_is_written(secret: str, before: str) -> None:
    text = f"{before}{secret}"
    data, alone = f"{text} and more behind {before}".encode(), secret.encode()
    in_url = quote(secret, safe="")
    written = [
        *(encode(data).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)),
        *(encode(alone).decode() for encode in (base64.b64encode, base64.urlsafe_b64encode)),
        base64.b64encode(text.encode() + b" behind it").decode().rstrip("="),
        *(json.dumps(text, ensure_ascii=ascii) for ascii in (True, False)),
        json.dumps(json.dumps({"said": json.dumps(text)})),
        *(in_url, in_url.lower(), quote(secret), quote_plus(secret), quote(json.dumps(text))),
    ]
    for form in written:
        clean = without_secrets(f"({form})", [secret])
        assert len(clean) == len(form) + 2 and "ary" not in unquote(clean), form
        bare = form.rstrip("=")
        assert bare not in clean, form


def test_a_secret_in_base64_is_found_where_its_end_is_cut() -> None:
    for behind in range(4):
        encoded = base64.b64encode(f"the configured-canary{'!' * behind}".encode()).decode()
        for cut in range(3):
            assert encoded[:24] not in without_secrets(f"x {encoded[: len(encoded) - cut]}", ["configured-can"])


def test_a_configured_secret_that_is_the_beginning_of_another_leaves_nothing_of_it() -> None:
    key = CANARIES["openai"]
    hidden = f"[key:configured:{len(key)}]".ljust(len(key), "*")
    assert without_secrets(f"a {key}.", [key[:12]]) == f"a {hidden}."


@pytest.mark.parametrize(
    "text",
    [
        "a risk-free task-oriented desk-top",
        "the token of a word",
        "sk-8",
        "eyJ",
        "1:2@3",
        "a token: the smallest_unit_of_a_text",
        "bearer authentication, a bearer token",
        "docker run -u 1000:1000 a-hawk-like-thing",
        "?key=short&token=none 100%25 of %20 spaces",
        "authorization: required",
        "call_0123456789abcdefghijkl toolu_01A09q90qw90lq917835lq9",
        "git clone ssh://git@example.org/a.git",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    ],
)
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


@pytest.mark.parametrize("quote", ['"', "'", '\\"'])
def test_a_quoted_value_whose_end_is_cut_off_is_redacted_up_to_there(quote: str) -> None:
    text = f"password = {quote}correct horse battery"
    redacted = without_secrets(text)
    assert "horse" not in redacted and len(redacted) == len(text)
    assert without_secrets(redacted) == redacted
