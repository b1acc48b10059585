"""Where the marks of a prompt cache are placed: at places behind which a growing request keeps its bytes."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings

from gateway.core.conversation import Conversation, Reasoning, Text, Turn
from gateway.core.policy import Policy, PromptCache
from gateway.core.provider_state import with_provider_state
from gateway.exchange import Exchange
from gateway.providers.registry import PROFILES
from gateway.testing.dialect_case import DialectCase
from tests.prompt_caches.provider_caches import MARKS
from tests.prompt_caches.test_cached_part import CHAT, MESSAGES, OPENROUTER, QWEN, RESPONSES, UNLIMITED, Backend
from tests.test_stable_prefix import CLIENTS, TOOL, histories
from tests.tiers import sample

PLACED: Final = msgspec.structs.replace(UNLIMITED, prompt_cache=PromptCache(breakpoints=True))
OWN: Final = {"anthropic_messages": "anthropic_messages", "openai_responses": "openai_responses"}
PAIRS: Final = [
    (backend, case)
    for backend in (MESSAGES, OPENROUTER, QWEN, CHAT, RESPONSES)
    for case in CLIENTS
    if str(case) != OWN.get(backend.adapter) and (backend is not CHAT or str(case) != "openai_chat")
]


def without_marks(value: Any) -> Any:
    if isinstance(value, list):
        return [without_marks(one) for one in value]
    if isinstance(value, dict):
        return {name: without_marks(inner) for name, inner in value.items() if name not in MARKS}
    return value


def messages_of(body: Any) -> list[Any]:
    found: list[Any] = body.get("messages") or body["input"]
    return found


def marked(value: Any) -> int:
    """How many marks stand in a value."""
    if isinstance(value, list):
        return sum(map(marked, value))
    if isinstance(value, dict):
        return sum(name in MARKS or marked(inner) for name, inner in value.items())
    return 0


def body_of(backend: Backend, case: DialectCase, turns: Sequence[Turn], policy: Policy = PLACED) -> Any:
    if "later system" in case.lacks:
        turns = [turn for at, turn in enumerate(turns) if at == 0 or turn.role not in ("system", "developer")]
    written = Conversation(tuple(turns), (TOOL,), model="model")
    asked = msgspec.structs.replace(case.decode(case.write(written), written).conversation, model=backend.model)
    policy = msgspec.structs.replace(policy, profile=PROFILES[backend.profile])
    return json.loads(Exchange(backend.load(), asked, policy).request.body)


@sample()
@pytest.mark.parametrize(("backend", "case"), PAIRS, ids=[f"{backend.name}-{case}" for backend, case in PAIRS])
@settings(max_examples=settings().max_examples // 5)
@given(turns=histories())
def test_the_bytes_before_a_mark_are_those_of_the_request_before(
    backend: Backend, case: DialectCase, turns: tuple[Turn, ...]
) -> None:
    answered = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    bodies = [body_of(backend, case, turns[:at]) for at in (*answered, len(turns))]
    for shorter, longer in itertools.pairwise(bodies):
        for name in ("tools", "system"):
            assert without_marks(longer.get(name)) == without_marks(shorter.get(name))
        begun, grown = messages_of(shorter), messages_of(longer)
        assert json.dumps(without_marks(grown[: len(begun)])) == json.dumps(without_marks(begun))
        assert 1 <= marked(longer) <= 4
        # Where the request before ended, this one looks into the cache.
        end = max(at for at, message in enumerate(begun) if marked(message))
        assert marked(grown[end]) == 1


def plain(*turns: Turn) -> tuple[Turn, ...]:
    return (Turn("system", (Text("Be brief."),)), *turns)


CHAT_CLIENT: Final = next(case for case in CLIENTS if str(case) == "openai_chat")


def test_the_four_places_of_a_messages_request() -> None:
    body = body_of(
        MESSAGES,
        CHAT_CLIENT,
        plain(
            Turn("user", (Text("one"),)),
            Turn("assistant", (Text("two"),)),
            Turn("user", (Text("three"),)),
            Turn("assistant", (Text("four"),)),
            Turn("user", (Text("five"),)),
        ),
    )
    mark = {"cache_control": {"type": "ephemeral"}}
    assert body["tools"][-1]["cache_control"] == mark["cache_control"]
    assert body["system"] == [{"type": "text", "text": "Be brief.", **mark}]
    texts = [part for message in body["messages"] for part in message["content"] if isinstance(part, dict)]
    assert [part["text"] for part in texts if "cache_control" in part] == ["three", "five"]


def test_no_mark_is_placed_off_the_setting_or_beside_marks_of_the_client() -> None:
    turns = plain(Turn("user", (Text("one"),)))
    assert marked(body_of(MESSAGES, CHAT_CLIENT, turns, UNLIMITED)) == 0
    part = {"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [part]}]
    for backend in (MESSAGES, OPENROUTER):
        policy = msgspec.structs.replace(PLACED, profile=PROFILES[backend.profile])
        asked = CHAT_CLIENT.decode_saved(json.dumps({"model": "m", "messages": messages}).encode()).conversation
        body = json.loads(Exchange(backend.load(), asked, policy).request.body)
        assert marked(body) == 1
        assert body["messages"][-1]["content"] == [part]


@pytest.mark.parametrize("field", [{"cache_control": {"type": "ephemeral"}}, {"prompt_cache_options": {"ttl": "30m"}}])
def test_no_mark_is_placed_beside_a_field_of_the_client(field: Mapping[str, Any]) -> None:
    messages = [{"role": "user", "content": "one"}]
    request = json.dumps({"model": "m", "messages": messages, **field}).encode()
    asked = CHAT_CLIENT.decode_saved(request).conversation
    body = json.loads(Exchange(MESSAGES.load(), asked, PLACED).request.body)
    assert body["messages"] == messages
    assert body["cache_control"] == {"type": "ephemeral", **({"ttl": "1h"} if "prompt_cache_options" in field else {})}


def test_a_client_of_the_backends_own_api_places_its_own_marks() -> None:
    turns = plain(Turn("user", (Text("one"),)))
    own = {str(case): case for case in CLIENTS}
    for backend, name in ((MESSAGES, "anthropic_messages"), (RESPONSES, "openai_responses"), (CHAT, "openai_chat")):
        assert marked(body_of(backend, own[name], turns)) == 0
    # `cache_control` is no part of chat completions: its clients cannot know of it.
    assert marked(body_of(OPENROUTER, own["openai_chat"], turns)) == 2


def test_a_model_without_marks_gets_none() -> None:
    turns = plain(Turn("user", (Text("one"),)))
    for backend in (CHAT, RESPONSES):
        older = msgspec.structs.replace(backend, model="gpt-5.1")
        client = next(case for case in CLIENTS if str(case) == "anthropic_messages")
        assert marked(body_of(older, client, turns)) == 0
        assert marked(body_of(backend, client, turns)) == 2


def test_thinking_and_blank_text_take_no_mark() -> None:
    thought = Reasoning("hm", extra=with_provider_state("anthropic", {"signature": "s"}))
    turns = plain(
        Turn("user", (Text("one"),)),
        Turn("assistant", (thought, Text("two"))),
        Turn("user", (Text("three"),)),
        Turn("assistant", (thought,)),
    )
    body = body_of(MESSAGES, CHAT_CLIENT, turns)
    assert [marked(message) for message in body["messages"]][:3] == [1, 0, 1]
    body = body_of(OPENROUTER, CHAT_CLIENT, plain(Turn("user", (Text("one"),)), Turn("user", (Text("  "),))))
    assert [marked(message) for message in body["messages"]] == [1, 1, 0]
    assert body["messages"][2]["content"] == "  "


def test_a_notice_names_the_places() -> None:
    asked = CHAT_CLIENT.decode_saved(b'{"model": "m", "messages": [{"role": "user", "content": "one"}]}').conversation
    told = [one for one in Exchange(MESSAGES.load(), asked, PLACED).notices if one.rule == "CACHE_MARKS_PLACED"]
    assert [(one.action, one.level, one.detail) for one in told] == [
        ("added", "debug", "cache_control is placed at the end of this request")
    ]
