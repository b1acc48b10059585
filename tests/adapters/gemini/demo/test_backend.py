"""The demo backend refuses what the API refuses."""

from typing import Any

import httpx
import pytest

from gateway.demo.serve import serve_demo

CALL: Any = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
RESPONSE: Any = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "x"}}}]}
USER: Any = {"role": "user", "parts": [{"text": "Hello"}]}


async def asked(contents: Any, verb: str = "generateContent", **fields: Any) -> httpx.Response:
    async with serve_demo("gemini") as backend, httpx.AsyncClient(trust_env=False) as client:
        return await client.post(f"{backend.base_url}/models/m:{verb}", json={"contents": contents, **fields})


@pytest.mark.parametrize("contents", [[USER], [USER, CALL, RESPONSE]])
async def test_a_sound_request_is_answered(contents: Any) -> None:
    answer = (await asked(contents)).json()
    assert answer["candidates"][0]["finishReason"] == "STOP" and answer["usageMetadata"]["totalTokenCount"]


@pytest.mark.parametrize(
    "contents",
    [
        [],
        [{"role": "system", "parts": [{"text": "x"}]}],
        [{"role": "user", "parts": []}],
        [USER, CALL],
        [USER, RESPONSE],
        [CALL, RESPONSE],
        [USER, CALL, USER, RESPONSE],
        [USER, CALL, {"role": "user", "parts": [{"functionResponse": {"response": {}}}]}],
    ],
)
async def test_a_request_that_breaks_the_rules_is_refused(contents: Any) -> None:
    answer = await asked(contents)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("verb", ["predict", "streamGenerateContent", "streamGenerateContent?alt=json"])
async def test_another_form_is_not_served(verb: str) -> None:
    assert (await asked([USER], verb)).status_code == 404


async def test_stop_sequences_cut_the_answer_and_an_empty_one_cuts_nothing() -> None:
    whole = (await asked([USER])).json()["candidates"][0]["content"]["parts"][0]["text"]
    config = {"stopSequences": ["", whole[5:9]]}
    (candidate,) = (await asked([USER], generationConfig=config)).json()["candidates"]
    assert candidate["content"]["parts"] == [{"text": whole.partition(whole[5:9])[0]}]
