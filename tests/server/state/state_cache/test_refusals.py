"""What happens to state that a provider refuses, and what is said before it can refuse."""

from tests.server.state.state_cache.scene import ASK, LOST, SIGNED, THOUGHT, Scene, call, dropped, results, said


async def test_what_is_refused_is_not_sent_again(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    scene.provider.refusal = "Corrupted thought signature."
    refused = await scene.ask(ASK, dropped(SIGNED), *results("call_1"), model="g")
    error = refused.json()["error"]
    assert (refused.status_code, error["rule"]) == (400, "STATE_INVALID")
    assert "unchanged" in error["advice"]
    # One request, and no second one behind the client's back.
    assert len(scene.backend.seen) == 2
    scene.provider.refusal = ""
    ((message,), rules) = await scene.sent(ASK, dropped(SIGNED), *results("call_1"), model="g")
    assert (message, rules) == (dropped(SIGNED), [LOST])
    assert await scene.outcomes("refused") == 1


async def test_a_refusal_for_another_reason_drops_nothing(scene: Scene) -> None:
    await scene.answered(SIGNED, model="g")
    scene.provider.refusal = "The model is too tired."
    assert (await scene.ask(ASK, dropped(SIGNED), *results("call_1"), model="g")).status_code == 400
    scene.provider.refusal = ""
    _, rules = await scene.sent(ASK, dropped(SIGNED), *results("call_1"), model="g")
    assert rules == ["STATE_RESTORED"]


async def test_what_is_missing_is_told_before_the_provider_refuses_it(scene: Scene) -> None:
    scene.provider.refusal = "The reasoning_content in the thinking mode must be passed back to the API."
    response = await scene.ask(ASK, dropped(THOUGHT), *results("call_1"))
    error = response.json()["error"]
    assert (response.status_code, error["rule"]) == (400, "REASONING_MISSING")
    assert "keeper" in error["advice"]
    assert [(one["rule"], one["index"]) for one in error["diagnostics"] if one["stage"] == "state"] == [(LOST, 1)]


async def test_explain_tells_what_would_be_put_back_and_counts_nothing(scene: Scene) -> None:
    await scene.answered(THOUGHT)
    lost = said(call("call_2"), content="")
    messages = [ASK, dropped(THOUGHT), *results("call_1"), lost, *results("call_2")]
    response = await scene.gateway.client.post("/v1/explain", json={"model": "m", "messages": messages})
    told = response.json()
    rules = [(one["rule"], one["index"]) for one in told["diagnostics"] if one["stage"] == "state"]
    assert rules == [("STATE_RESTORED", 1), (LOST, 3)]
    assert told["wire"][1]["reasoning_content"] == "Rome it is."
    assert (await scene.outcomes("restored"), len(scene.backend.seen)) == (0, 1)
