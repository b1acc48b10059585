"""Tests how the opaque state of a provider stands in `extra`."""

import base64
from typing import Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import JsonObject
from gateway.core.provider_state import label_of, provider_state, state_label, with_provider_state, with_states
from gateway.settings import BackendSettings


def test_a_state_is_read_by_its_own_provider_alone() -> None:
    extra = with_provider_state("anthropic", {"signature": "s"})
    assert provider_state(extra, "anthropic") == {"signature": "s"}
    assert provider_state(extra, "google") == {}


@pytest.mark.parametrize(
    "extra", [{}, {"extra_content": None}, {"extra_content": []}, {"extra_content": {"google": 1}}]
)
def test_any_other_value_is_no_state(extra: JsonObject) -> None:
    assert provider_state(extra, "google") == {}


LABEL: Final = state_label("anthropic_messages", "api.example", "KEY")
# Bytes in base64 of both alphabets, with padding and without, and any other text.
STATES: Final = st.binary(min_size=1).flatmap(
    lambda data: st.sampled_from(
        [
            base64.b64encode(data).decode(),
            base64.urlsafe_b64encode(data).decode(),
            base64.urlsafe_b64encode(data).decode().rstrip("="),
        ]
    )
) | st.text(min_size=1)


@given(STATES)
def test_a_label_is_read_from_any_state_and_from_no_state_without_one(state: str) -> None:
    assert label_of(LABEL + state) == LABEL
    assert (LABEL + state)[len(LABEL) :] == state
    assert label_of(state) == ""


@given(st.binary(min_size=1))
def test_a_label_stays_when_base64_is_decoded_and_encoded_again(data: bytes) -> None:
    """In each alphabet: bytes of the JSON form of protobuf messages may come in either, and leave in one."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        labelled = LABEL.encode() + encode(data)
        for decode, encode_again in (
            (base64.b64decode, base64.b64encode),
            (base64.urlsafe_b64decode, base64.urlsafe_b64encode),
        ):
            back = encode_again(decode(labelled.translate(_ALPHABETS[decode])))
            assert label_of(back.decode()) == LABEL
            assert decode(back[len(LABEL) :]) == data


_ALPHABETS: Final = {
    base64.b64decode: bytes.maketrans(b"-_", b"+/"),
    base64.urlsafe_b64decode: bytes.maketrans(b"+/", b"-_"),
}


@pytest.mark.parametrize(
    "other",
    [
        state_label("openai_responses", "api.example", "KEY"),
        state_label("anthropic_messages", "api.example:8080", "KEY"),
        state_label("anthropic_messages", "api.example", "OTHER_KEY"),
        state_label("anthropic_messages", "api.example", ""),
    ],
)
def test_adapter_host_and_credential_make_a_label(other: str) -> None:
    assert other != LABEL
    assert state_label("anthropic_messages", "API.example", "KEY") == LABEL


def test_entries_of_one_account_share_a_label() -> None:
    one = BackendSettings("openai_chat", "https://api.example/v1", api_key_env="KEY", profile="openai")
    assert one.state_label == BackendSettings("openai_chat", "https://api.example/v2", api_key_env="KEY").state_label
    assert one.state_label != BackendSettings("openai_chat", "https://api.example/v1").state_label
    assert one.state_label != BackendSettings("openai_chat", "demo:chat", api_key_env="KEY").state_label


# Objects of each wire with state, and the paths of their states.
OBJECTS: Final[tuple[JsonObject, ...]] = (
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "redacted_thinking", "data": "s"},
    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "s"},
    {"type": "compaction", "encrypted_content": "s"},
    {"text": "hm", "thought": True, "thoughtSignature": "s"},
    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"},
    {"id": "k", "extra_content": {"google": {"thought_signature": "s", "other": 1}}},
)


@pytest.mark.parametrize("value", OBJECTS)
def test_each_state_of_an_object_is_changed_and_nothing_else(value: JsonObject) -> None:
    written = msgspec.json.encode(value)
    changed = msgspec.json.encode(with_states(value, lambda state: f"{state}!"))
    assert changed == written.replace(b'"s"', b'"s!"')
    assert with_states(value, lambda state: state) is value
    left = msgspec.json.encode(with_states(value, lambda state: None))
    assert b'"s"' not in left


@pytest.mark.parametrize(
    "value",
    [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "text", "text": "a", "signature": "no state", "data": "no state"},
        {"inlineData": {"data": "AAAA", "mimeType": "image/png"}},
        {"type": ["thinking"], "signature": 1},
        {"extra_content": {"google": "x", "openai": {"encrypted_content": ""}}},
        {"extra_content": None},
    ],
)
def test_what_is_no_state_stays(value: JsonObject) -> None:
    assert with_states(value, lambda state: None) is value
