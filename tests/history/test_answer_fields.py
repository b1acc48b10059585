"""The fields of a response's choice are not sent back as part of a message."""

import json

import pytest

from adapters.openai_chat.client.decode import decode
from adapters.openai_chat.messages import encode_turn
from gateway.core.conversation import Json, JsonObject
from gateway.history.apply_profile import apply_profile
from gateway.providers.profile import NEUTRAL, Profile
from gateway.providers.registry import PROFILES

CALL: JsonObject = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "a", "content": "found"}
PLAIN: JsonObject = {"role": "assistant", "content": "I look.", "tool_calls": [dict(CALL)]}
PROVIDERS = [name for name in PROFILES if name != "none"]


def _sent(message: JsonObject, profile: Profile) -> tuple[JsonObject, list[str]]:
    asked: list[Json] = [{"role": "user", "content": "question"}, dict(message), dict(RESULT)]
    profiled = apply_profile(decode(json.dumps({"model": "m", "messages": asked}).encode()), profile)
    (sent,) = encode_turn(profiled.conversation.turns[1], profile)
    return sent, [notice.detail for notice in profiled.notices if notice.rule == "CHOICE_FIELDS_DROPPED"]


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"index": 0, "finish_reason": "tool_calls"}, "finish_reason, index"),
        ({"logprobs": None}, "logprobs"),
        ({"tool_calls": [{"index": 0, **CALL}]}, "index"),
    ],
)
def test_fields_of_an_answer_do_not_go_back_to_a_provider(name: str, fields: JsonObject, told: str) -> None:
    sent, details = _sent({**PLAIN, **fields}, PROFILES[name])
    assert sent == _sent(PLAIN, PROFILES[name])[0]
    assert details == [f"{told} of an earlier response not sent"]


@pytest.mark.parametrize("name", PROVIDERS)
def test_other_fields_that_nobody_knows_stay(name: str) -> None:
    sent, _ = _sent({**PLAIN, "finish_reason": "stop", "annotations": [1]}, PROFILES[name])
    assert sent["annotations"] == [1] and "finish_reason" not in sent


def test_without_a_profile_a_message_goes_out_as_it_came() -> None:
    message = {**PLAIN, "index": 0, "finish_reason": "tool_calls"}
    assert _sent(message, NEUTRAL) == (message, [])


def test_a_message_without_them_keeps_its_source() -> None:
    body = json.dumps({"model": "m", "messages": [{"role": "assistant", "content": "answer"}]}).encode()
    given = decode(body).turns
    assert apply_profile(decode(body), Profile(choice_fields="drop")).conversation.turns == given
    assert given[0].source is not None
