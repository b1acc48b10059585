"""What published files about models become as keys of settings, in each of the three forms."""

import json
from datetime import date
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.settings import read_settings
from gateway.settings.model_files import KnownModel, read_model_file

TODAY: Final = date(2026, 11, 27)
OPENAI: Final = "https://api.openai.com/v1"
GENAI: Final[list[dict[str, Any]]] = [
    {
        "id": "maker",
        "name": "Maker",
        "api_pattern": r"https://api\.maker\.example",
        "models": [
            {
                "id": "big",
                "name": "Big",
                "match": {"or": [{"starts_with": "big-2"}, {"and": [{"contains": "big"}, {"ends_with": "-x"}]}]},
                "context_window": 200000,
                "price_comments": "by the page",
                "prices": {
                    "input_mtok": {"base": 3, "tiers": [{"start": 200000, "price": 6}]},
                    "output_mtok": 15,
                    "cache_read_mtok": 0.3,
                    "cache_write_mtok": 3.75,
                },
            },
            {
                "id": "cheaper",
                "match": {"regex": "^cheap(er)?$"},
                "prices": [
                    {"prices": {"input_mtok": 9, "output_mtok": 9}},
                    {"constraint": {"start_date": "2026-03-13"}, "prices": {"input_mtok": 2, "output_mtok": 4.5}},
                    {"constraint": {"start_date": "2027-01-01"}, "prices": {"input_mtok": 1, "output_mtok": 1}},
                    {
                        "constraint": {"start_time": "00:30:00Z", "end_time": "16:30:00Z"},
                        "prices": {"input_mtok": 7, "output_mtok": 7},
                    },
                ],
            },
            {"id": "reader", "match": {"equals": "reader"}, "prices": {"input_mtok": 0.1}},
        ],
    },
    {"id": "openai", "name": "OpenAI", "api_pattern": r"https://api\.openai\.com", "models": []},
]
DEV: Final[dict[str, Any]] = {
    "openai": {
        "id": "openai",
        "env": ["K"],
        "npm": "@ai-sdk/openai",
        "name": "OpenAI",
        "doc": "https://d",
        "models": {
            "m": {
                "id": "m",
                "name": "The M",
                "attachment": True,
                "reasoning": True,
                "reasoning_options": [{"type": "toggle"}, {"type": "effort", "values": ["high", "low", "ultra"]}],
                "tool_call": True,
                "status": "deprecated",
                "modalities": {"input": ["text", "image"], "output": ["text"]},
                "limit": {"context": 400000, "input": 272000, "output": 128000},
                "cost": {
                    "input": 1.25,
                    "output": 10,
                    "cache_read": 0.125,
                    "context_over_200k": {"input": 2, "output": 3},
                },
            },
            "plain": {
                "id": "plain",
                "name": "plain",
                "reasoning": False,
                "tool_call": False,
                "modalities": {"input": ["text", "pdf"], "output": ["text"]},
                "limit": {"context": 8192, "output": 0},
            },
        },
    },
    "own": {"id": "own", "api": "https://api.own.example/v1", "name": "Own", "models": {"o": {"id": "o", "name": "O"}}},
}
LITELLM: Final[dict[str, Any]] = {
    "sample_spec": {"litellm_provider": "one of the providers", "max_input_tokens": "max input tokens"},
    "m": {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05,
        "cache_read_input_token_cost": 2.5e-07,
        "input_cost_per_token_above_200k_tokens": 5e-06,
        "max_input_tokens": 272000,
        "max_output_tokens": 128000,
        "max_tokens": 128000,
        "reasoning_effort_levels": ["none", "low", "medium", "high", "xhigh"],
        "default_reasoning_effort": "medium",
        "supports_function_calling": True,
        "supports_parallel_function_calling": True,
        "supports_vision": True,
        "supports_pdf_input": True,
        "supports_reasoning": True,
        "source": "https://x",
    },
    "groq/m": {"litellm_provider": "groq", "mode": "chat", "max_input_tokens": 8192, "supports_reasoning": False},
    "speak": {"litellm_provider": "openai", "mode": "audio_speech", "input_cost_per_token": 1e-06},
}


# (Any: JSON.)
def found(document: Any, name: str, base_url: str = "", provider: str | None = None) -> KnownModel | None:
    file = read_model_file(json.dumps(document).encode(), TODAY)
    return next((one for each in file.providers_at(base_url, provider) if (one := each.find(name)) is not None), None)


def keys(document: Any, name: str, base_url: str = "", provider: str | None = None) -> dict[str, Json]:
    known = found(document, name, base_url, provider)
    assert known is not None
    backends: Json = {"b": {"adapter": "a:B", "base_url": "http://x"}}
    read_settings(
        {"backends": backends, "models": {"m": {"backend": "b", **known.keys()}}}
    )  # they are keys of settings
    return known.keys()


@pytest.mark.parametrize("name", ["big", "big-2", "big-2-2026", "a-big-x"])
def test_genai_prices(name: str) -> None:
    assert keys(GENAI, name, "https://api.maker.example/v1") == {
        "context_length": 200000,
        "price": {"input": 3, "output": 15, "cached_input": 0.3},
        "facts": {"display_name": "Big"},
    }
    known = found(GENAI, name, provider="maker")
    assert known is not None
    assert known.left_out == ("input_mtok above 200000 tokens", "cache_write_mtok", "price_comments: by the page")


@pytest.mark.parametrize("name", ["bigger", "x", ""])
def test_a_name_that_no_rule_fits_is_not_known(name: str) -> None:
    assert found(GENAI, name, provider="maker") is None


def test_the_price_of_the_day_is_the_last_one_that_has_begun() -> None:
    known = found(GENAI, "cheap", provider="maker")
    assert known is not None
    assert known.keys() == {"price": {"input": 2, "output": 4.5}}
    assert known.left_out == ("prices from 00:30:00Z to 16:30:00Z",)


def test_a_price_of_the_prompt_alone_is_none() -> None:
    known = found(GENAI, "reader", provider="maker")
    assert known is not None and known.keys() == {} and "price" in known.left_out[0]


def test_genai_prices_of_the_third_version_have_their_units_beside_them() -> None:
    assert keys({"units": {}, "providers": GENAI}, "big", provider="maker") == keys(GENAI, "big", provider="maker")


def test_models_dev() -> None:
    assert keys(DEV, "m", OPENAI) == {
        "context_length": 400000,
        "price": {"input": 1.25, "output": 10, "cached_input": 0.125},
        "facts": {
            "display_name": "The M",
            "max_output": 128000,
            "compact_at": 244800,
            "tools": True,
            "images": True,
            "files": False,
            "efforts": ["low", "high"],
        },
    }
    known = found(DEV, "m", OPENAI)
    assert known is not None and known.left_out == ("cost.context_over_200k", "status deprecated")


def test_a_model_that_does_not_think_takes_no_effort() -> None:
    facts = keys(DEV, "plain", OPENAI)["facts"]
    assert facts == {"display_name": "plain", "tools": False, "images": False, "files": True, "efforts": []}


def test_litellm() -> None:
    assert keys(LITELLM, "m", OPENAI) == {
        "context_length": 272000,
        "price": {"input": 2.5, "output": 10, "cached_input": 0.25},
        "facts": {
            "max_output": 128000,
            "tools": True,
            "parallel_calls": True,
            "images": True,
            "files": True,
            "efforts": ["none", "low", "medium", "high", "xhigh"],
            "default_effort": "medium",
        },
    }
    known = found(LITELLM, "m", OPENAI)
    assert known is not None and known.left_out == ("input_cost_per_token_above_200k_tokens",)


def test_a_flag_that_is_absent_is_not_known() -> None:
    assert keys(LITELLM, "m", "https://api.groq.com/openai/v1") == {"context_length": 8192, "facts": {"efforts": []}}


def test_what_is_no_chat_model_says_nothing() -> None:
    known = found(LITELLM, "speak", OPENAI)
    assert known is not None and known.keys() == {} and known.left_out == ("everything: its mode is audio_speech",)


@pytest.mark.parametrize(
    ("document", "base_url", "provider", "names"),
    [
        (DEV, "https://api.own.example/v1", None, ["own"]),
        (DEV, "https://api.own.example.evil/v1", None, []),
        (DEV, OPENAI, None, ["openai"]),
        (DEV, OPENAI, "own", ["own"]),
        (DEV, "http://127.0.0.1:8080/v1", None, []),
        (LITELLM, "http://127.0.0.1:8080/v1", "groq", ["groq"]),
        (GENAI, "https://api.maker.example", None, ["maker"]),
    ],
)
def test_a_provider_is_that_of_the_address_or_of_the_name(
    document: Any, base_url: str, provider: str | None, names: list[str]
) -> None:
    file = read_model_file(json.dumps(document).encode(), TODAY)
    assert [one.name for one in file.providers_at(base_url, provider)] == names


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"{}", b"3", b"null", b'{"a": 1}', b'{"a": {"b": 1}}', b'[{"id": 1}]'),
        *(b"[" * 100_000, b'{"a": "\xff"}', b'\xef\xbb\xbf{"a": 1}'),
    ],
)
def test_another_file_is_refused(body: bytes) -> None:
    with pytest.raises(SettingsError, match=r"it is (no JSON|in none of the forms)"):
        read_model_file(body, TODAY)


@pytest.mark.parametrize("number", [1e305, 10**400])
def test_a_number_that_is_a_mistake_is_none(number: float) -> None:
    entry = {"litellm_provider": "openai", "mode": "chat", "max_input_tokens": number}
    entry |= {"input_cost_per_token": number, "output_cost_per_token": number}
    (provider,) = read_model_file(json.dumps({"m": entry}).encode(), TODAY).providers_at("", "openai")
    found = provider.find("m")
    assert found is not None and (found.context_length, found.price) == (None, None)


WRONG: Final[Any] = [
    {
        "id": 7,
        "api_pattern": "(",
        "models": [
            3,
            {
                "id": "m",
                "match": {"regex": "("},
                "context_window": "many",
                "prices": {"input_mtok": -1, "output_mtok": True},
            },
            {"id": "n", "match": "m", "prices": [{"constraint": {"start_date": "soon"}, "prices": []}]},
        ],
    }
]


@pytest.mark.parametrize("name", ["m", "n"])
def test_wrong_values_are_not_known(name: str) -> None:
    known = found(WRONG, name, provider="")
    assert known is not None and known.keys() == {}
    assert found(WRONG, "other", provider="") is None


@pytest.mark.parametrize("number", [1, 255, 1023])
def test_a_window_that_no_model_has_is_told_and_not_taken(number: int) -> None:
    def dev(**limit: int) -> KnownModel:
        file = read_model_file(json.dumps({"p": {"id": "p", "models": {"m": {"limit": limit}}}}).encode(), TODAY)
        found = file.providers[0].find("m")
        assert found is not None
        return found

    found = dev(context=number, input=number, output=8)
    assert (found.context_length, found.facts.compact_at) == (None, None)
    assert found.left_out == (f"limit.context {number}", f"limit.input {number}")
    assert dev(context=400_000, input=number).facts.compact_at is None
    assert dev(context=400_000, input=1024).facts.compact_at == 921
    genai = {"providers": [{"id": "p", "models": [{"id": "m", "context_window": number}]}]}
    litellm = {"m": {"litellm_provider": "p", "max_input_tokens": number}}
    for document, told in ((genai, "context_window"), (litellm, "max_input_tokens")):
        known = read_model_file(json.dumps(document).encode(), TODAY).providers[0].find("m")
        assert known is not None and known.context_length is None
        assert f"{told} {number}" in known.left_out
