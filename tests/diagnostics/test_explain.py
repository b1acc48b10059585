"""The explanation of a request matches the request that would be sent."""

from typing import Any

import msgspec
import pytest

import gateway
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.diagnostics.explain_request import explain_request, plan
from gateway.diagnostics.explain_text import explain_text
from gateway.diagnostics.explanation import Explanation
from gateway.registry import load_adapters, load_dialect
from gateway.settings import read_settings
from gateway.testing.gateway import running_gateway
from tests.server.summaries.scripted import agent_history

CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
LOOP: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "What does it say?"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call_1", "content": "forty-two"},
]
ORPHAN: list[dict[str, Any]] = [*LOOP[:2], {"role": "tool", "tool_call_id": "gone", "content": "lost"}]
WARP: dict[str, Json] = {
    "backends": {"agent": {"adapter": "adapters.warp.backend:WarpAdapter", "base_url": "demo:agent"}},
    "models": {"m": {"backend": "agent"}},
}
NATIVE: dict[str, Json] = {
    "backends": {
        "chat": {
            "adapter": "adapters.openai_chat.backend:OpenAIChatAdapter",
            "base_url": "demo:chat",
            "profile": "mistral",
        }
    },
    "models": {"n": {"backend": "chat"}},
}


def rules(told: Explanation) -> list[str]:
    return [notice.rule for notice in told.diagnostics]


def test_a_sound_loop_is_told_as_it_is() -> None:
    told = plan(LOOP, WARP)
    assert told.violations == ()
    assert [dict(message) for message in told.repaired] == LOOP
    assert [dict(message) for message in told.trimmed] == LOOP
    assert told.indexes.repaired == (0, 1, 2, 3)
    assert (told.classification.last_user_index, told.classification.tool_result_ids) == (1, ("call_1",))
    assert told.classification.is_continuation and told.implicit_added
    assert [(group.start, group.stop, group.tool_call_ids) for group in told.groups] == [
        (0, 1, ()),
        (1, 2, ()),
        (2, 4, ("call_1",)),
    ]
    assert told.system_text == "Be brief."
    assert told.text.endswith("User: Please analyze the tool results above and provide your response.")
    assert told.wire == ({"role": "user", "content": told.text},)


def test_the_encoded_request_holds_the_text() -> None:
    told = plan(LOOP, WARP)
    assert told.encoded is not None
    assert len(bytes.fromhex(told.encoded.hex)) == told.encoded.bytes
    assert "What does it say?" in str(told.encoded.decoded)
    assert told.backend == "agent"


def test_the_backends_own_model_name_is_what_is_sent() -> None:
    named: dict[str, Json] = {**WARP, "models": {"m": {"backend": "agent", "name": "auto"}}}
    told = plan(LOOP, named)
    assert told.model == "m"
    assert told.encoded is not None and "'base': 'auto'" in str(told.encoded.decoded)


def test_a_native_backend_gets_messages_in_its_providers_rules() -> None:
    told = plan(LOOP, NATIVE)
    sent = told.wire[2]["tool_calls"]
    assert isinstance(sent, list) and isinstance(sent[0], dict)
    assert len(str(sent[0]["id"])) == 9
    assert told.encoded is not None and isinstance(told.encoded.decoded, dict)
    assert told.encoded.decoded["messages"] == [dict(message) for message in told.wire]


def test_a_broken_history_names_its_faults_and_its_repair() -> None:
    told = plan(ORPHAN)
    assert [(found.rule, found.index, found.tool_call_id) for found in told.violations] == [("TOOL_ORPHAN", 2, "gone")]
    assert rules(told)[0] == "TOOL_ORPHAN"
    assert told.error is None


def test_what_was_added_has_no_index() -> None:
    told = plan(LOOP[:3], WARP)
    assert told.indexes.repaired == (0, 1, 2, None)


def test_strict_tells_the_error_instead_of_what_follows() -> None:
    told = plan(ORPHAN, {"repair": "strict"})
    assert told.error is not None
    assert told.repaired == () and told.text == "" and told.encoded is None
    error = msgspec.to_builtins(told.error)["error"]
    assert (error["rule"], error["index"], error["tool_call_id"]) == ("TOOL_ORPHAN", 2, "gone")


def test_limits_show_in_trimmed_only() -> None:
    turns = [{"role": role, "content": f"q{number}"} for number in range(5) for role in ("assistant", "user")]
    told = plan(turns, {"max_history_messages": 2})
    assert len(told.repaired) == 10
    assert len(told.trimmed) < 10
    assert told.indexes.trimmed[-1] == 9
    assert any(line.startswith("Limiting history messages from ") for line in told.logs)


def test_pinned_messages_are_named_with_their_reason() -> None:
    told = plan([*LOOP, {"role": "user", "content": "Stop."}], WARP)
    assert [(one.index, one.reason) for one in told.pinned] == [(1, "opened_loop"), (len(LOOP), "newest")]


def test_profile_and_settings_beside_the_request_override_the_models() -> None:
    body = {"messages": LOOP, "profile": "gemini", "settings": {"flatten": {"style": "json"}}}
    told = explain_request(msgspec.json.encode(body), gateway_settings(), {})
    assert told.text.startswith('{"role":"system"')
    assert "TOOL_NAME_DERIVED" in rules(told)


@pytest.mark.parametrize(
    ("extra", "param"),
    [
        ({"settings": {"recent_tool_results": {"redact": ["(a+)+$"]}}}, "settings"),
        ({"settings": 1}, "settings"),
        ({"settings": False}, "settings"),
        ({"settings": []}, "settings"),
        ({"settings": {"max_tool_result": 1}}, "settings"),
        ({"profile": "x"}, "settings"),
        ({"profile": "mistrall"}, "settings"),
    ],
)
def test_wrong_overrides_are_the_callers_mistake(extra: dict[str, Json], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        explain_request(msgspec.json.encode({"messages": LOOP, **extra}), gateway_settings(), {})
    assert (caught.value.status, caught.value.param) == (400, param)
    assert not caught.value.message.endswith("?.")


def gateway_settings() -> Any:
    from gateway.settings import Settings

    return Settings()


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan(LOOP, WARP, model="nobody")
    assert caught.value.code == "model_not_found"


def test_half_a_character_is_told() -> None:
    body = b'{"messages": [{"role": "user", "content": "\\ud83d"}]}'
    told = explain_request(body, read_settings(WARP), {})
    assert [found.rule for found in told.violations] == ["TEXT_UNICODE"]


def test_a_broken_message_goes_out_as_it_is_where_repair_is_off() -> None:
    broken = {**LOOP[2], "tool_calls": [{**CALL, "function": {"name": "read", "arguments": {"a": [1]}}}]}
    backend: dict[str, Json] = {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter", "base_url": "demo:chat"}
    told = plan([LOOP[1], broken, LOOP[3]], {**NATIVE, "backends": {"chat": backend}, "repair": "off"})
    assert rules(told)[0] == "CALL_ARGS_TYPE"
    assert [dict(message) for message in told.wire] == [LOOP[1], broken, LOOP[3]]


def test_wrong_settings_are_told() -> None:
    with pytest.raises(SettingsError):
        plan(LOOP, {"max_tool_results": -1})


def test_the_library_offers_it() -> None:
    assert gateway.plan is plan


async def test_a_key_explains_only_the_models_that_it_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_API_KEYS", "secret")
    models: dict[str, Json] = {"m": {"backend": "agent"}, "other": {"backend": "agent"}}
    settings: dict[str, Json] = {
        **WARP,
        "server": {"api_keys_env": "DRAGOMAN_API_KEYS"},
        "models": models,
        "keys": {"*": {"models": ["other"]}},
    }
    async with running_gateway(settings) as running:
        running.client.headers["authorization"] = "Bearer secret"
        refused = await running.client.post("/v1/explain", json={"model": "m", "messages": LOOP})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")


async def test_the_route_sends_nothing_and_tells_everything() -> None:
    async with running_gateway(WARP) as running:
        answer = await running.client.post("/v1/explain", json={"model": "m", "messages": ORPHAN})
        assert answer.status_code == 200
        told = answer.json()
        assert told["violations"][0]["rule"] == "TOOL_ORPHAN"
        assert told["diagnostics"][0].keys() >= {"stage", "action", "index", "tool_call_id", "rule", "detail"}
        assert told["encoded"]["bytes"] > 0
        for body, status in ((b"{", 400), (b'{"messages": []}', 400)):
            refused = await running.client.post(
                "/v1/explain", content=body, headers={"content-type": "application/json"}
            )
            assert refused.status_code == status
            assert refused.json()["error"]["type"] == "invalid_request_error"
        assert (await running.client.post("/v1/explain", content=b"{}")).status_code == 415


@pytest.mark.parametrize(("window", "why"), [(100_000, "below"), (20_000, "unseen")])
def test_the_size_of_a_history_is_told_without_a_running_gateway(window: int, why: str) -> None:
    settings: dict[str, Json] = {
        **NATIVE,
        "compress": {"enabled": True},
        "models": {"n": {"backend": "chat", "context_length": window}},
    }
    told = explain_request(
        msgspec.json.encode({"model": "n", "messages": agent_history(40)}), read_settings(settings), {}
    )
    assert told.state is not None and told.state.summary is not None
    summary = told.state.summary
    assert (summary.window, summary.why_not, summary.root) == (window, why, None)
    assert (summary.would_cover is None) is (why == "below")
    assert f"tokens of {window}" in explain_text(told, [])
    assert plan(LOOP, NATIVE).state is None


def test_opaque_state_is_explained_as_it_would_be_sent() -> None:
    settings = read_settings(NATIVE)
    for label, sent in ((settings.backends["chat"].state_label, "c3RhdGU="), (f"Dragoman{0:016}", None)):
        signed: dict[str, Any] = {**CALL, "extra_content": {"google": {"thought_signature": f"{label}c3RhdGU="}}}
        told = plan([*LOOP[:2], {**LOOP[2], "tool_calls": [signed]}, LOOP[3]], settings)
        message: Any = told.wire[2]
        state = None if sent is None else {"google": {"thought_signature": sent}}
        assert message["tool_calls"][0].get("extra_content") == state
        assert ("STATE_FOREIGN" in rules(told)) == (sent is None)


def test_a_system_message_that_is_sent_as_text_of_the_user_shows_the_role_it_had() -> None:
    settings: dict[str, Json] = {
        "backends": {"a": {"adapter": "anthropic_messages", "base_url": "http://host"}},
        "models": {
            "old": {"backend": "a", "name": "claude-opus-4-1"},
            "new": {"backend": "a", "name": "claude-opus-5"},
        },
    }
    notice: dict[str, Any] = {"role": "developer", "content": "Be quick."}
    messages = [*LOOP[:2], notice, {"role": "assistant", "content": "Hm."}, LOOP[1]]
    told = plan(messages, settings, model="old")
    assert told.trimmed[2] == notice
    assert [(one.index, "developer" in one.detail) for one in told.diagnostics if one.rule == "SYSTEM_AS_USER"] == [
        (2, True)
    ]
    assert "developer: Be quick." in explain_text(told, messages)
    assert "SYSTEM_AS_USER" not in rules(plan(messages, settings, model="new"))


def test_what_only_the_backends_provider_refuses_is_named() -> None:
    """The adapter leaves it out; a client that asks the provider without the gateway gets a 400."""
    thought: Json = {"type": "thinking", "thinking": "Hm"}
    blank: Json = {"type": "text", "text": ""}
    said: Json = [thought, blank, {"type": "text", "text": "Yes."}]
    messages: list[Json] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": said}]
    body: Json = {"model": "m", "max_tokens": 9, "messages": [*messages, {"role": "user", "content": "Well?"}]}
    found: dict[str, list[str]] = {}
    for adapter in ("anthropic_messages", "openai_chat"):
        backends: Json = {"b": {"adapter": adapter, "base_url": "http://x", "profile": "none"}}
        settings = read_settings({"backends": backends, "models": {"m": {"backend": "b"}}})
        data = msgspec.json.encode(body)
        told = explain_request(data, settings, load_adapters(settings), load_dialect("anthropic_messages"))
        found[adapter] = [one.rule for one in told.violations]
    assert found == {
        "anthropic_messages": ["THINKING_UNSIGNED", "TEXT_BLANK"],
        "openai_chat": ["THINKING_UNSIGNED"],
    }
