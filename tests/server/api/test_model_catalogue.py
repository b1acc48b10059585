"""What the lists of models say of each model: the facts of the settings, of the backend's list and of the wire, in the
form of each API."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.server.log.logger import LOGGER
from gateway.server.upstream import model_list
from gateway.settings import read_settings
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.backend import Connection, FaultyBackend, answer, faulty_backend

CHAT: Final[dict[str, Json]] = {"adapter": "openai_chat"}
LISTED: Final[dict[str, Json]] = {
    "id": "inner",
    "name": "Inner model",
    "context_length": 65536,
    "top_provider": {"max_completion_tokens": 8192},
    "architecture": {"input_modalities": ["text"]},
    "supported_parameters": ["tools"],
}
MODELS: Final[dict[str, Json]] = {"m": {"backend": "b", "name": "inner"}}
CLAUDE: Final = {"anthropic-version": "2023-06-01"}
CODEX: Final = "/v1/models?client_version=0.169.0"
USER: Final = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9}


@asynccontextmanager
async def described(
    models: Mapping[str, Json] = MODELS,
    entry: Mapping[str, Json] = CHAT,
    listed: Json = LISTED,
    reply: bytes | None = None,
    **more: Json,
) -> AsyncIterator[tuple[RunningGateway, FaultyBackend]]:
    """Runs a gateway before a backend that lists one model."""
    sent = answer("200 OK", json.dumps({"data": [listed]}).encode()) if reply is None else reply

    async def script(connection: Connection) -> None:
        await connection.send(sent)

    async with faulty_backend(script) as backend:
        settings: dict[str, Json] = {
            "backends": {"b": {**entry, "base_url": backend.base_url}},
            "models": dict(models),
            **more,
        }
        async with running_gateway(settings) as gateway:
            yield gateway, backend


async def get(gateway: RunningGateway, path: str, headers: Mapping[str, str] = {}) -> Any:  # Any: JSON
    response = await gateway.client.get(path, headers=dict(headers))
    assert response.status_code == 200, response.text
    return response.json()


async def codex(gateway: RunningGateway) -> Any:  # Any: JSON
    (model,) = (await get(gateway, CODEX))["models"]
    return model


async def show(gateway: RunningGateway, name: str = "m") -> Any:  # Any: JSON
    response = await gateway.client.post("/api/show", json={"model": name})
    assert response.status_code == 200, response.text
    return response.json()


async def test_codex_gets_what_the_backend_says() -> None:
    async with described() as (gateway, _):
        model = await codex(gateway)
    assert (model["slug"], model["display_name"]) == ("m", "Inner model")
    assert model["context_window"] == model["max_context_window"] == 65536
    assert model["auto_compact_token_limit"] == 65536 - 8192
    assert model["input_modalities"] == ["text"] and model["supports_parallel_tool_calls"] is True
    assert (model["shell_type"], model["apply_patch_tool_type"]) == ("default", None)
    assert model["supported_reasoning_levels"] == []


async def test_the_facts_of_the_settings_come_before_those_of_the_backend() -> None:
    facts: Json = {
        "display_name": "Mine",
        "max_output": 1000,
        "compact_at": 20000,
        "images": True,
        "parallel_calls": False,
        "efforts": ["low", "high"],
        "default_effort": "low",
        "apply_patch": "freeform",
    }
    models: dict[str, Json] = {"m": {"backend": "b", "name": "inner", "context_length": 32768, "facts": facts}}
    async with described(models) as (gateway, _):
        model = await codex(gateway)
        shown = await show(gateway)
        page = await get(gateway, "/v1/models/m", CLAUDE)
        google = await get(gateway, "/v1beta/models/m")
    assert (model["display_name"], model["context_window"]) == ("Mine", 32768)
    assert model["auto_compact_token_limit"] == 20000 and model["supports_parallel_tool_calls"] is False
    assert model["input_modalities"] == ["text", "image"] and model["apply_patch_tool_type"] == "freeform"
    assert [level["effort"] for level in model["supported_reasoning_levels"]] == ["low", "high"]
    assert model["default_reasoning_level"] == "low"
    assert shown["capabilities"] == ["completion", "tools", "vision", "thinking"]
    assert shown["parameters"].split() == ["num_ctx", "32768", "num_predict", "1000"]
    assert (page["display_name"], page["max_input_tokens"], page["max_tokens"]) == ("Mine", 32768, 1000)
    supported = {name: each["supported"] for name, each in page["capabilities"].items()}
    assert supported == {
        "batch": False,
        "image_input": True,
        "pdf_input": False,
        "effort": True,
        "thinking": True,
    }
    assert page["capabilities"]["effort"]["high"] == {"supported": True}
    assert page["capabilities"]["effort"]["max"] == {"supported": False}
    assert (google["displayName"], google["inputTokenLimit"], google["outputTokenLimit"]) == ("Mine", 32768, 1000)
    assert google["thinking"] is True


async def test_what_nobody_says_is_not_in_a_list() -> None:
    async with described(listed={"id": "inner"}) as (gateway, _):
        assert (await get(gateway, CODEX))["models"] == [], "Codex never compacts a model without a window"
        shown = await show(gateway)
        page = await get(gateway, "/v1/models/m", CLAUDE)
        google = await get(gateway, "/v1beta/models/m")
    assert shown["capabilities"] == ["completion", "tools", "vision"], "what the wire has, and nobody denies"
    assert shown["parameters"] == ""
    assert not {"max_input_tokens", "max_tokens"} & page.keys()
    assert not {"effort", "thinking"} & page["capabilities"].keys()
    assert not {"inputTokenLimit", "outputTokenLimit", "thinking"} & google.keys()


async def test_a_wire_offers_no_more_than_it_carries() -> None:
    facts: Json = {"images": True, "files": True, "efforts": ["high"]}
    entry: dict[str, Json] = {"adapter": "text", "wire": "plain"}
    async with described({"m": {"backend": "b", "context_length": 4096, "facts": facts}}, entry) as (gateway, _):
        model = await codex(gateway)
    assert model["input_modalities"] == ["text"] and model["supported_reasoning_levels"] == []


async def test_a_model_without_tools_is_offered_none() -> None:
    async with described(listed={"id": "inner", "max_model_len": 4096, "supports_tools": False}) as (gateway, _):
        model = await codex(gateway)
        shown = await show(gateway)
    assert (model["shell_type"], model["supports_parallel_tool_calls"]) == ("disabled", False)
    assert shown["capabilities"] == ["completion", "vision"]


async def test_a_wire_with_free_text_tools_has_them_for_patches() -> None:
    async with described(entry={"adapter": "openai_responses"}) as (gateway, _):
        assert (await codex(gateway))["apply_patch_tool_type"] == "freeform"


async def test_the_efforts_of_a_profile_are_those_of_its_models() -> None:
    entry: dict[str, Json] = {**CHAT, "profile": "deepseek"}
    async with described({"m": {"backend": "b", "name": "deepseek-v4", "context_length": 4096}}, entry) as (gateway, _):
        model = await codex(gateway)
    assert [level["effort"] for level in model["supported_reasoning_levels"]] == ["low", "high", "max"]


@pytest.mark.parametrize(
    ("length", "longest", "compact_at"),
    [(32768, 8192, 24576), (32768, 32768, 24576), (400000, 100000, 300000), (3, 3, 3), (32768, None, None)],
)
async def test_a_conversation_leaves_room_for_the_longest_answer(
    length: int, longest: int | None, compact_at: int | None
) -> None:
    models: dict[str, Json] = {"m": {"backend": "b", "context_length": length, "facts": {"max_output": longest}}}
    async with described(models) as (gateway, _):
        assert (await codex(gateway)).get("auto_compact_token_limit") == compact_at


async def test_the_models_stand_in_the_order_of_the_settings() -> None:
    models: dict[str, Json] = {name: {"backend": "b", "context_length": 4096} for name in ("z", "a", "m")}
    async with described(models) as (gateway, _):
        listed = (await get(gateway, CODEX))["models"]
    assert [(model["slug"], model["priority"]) for model in listed] == [("z", 0), ("a", 1), ("m", 2)]


@pytest.mark.parametrize("title", ["\x1b[31mred", "two\nlines", "n" * 500])
async def test_a_title_that_no_terminal_should_show_is_left_out(title: str) -> None:
    async with described(listed={**LISTED, "name": title}) as (gateway, _):
        assert (await codex(gateway))["display_name"] == "m"


FAILING: Final[dict[str, bytes]] = {
    "a failure": answer("500 Oops", b"secret"),
    "no list there": answer("404 Not Found"),
    "a page": answer("200 OK", b"<html>"),
}


@pytest.mark.parametrize("failing", FAILING)
async def test_a_backend_that_fails_says_nothing_of_its_models(failing: str) -> None:
    models: dict[str, Json] = {"m": {"backend": "b", "context_length": 4096}}
    async with described(models, reply=FAILING[failing]) as (gateway, backend):
        listed = await get(gateway, CODEX)
        await get(gateway, CODEX)
        assert len(backend.seen) == 1, "it is asked once a minute"
    assert "dragoman" not in listed
    (model,) = listed["models"]
    assert (model["slug"], model["context_window"]) == ("m", 4096)


async def test_a_silent_backend_delays_a_list_for_less_time_than_a_client_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert model_list.FACTS_LIMIT_S < 3, "Claude Code waits for three seconds"
    monkeypatch.setattr(model_list, "FACTS_LIMIT_S", 0.2)

    async def script(connection: Connection) -> None:
        await connection.gone()

    async with faulty_backend(script) as backend:
        settings: dict[str, Json] = {"backends": {"b": {**CHAT, "base_url": backend.base_url}}, "models": MODELS}
        async with running_gateway(settings) as gateway:
            page = await get(gateway, "/v1/models", CLAUDE)
            assert [model["id"] for model in page["data"]] == ["m"]
            await get(gateway, CODEX)
            assert len(backend.seen) == 1


async def test_a_token_that_is_being_refreshed_delays_a_list_no_longer_and_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_list, "FACTS_LIMIT_S", 0.2)
    monkeypatch.setattr(model_list, "FAILURE_KEPT_S", 0)
    monkeypatch.setenv("CATALOGUE_REFRESH", "refresh-0")
    issue = asyncio.Event()

    async def script(connection: Connection) -> None:
        if connection.head.startswith(b"POST"):
            await issue.wait()
            await connection.send(answer("200 OK", b'{"access_token": "t", "expires_in": 3600}'))
        else:
            await connection.send(answer("200 OK", json.dumps({"data": [LISTED]}).encode()))

    async with faulty_backend(script) as backend:
        refresh: Json = {"token_url": f"{backend.base_url}/token", "refresh_token_env": "CATALOGUE_REFRESH"}
        settings: dict[str, Json] = {
            "backends": {"b": {**CHAT, "base_url": backend.base_url, "refresh": refresh}},
            "models": MODELS,
        }
        async with running_gateway(settings) as gateway:
            async with asyncio.timeout(4):
                for _ in range(2):
                    assert (await get(gateway, CODEX))["models"] == []
            issue.set()
            async with asyncio.timeout(20):
                while not (found := (await get(gateway, CODEX))["models"]):  # noqa: ASYNC110 (the token sets no event)
                    await asyncio.sleep(0.01)
            assert found[0]["context_window"] == 65536
            assert sum(head.startswith(b"POST") for head, _ in backend.seen) == 1, "one refresh, which nobody cancelled"


@pytest.mark.parametrize("window", [1, 255, 1023])
async def test_a_window_that_no_model_has_is_not_believed(window: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER.name):
        async with described(listed={**LISTED, "context_length": window}) as (gateway, _):
            assert (await get(gateway, CODEX))["models"] == []
            # The list may come later than the answer.
            async with asyncio.timeout(20):
                while not any("not believed" in line for line in caplog.messages):
                    await get(gateway, CODEX)
            assert "max_input_tokens" not in await get(gateway, "/v1/models/m", CLAUDE)
        async with described({"m": {"backend": "b", "name": "inner", "context_length": window}}) as (gateway, _):
            assert (await codex(gateway))["context_window"] == window, "the operator's word"
    [told] = [line for line in caplog.messages if "not believed" in line]
    assert "'inner'" in told and str(window) in told


async def test_a_window_that_is_small_and_sound_is_believed() -> None:
    async with described(listed={**LISTED, "context_length": 1024}) as (gateway, _):
        assert (await codex(gateway))["context_window"] == 1024


async def test_a_list_of_names_alone_asks_no_backend() -> None:
    async with described() as (gateway, backend):
        (model,) = (await get(gateway, "/v1/models"))["data"]
        assert model["id"] == "m" and backend.seen == []


# The beginning of an id is the option `server.claude_ids`.
NAMES: Final = ("qwen", "claude-opus-5", "Anthropic/x", "a/b:c")


async def test_with_claude_ids_every_id_begins_as_claude_code_wants_it() -> None:
    models: dict[str, Json] = {name: {"backend": "b"} for name in NAMES}
    async with described(models, server={"api_keys_env": None, "claude_ids": True}) as (gateway, _):
        page = await get(gateway, "/v1/models?limit=1000", CLAUDE)
        others = (await get(gateway, "/v1/models"))["data"]
    ids = [model["id"] for model in page["data"]]
    assert ids == ["claude-dragoman-qwen", "claude-opus-5", "Anthropic/x", "claude-dragoman-a/b:c"]
    assert all(each.lower().startswith(("claude", "anthropic")) for each in ids)
    assert [model["display_name"] for model in page["data"]] == list(NAMES)
    assert (page["first_id"], page["last_id"], page["has_more"]) == (ids[0], ids[-1], False)
    assert [model["id"] for model in others] == list(NAMES), "other clients get the names"


async def test_a_request_with_such_an_id_is_for_the_model() -> None:
    reply = answer(
        "200 OK",
        json.dumps(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": "inner",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
            }
        ).encode(),
    )
    async with described(reply=reply, server={"api_keys_env": None, "claude_ids": True}) as (gateway, backend):
        body = {"model": "claude-dragoman-m", **USER}
        response = await gateway.client.post("/v1/messages", json=body, headers=CLAUDE)
        assert response.status_code == 200, response.text
        assert response.json()["model"] == "claude-dragoman-m"
        assert json.loads(backend.seen[0][1])["model"] == "inner"
        one = await get(gateway, "/v1/models/claude-dragoman-m", CLAUDE)
        assert one["id"] == "m"
        unknown = await gateway.client.post("/v1/messages", json={**body, "model": "claude-dragoman-x"}, headers=CLAUDE)
        assert unknown.status_code == 404


async def test_a_key_for_some_models_does_not_open_others_by_such_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOGUE_KEYS", "one")
    models: dict[str, Json] = {"m": {"backend": "b"}, "other": {"backend": "b"}}
    server: Json = {"api_keys_env": "CATALOGUE_KEYS", "claude_ids": True}
    async with described(models, server=server, keys={"env-1": {"models": ["m"]}}) as (gateway, _):
        head = {**CLAUDE, "x-api-key": "one"}
        page = await get(gateway, "/v1/models", head)
        response = await gateway.client.post(
            "/v1/messages", json={"model": "claude-dragoman-other", **USER}, headers=head
        )
        hidden = await gateway.client.get("/v1/models/other", headers=head)
        assert (await gateway.client.get("/v1/models/m", headers=head)).status_code == 200
    assert [model["id"] for model in page["data"]] == ["claude-dragoman-m"]
    assert response.status_code in (403, 404), response.text
    assert hidden.status_code == 403, hidden.text


@pytest.mark.parametrize(
    "key", [{"x-api-key": "k1"}, {"authorization": "Bearer k1", **CLAUDE}, {"x-api-key": "k1", **CLAUDE}]
)
async def test_the_models_are_listed_for_a_key_in_either_place(
    key: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOGUE_KEYS", "k1")
    async with described(server={"api_keys_env": "CATALOGUE_KEYS"}) as (gateway, _):
        page = await get(gateway, "/v1/models?limit=1000", key)
        assert [(model["type"], model["id"]) for model in page["data"]] == [("model", "m")]
        assert (await get(gateway, "/v1/models/m", key))["type"] == "model"
        wrong = await gateway.client.get("/v1/models", headers={name: "wrong" for name in key})
        assert wrong.status_code == 401 and wrong.json()["type"] == "error"
        assert (await gateway.client.get("/v1/models")).status_code == 401


async def test_beside_a_bearer_the_models_are_those_of_chat_completions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the header of another API counts no more than at `/v1/chat/completions`, which does not read it."""
    monkeypatch.setenv("CATALOGUE_KEYS", "k1")
    async with described(server={"api_keys_env": "CATALOGUE_KEYS"}) as (gateway, _):
        for other in ("wrong", "k1", ""):
            head = {"authorization": "Bearer k1", "x-api-key": other}
            page = await get(gateway, "/v1/models", head)
            assert (page["object"], page["data"][0]["id"]) == ("list", "m")
            assert (await get(gateway, "/v1/models/m", head))["object"] == "model"
            wrong = {"authorization": "Bearer wrong", "x-api-key": other}
            refused = await gateway.client.get("/v1/models", headers=wrong)
            assert refused.status_code == 401 and "type" not in refused.json()
        # With a version it is a client of Messages, of which the key in its own header counts first.
        refused = await gateway.client.get(
            "/v1/models", headers={"authorization": "Bearer k1", "x-api-key": "wrong", **CLAUDE}
        )
        assert refused.status_code == 401 and refused.json()["type"] == "error"


@pytest.mark.parametrize("server", [{"claude_ids": True}, {}])
def test_two_models_do_not_have_one_id(server: Json) -> None:
    raw: Json = {
        "server": server,
        "backends": {"b": {**CHAT, "base_url": "http://h"}},
        "models": {"x": {"backend": "b"}, "claude-dragoman-x": {"backend": "b"}},
    }
    if not server:
        assert read_settings(raw).models.keys() == {"x", "claude-dragoman-x"}
        return
    with pytest.raises(SettingsError, match=r"models\.x.*claude-dragoman-x"):
        read_settings(raw)


async def test_a_name_of_the_backend_that_would_have_the_id_of_another_model_is_shown_as_it_is() -> None:
    names: Json = {"data": [{"id": "x"}, {"id": "claude-dragoman-x"}, {"id": "y"}]}
    reply = answer("200 OK", json.dumps(names).encode())
    server: Json = {"api_keys_env": None, "claude_ids": True}
    async with described({"*": {"backend": "b"}}, reply=reply, server=server) as (gateway, _):
        page = await get(gateway, "/v1/models", CLAUDE)
    assert [model["id"] for model in page["data"]] == ["x", "claude-dragoman-x", "claude-dragoman-y"]


async def test_created_is_a_time_of_now() -> None:
    async with described() as (gateway, _):
        (model,) = (await get(gateway, CODEX))["data"]
    assert abs(model["created"] - time.time()) < 600


async def test_a_model_whose_pictures_and_pdfs_are_read_for_it_takes_them() -> None:
    """A client that hears of no pictures sends none."""
    facts: Json = {"images": False, "files": False}
    text: dict[str, Json] = {"backend": "b", "name": "inner", "context_length": 4096, "facts": facts}
    models: dict[str, Json] = {
        "m": {**text, "images": "describe", "documents": "text"},
        "blind": text,
        "seeing": {"backend": "b"},
    }
    async with described(models, vision={"model": "seeing"}) as (gateway, _):
        listed = {model["slug"]: model["input_modalities"] for model in (await get(gateway, CODEX))["models"]}
        assert (listed["m"], listed["blind"]) == (["text", "image"], ["text"])
        takes = {
            model["id"]: [model["capabilities"][name]["supported"] for name in ("image_input", "pdf_input")]
            for model in (await get(gateway, "/v1/models?limit=1000", CLAUDE))["data"]
        }
        assert (takes["m"], takes["blind"]) == ([True, True], [False, False])
