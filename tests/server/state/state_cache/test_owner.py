"""State goes only to the model and the credential that made it, and to the client key that caused it."""

import pytest

from gateway.core.conversation import Json
from gateway.settings import read_settings
from tests.server.state.state_cache.scene import ASK, LOST, SIGNED, THOUGHT, Scene, Start, dropped, results, settings


@pytest.mark.parametrize("model", ["m2", "other"])
async def test_no_state_goes_to_another_model_or_credential(scene: Scene, model: str) -> None:
    await scene.answered(THOUGHT)
    ((message,), rules) = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), model=model)
    assert ("reasoning_content" in message, rules) == (False, [LOST])
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == ["STATE_RESTORED"]


async def test_a_signature_of_another_model_that_the_client_carries_is_dropped(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g2")
    assert (message, rules) == (dropped(SIGNED), ["STATE_FOREIGN"])
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g")
    assert (message, rules) == (SIGNED, ["STATE_PRESENT"])


async def test_a_signature_of_unknown_origin_is_the_clients_own_matter(scene: Scene) -> None:
    ((message,), rules) = await scene.sent(ASK, SIGNED, *results("call_1"), model="g")
    assert (message, rules) == (SIGNED, ["STATE_PRESENT"])


async def test_another_credential_after_a_reload_gets_nothing_either(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.answered(THOUGHT)
    monkeypatch.setenv("KEEPER_TEST_KEY", "sk-another-one")
    changed = settings(scene.backend.base_url, log={"file": None})
    changed["server"] = {"api_keys_env": None}
    backends = changed["backends"]
    assert isinstance(backends, dict)
    # An entry that differs makes a new backend.
    backends["m"] = {**backends["m"], "max_concurrent": 7}  # type: ignore[dict-item]
    await scene.gateway.app.gateway_state.change(read_settings(changed))
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"))
    assert rules == [LOST]


async def test_no_key_gets_the_state_of_another_one(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPER_TEST_CLIENTS", "one-secret-key,two-secret-key,three-secret-key")
    keys: dict[str, Json] = {"env-3": {"keeper": False}}
    scene = await start(server={"api_keys_env": "KEEPER_TEST_CLIENTS"}, keys=keys)
    one, two, three = [{"authorization": f"Bearer {name}-secret-key"} for name in ("one", "two", "three")]
    await scene.answered(THOUGHT, headers=one)
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=two)
    assert rules == [LOST]
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=one)
    assert rules == ["STATE_RESTORED"]
    _, rules = await scene.sent(ASK, dropped(THOUGHT), *results("call_1"), headers=three)
    assert rules == []
