"""Broken histories of real clients are repaired, reported and valid at the backend, or rejected by rule."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import msgspec
import pytest
import pytest_asyncio

import gateway
from gateway.core.conversation import Json, JsonObject
from gateway.diagnostics.lint import lint
from tests.e2e.checkers import check_chat, check_log, check_text
from tests.e2e.demo_gateway import AGENTS, POLICIES, STREAMED, WHOLE, DemoGateway, body_of, demo_gateway, query_of, user

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS: Final = ("flat", "structured", "chat")


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`notices`: those of repair, as (action, rule, index). `culprit`: param, rule and id of the refusal in strict
    mode; None for a valid history. `kept` are words that the backend must receive."""

    messages: list[Any]
    notices: list[tuple[str, str, int]]
    culprit: tuple[str, str, str | None] | None
    kept: tuple[str, ...] = ()


def made(*calls: tuple[str, str, Json], content: Json = "") -> JsonObject:
    """An assistant turn with calls."""
    listed: list[Json] = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": listed}


def result(call_id: str, content: Json) -> JsonObject:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def said(text: str) -> JsonObject:
    return {"role": "assistant", "content": text}


SYSTEM: Final[JsonObject] = {"role": "system", "content": "Be brief."}
PARIS: Final = '{"city": "Paris"}'
ROME: Final = '{"city": "Rome"}'

CASES: Final[Mapping[str, Case]] = {
    "a compaction left a result without its call": Case(
        messages=[SYSTEM, user("Summary: it was hot."), result("c1", "42 degrees"), said("It is 42."), user("Why?")],
        notices=[("changed", "TOOL_ORPHAN", 2)],
        culprit=("messages[2].role", "TOOL_ORPHAN", "c1"),
        kept=("42 degrees", "c1"),
    ),
    "an abort left a call without its result": Case(
        messages=[user("Weather?"), made(("c1", "get_weather", PARIS)), user("Stop. Say hello instead.")],
        notices=[("added", "CALLS_UNANSWERED", 1)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "c1"),
        kept=("get_weather", "Stop. Say hello instead."),
    ),
    "a retry stored a result twice": Case(
        messages=[user("Weather?"), made(("c1", "get_weather", PARIS)), result("c1", "18 C"), result("c1", "19 C")],
        notices=[("dropped", "TOOL_ID_DUPLICATE", 3)],
        culprit=("messages[3].tool_call_id", "TOOL_ID_DUPLICATE", "c1"),
        kept=("18 C",),
    ),
    "the results of one batch came in another order": Case(
        messages=[
            user("Weather?"),
            made(("c1", "get_weather", PARIS), ("c2", "get_weather", ROME)),
            result("c2", "22 in Rome"),
            result("c1", "18 in Paris"),
            user("So?"),
        ],
        notices=[],
        culprit=None,
        kept=("22 in Rome", "18 in Paris"),
    ),
    "two rounds were interlocked": Case(
        messages=[
            user("Weather?"),
            made(("c1", "get_weather", PARIS)),
            made(("c2", "get_weather", ROME)),
            result("c1", "18 in Paris"),
            result("c2", "22 in Rome"),
        ],
        notices=[("moved", "TOOL_ID_UNKNOWN", 3)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "c1"),
        kept=("18 in Paris", "22 in Rome"),
    ),
    "the user spoke between the call and its result": Case(
        messages=[user("Weather?"), made(("c1", "get_weather", PARIS)), user("Hurry up!"), result("c1", "18 C")],
        notices=[("moved", "TOOL_ORPHAN", 3)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "c1"),
        kept=("Hurry up!", "18 C"),
    ),
    "every round counts its ids from the beginning": Case(
        messages=[
            user("Paris?"),
            made(("call_1", "get_weather", PARIS)),
            result("call_1", "18 in Paris"),
            said("18."),
            user("Rome?"),
            made(("call_1", "get_weather", ROME)),
            result("call_1", "22 in Rome"),
        ],
        notices=[("changed", "CALL_ID_DUPLICATE", 5)],
        culprit=("messages[5].tool_calls[0].id", "CALL_ID_DUPLICATE", "call_1"),
        kept=("18 in Paris", "22 in Rome"),
    ),
    "contents are null, absent or lists": Case(
        messages=[
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": [{"type": "text", "text": "Weather"}, {"type": "text", "text": "please?"}]},
            made(("c1", "get_weather", PARIS), content=None),
            result("c1", None),
            made(("c2", "get_weather", ROME), content=[{"type": "text", "text": "Once more."}]),
            result("c2", [{"type": "text", "text": "22 in Rome"}]),
        ],
        notices=[("changed", "CONTENT_MISSING", 3)],
        culprit=("messages[3].content", "CONTENT_MISSING", None),
        kept=("Weather", "please?", "Once more.", "22 in Rome"),
    ),
    "arguments were stored as an object": Case(
        messages=[user("Weather?"), made(("c1", "get_weather", {"city": "Zürich", "days": 3})), result("c1", "18 C")],
        notices=[("changed", "CALL_ARGS_TYPE", 1)],
        culprit=("messages[1].tool_calls[0].function.arguments", "CALL_ARGS_TYPE", "c1"),
        kept=("Zürich", "18 C"),
    ),
    "the tail was cut inside a batch": Case(
        messages=[
            user("Weather?"),
            made(("c1", "get_weather", PARIS), ("c2", "get_weather", ROME)),
            result("c1", "18 in Paris"),
        ],
        notices=[("added", "CALLS_UNANSWERED", 1)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "c2"),
        kept=("18 in Paris",),
    ),
    "the head was cut inside a batch": Case(
        messages=[result("c2", "22 in Rome"), said("Paris 18, Rome 22."), user("Thanks. And Oslo?")],
        notices=[("changed", "TOOL_ORPHAN", 0)],
        culprit=("messages[0].role", "TOOL_ORPHAN", "c2"),
        kept=("22 in Rome", "Paris 18, Rome 22."),
    ),
    "a call was interrupted inside its arguments": Case(
        messages=[user("Weather?"), made(("c1", "get_weather", '{"city": "Par')), user("Go on.")],
        notices=[("added", "CALLS_UNANSWERED", 1)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "c1"),
        kept=('{"city": "Par', "Go on."),
    ),
    "the assistant's turn was stored without its calls": Case(
        messages=[user("Weather?"), said("Let me look."), result("c1", "18 C"), result("c2", "22 C")],
        notices=[("changed", "TOOL_ORPHAN", 2), ("changed", "TOOL_ORPHAN", 3)],
        culprit=("messages[2].role", "TOOL_ORPHAN", "c1"),
        kept=("18 C", "22 C", "Let me look."),
    ),
    "a result lost its id": Case(
        messages=[
            user("Weather?"),
            made(("c1", "get_weather", PARIS)),
            {"role": "tool", "content": "18 C"},
            user("So?"),
        ],
        notices=[("changed", "TOOL_ID_MISSING", 2)],
        culprit=("messages[2].tool_call_id", "TOOL_ID_MISSING", None),
        kept=("18 C",),
    ),
    "a result's id was typed anew": Case(
        messages=[user("Weather?"), made(("toolu_01", "get_weather", PARIS)), result("toolu_O1", "18 C"), user("So?")],
        notices=[("added", "CALLS_UNANSWERED", 1), ("changed", "TOOL_ID_UNKNOWN", 2)],
        culprit=("messages[1].tool_calls", "CALLS_UNANSWERED", "toolu_01"),
        kept=("18 C", "toolu_O1"),
    ),
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def demo() -> AsyncIterator[DemoGateway]:
    agents = {name: AGENTS[name] for name in ("flat", "structured")}
    async with demo_gateway(agents, POLICIES) as opened:
        yield opened


def received(demo: DemoGateway, model: str) -> dict[str, Json]:
    backend = demo.chat if model.startswith("chat") else demo.agent
    return body_of(backend.requests[-1])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CASES)
async def test_a_broken_history_is_answered_and_every_change_is_told(demo: DemoGateway, name: str, model: str) -> None:
    case = CASES[name]
    for fields in (WHOLE, STREAMED):
        answer = await demo.ask(model, case.messages, fields, explain=True)
        assert (answer.status, answer.error, answer.finish) == (200, None, "stop")
        assert answer.text
        found = msgspec.convert(answer.said["diagnostics"], list[dict[str, Any]])
        repairs = [(entry["action"], entry["rule"], entry["index"]) for entry in found if entry["stage"] == "repair"]
        assert repairs == case.notices
        counted = re.search(r"repair=(\d+)", answer.changes)
        assert int(counted.group(1) if counted else 0) == len(case.notices)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CASES)
async def test_what_the_backend_receives_is_a_valid_history(demo: DemoGateway, name: str, model: str) -> None:
    case = CASES[name]
    await demo.ask(model, case.messages)
    body = received(demo, model)
    if model == "chat":
        check_chat(body["messages"])
    elif model == "structured":
        check_log(body)
    else:
        check_text(query_of(demo.agent.requests[-1]))
    sent = json.dumps(body, ensure_ascii=False).replace("\\", "")
    assert [words for words in case.kept if words not in sent] == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", CASES)
async def test_a_strict_route_refuses_by_name_and_sends_nothing(demo: DemoGateway, name: str, model: str) -> None:
    case = CASES[name]
    before = len(demo.agent.requests) + len(demo.chat.requests)
    answer = await demo.ask(f"{model}-strict", case.messages, STREAMED)
    if case.culprit is None:
        assert (answer.status, answer.error) == (200, None)
        return
    param, rule, call_id = case.culprit
    assert answer.error is not None
    assert (answer.status, answer.error["type"], answer.error["param"]) == (400, "invalid_request_error", param)
    assert (answer.error["rule"], answer.error["tool_call_id"]) == (rule, call_id)
    message = str(answer.error["message"])
    assert param.partition(".")[0] in message and rule in message and (call_id is None or call_id in message)
    assert len(demo.agent.requests) + len(demo.chat.requests) == before


@pytest.mark.parametrize("name", CASES)
async def test_explaining_and_linting_tell_the_same(name: str) -> None:
    case = CASES[name]
    explanation = gateway.plan(case.messages)
    repairs = [notice for notice in explanation.diagnostics if notice.stage == "repair"]
    assert [(notice.action, notice.rule, notice.index) for notice in repairs] == case.notices
    assert explanation.error is None
    check_chat([dict(message) for message in explanation.repaired])
    found = [(entry.violation.param, entry.violation.rule) for entry in lint("x", json.dumps(case.messages).encode())]
    assert found == [(violation.param, violation.rule) for violation in explanation.violations]
    assert found[:1] == ([] if case.culprit is None else [case.culprit[:2]])


async def test_a_sound_history_reaches_a_chat_backend_as_it_was(demo: DemoGateway) -> None:
    """Only what must change changes: also the order of keys, unknown fields and odd ids stay."""
    messages: list[JsonObject] = [
        {"content": "Be brief.", "role": "developer", "cache_control": {"type": "ephemeral"}},
        {"role": "user", "content": [{"type": "text", "text": "Weather?"}], "name": "ada"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "functions.get_weather:0",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":  "Paris"}'},
                    "extra_content": {"google": {"thought_signature": "c2ln"}},
                }
            ],
            "reasoning_content": "hm",
        },
        {"tool_call_id": "functions.get_weather:0", "role": "tool", "content": "18 C"},
    ]
    answer = await demo.ask("chat", messages)
    assert received(demo, "chat")["messages"] == messages and answer.changes == ""


async def test_repaired_answers_stay_with_their_own_calls(demo: DemoGateway) -> None:
    case = CASES["every round counts its ids from the beginning"]
    await demo.ask("flat", case.messages)
    query = query_of(demo.agent.requests[-1])
    assert [query.index(words) for words in ("Paris?", "18 in Paris", "Rome?", "22 in Rome")] == sorted(
        query.index(words) for words in ("Paris?", "18 in Paris", "Rome?", "22 in Rome")
    )


async def test_a_short_memory_never_cuts_inside_a_round(demo: DemoGateway) -> None:
    """Many rounds, a limit at every place: what is left is valid, and the question is there."""
    messages: list[JsonObject] = [SYSTEM]
    for number in range(6):
        messages += [
            user(f"Question {number}?"),
            made((f"a{number}", "get_weather", PARIS), (f"b{number}", "get_weather", ROME)),
            result(f"b{number}", "22"),
            result(f"a{number}", "18"),
            said(f"Answer {number}."),
        ]
    messages.append(user("The last question?"))
    for ending in range(len(messages) - 12, len(messages) + 1):
        part = messages[:ending]
        if part[-1]["role"] == "assistant":
            continue
        for model in ("flat-short", "structured-short"):
            answer = await demo.ask(model, part)
            assert answer.status == 200, answer.error
            assert "trim=" in answer.changes
            request = demo.agent.requests[-1]
            check_text(query_of(request)) if model == "flat-short" else check_log(request.summary)
            asked = [str(message["content"]) for message in part if message["role"] == "user"][-1]
            assert asked in str(request.summary)
