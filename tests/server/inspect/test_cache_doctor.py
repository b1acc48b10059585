"""Of each conversation the first message is found where the prompt differs from the one before, who changed it, and
what it cost: with real requests through a gateway."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, cast

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_routes import DEMO
from tests.server.summaries.scripted import Agent, agent_history, compressing_gateway

LONG: Final = "The service reads its settings from three files, in this order. " * 40
SYSTEM: Final[Json] = {"role": "system", "content": f"You are an agent. Today is Monday. {LONG}"}
TOOLS: Final[list[Json]] = [
    {"type": "function", "function": {"name": name, "description": f"{name}: {LONG}", "parameters": {"type": "object"}}}
    for name in ("read", "write", "list")
]
OTHER_WRITE: Final[Json] = {"type": "function", "function": {"name": "write", "parameters": {"type": "string"}}}
PRICE: Final[Json] = {"input": 3, "output": 15, "cached_input": 0.5, "currency": "EUR"}


def user(text: str) -> dict[str, Json]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Json]:
    return {"role": "assistant", "content": text}


def talk(turns: int, system: Json = SYSTEM) -> list[Json]:
    """Returns a conversation of so many questions, with an answer between each."""
    said: list[Json] = [system, user(f"Question 0. {LONG}")]
    for number in range(1, turns):
        said += [assistant(f"Answer {number}. {LONG}"), user(f"Question {number}. {LONG}")]
    return said


def calls(*ids: str) -> dict[str, Json]:
    made: list[Json] = [
        {"id": one, "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": one})}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> dict[str, Json]:
    return {"role": "tool", "tool_call_id": call_id, "content": f"The file {call_id}. {LONG}"}


class Client:
    """A client of one gateway. What is found of a request is in the list of the inspector."""

    def __init__(self, gateway: RunningGateway) -> None:
        self.gateway = gateway

    async def ask(
        self, messages: Sequence[Json], model: str = "demo-chat", headers: Mapping[str, str] = {}, **fields: Json
    ) -> dict[str, Any] | None:
        """Sends a request; returns what is found of it."""
        response = await self.gateway.client.post(
            "/v1/chat/completions", json={"model": model, "messages": messages, **fields}, headers=headers
        )
        assert response.status_code == 200, response.text
        return await self.found(response.headers["x-request-id"])

    async def ask_messages(self, messages: Sequence[Json], **fields: Json) -> dict[str, Any] | None:
        """Sends a request of the Messages API."""
        body = {"model": "demo-messages", "max_tokens": 2000, "messages": messages, **fields}
        response = await self.gateway.client.post("/v1/messages", json=body)
        assert response.status_code == 200, response.text
        return await self.found(response.headers["x-request-id"])

    async def found(self, request_id: str) -> dict[str, Any] | None:
        detail = (await self.gateway.client.get(f"/inspect/api/requests/{request_id}")).json()
        return cast("dict[str, Any] | None", detail["summary"]["cache"])

    async def counted(self, name: str) -> dict[str, float]:
        """Returns a metric by its labels."""
        lines = (await self.gateway.client.get("/metrics")).text.splitlines()
        split = (line.rsplit(" ", 1) for line in lines if line.startswith(f"gateway_prompt_cache_{name}{{"))
        return {labels.partition("{")[2].rstrip("}"): float(value) for labels, value in split}


@asynccontextmanager
async def client_of(**settings: Any) -> AsyncIterator[Client]:
    """Runs a gateway with the demo backends whose models have a price."""
    models = cast("dict[str, dict[str, Json]]", DEMO["models"])
    priced: Json = {name: {**entry, "price": PRICE} for name, entry in models.items()}
    async with running_gateway({**DEMO, "models": priced, "inspector": {"contents": "always"}, **settings}) as gateway:
        yield Client(gateway)


async def test_an_unchanged_prefix_and_a_first_request_are_no_finding() -> None:
    async with client_of() as client:
        for turns in (1, 2, 3, 3):
            assert await client.ask(talk(turns), tools=TOOLS) is None
        assert await client.counted("requests_total") == {'backend="demo-chat"': 3}
        assert await client.counted("breaks_total") == {}


async def test_a_date_in_the_system_prompt() -> None:
    async with client_of() as client:
        assert await client.ask(talk(2), tools=TOOLS) is None
        tuesday: Json = {
            "role": "system",
            "content": str(cast("dict[str, Json]", SYSTEM)["content"]).replace("Mon", "Tues"),
        }
        found = await client.ask(talk(3, tuesday), tools=TOOLS)
        assert found is not None
        assert (found["cause"], found["rule"], found["cached"]) == ("client_system", "", None)
        assert found["sentence"].startswith("The client changed the system text (block 0): about ")
        # Of three tools, the system text and five messages of one length, by the count of the demo backend.
        (newest, *_) = (await client.gateway.client.get("/inspect/api/requests")).json()["requests"]
        assert newest["cache"] == found
        share = newest["prompt_tokens"] / 9
        assert found["held"] == pytest.approx(3 * share, rel=0.1) and found["lost"] == pytest.approx(3 * share, rel=0.1)
        assert found["cost"] == {"amount": found["lost"] * 2.5 / 1e6, "currency": "EUR", "estimated": True}
        labels = 'backend="demo-chat",cause="client_system",rule="-"'
        assert await client.counted("breaks_total") == {labels: 1}
        assert await client.counted("lost_tokens_total") == {labels: found["lost"]}
        # What comes next is compared with the new one.
        assert await client.ask(talk(4, tuesday), tools=TOOLS) is None
        listed = (await client.gateway.client.get("/inspect/api/requests", params={"filter": "cache:client_*"})).json()
        assert listed["matching"] == 1


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ([TOOLS[1], TOOLS[0], TOOLS[2]], "changed the order from tools[0]"),
        (TOOLS[:2], "removed tools[2]"),
        ([*TOOLS, OTHER_WRITE], "added tools[3]"),
        ([TOOLS[0], OTHER_WRITE, TOOLS[2]], "changed tools[1]"),
    ],
)
async def test_tools_that_a_client_reorders_or_changes(tools: Json, said: str) -> None:
    async with client_of() as client:
        await client.ask(talk(2), tools=TOOLS)
        found = await client.ask(talk(3), tools=tools)
        assert found is not None and found["cause"] == "client_tools" and said in found["sentence"]


async def test_a_message_that_the_client_edits() -> None:
    async with client_of() as client:
        await client.ask(talk(4))
        edited = talk(4)
        edited[3] = user("Something else.")
        found = await client.ask(edited)
        assert found is not None
        assert found["cause"] == "client_messages" and "The client changed message [3]" in found["sentence"]


async def test_history_that_our_limit_removes() -> None:
    async with client_of(max_history_messages=6, trim_step=1) as client:
        assert await client.ask(talk(4), "demo-text") is None
        found = await client.ask(talk(5), "demo-text")
        assert found is not None
        assert (found["cause"], found["rule"]) == ("rule", "HISTORY_LIMITED")
        assert found["sentence"].startswith("The gateway removed message [2] by the rule HISTORY_LIMITED: about ")
        labels = 'backend="demo-text",cause="rule",rule="HISTORY_LIMITED"'
        assert await client.counted("breaks_total") == {labels: 1}


async def test_results_that_our_limit_removes() -> None:
    async with client_of(max_tool_results=2, trim_step=1, max_history_messages=None) as client:
        said: list[Json] = [SYSTEM, user("Read all.")]
        for number in range(2):
            said += [calls(f"c{number}"), result(f"c{number}")]
        assert await client.ask(said, "demo-text", tools=TOOLS) is None
        found = await client.ask([*said, calls("c2"), result("c2")], "demo-text", tools=TOOLS)
        assert found is not None
        assert (found["cause"], found["rule"]) == ("rule", "TOOL_RESULTS_LIMITED")
        assert "message [3]" in found["sentence"]


async def test_a_result_that_comes_late_and_is_moved() -> None:
    """The gateway wrote a result in its place before."""
    async with client_of() as client:
        said: list[Json] = [SYSTEM, user("Read."), calls("c0", "c1"), result("c0"), user(f"Go on. {LONG}")]
        assert await client.ask(said, tools=TOOLS) is None
        found = await client.ask([*said, result("c1"), user("And now?")], tools=TOOLS)
        assert found is not None and (found["cause"], found["rule"]) == ("rule", "TOOL_ORPHAN")


async def test_recent_results_in_the_system_prompt() -> None:
    async with client_of(recent_tool_results={"enabled": True}) as client:
        said: list[Json] = [SYSTEM, user("Read."), calls("c0"), result("c0")]
        await client.ask(said, tools=TOOLS)
        found = await client.ask([*said, calls("c1"), result("c1")], tools=TOOLS)
        assert found is not None
        assert (found["cause"], found["rule"]) == ("rule", "RECENT_RESULTS_ADDED")
        assert "system text" in found["sentence"]


@pytest.mark.parametrize("model", ["demo-messages", "demo-gemini", "demo-text"])
async def test_a_system_message_in_the_middle_keeps_the_prefix(model: str) -> None:
    async with client_of() as client:
        await client.ask(talk(2), model)
        later: list[Json] = [*talk(3)[:-1], {"role": "system", "content": "It is noon."}, user("Go on.")]
        assert await client.ask(later, model) is None


async def test_a_summary_that_comes_into_force() -> None:
    async with compressing_gateway({"inspector": {"contents": "always"}}) as (agent, _):
        causes = [await asked(agent, rounds) for rounds in (25, 26, 28, 29)]
        assert causes == [None, None, None, "summary"]


async def asked(agent: Agent, rounds: int) -> str | None:
    response = await agent.post(agent_history(rounds))
    await agent.settled()
    found = await Client(agent.gateway).found(response.headers["x-request-id"])
    return None if found is None else found["cause"]


async def test_another_model_and_the_way_back() -> None:
    async with client_of() as client:
        await client.ask(talk(2))
        found = await client.ask(talk(3), "demo-responses")
        assert found is not None and found["cause"] == "model" and found["held"] == 0
        assert "demo-chat/demo-chat and demo-responses/demo-responses" in found["sentence"]
        # The cache of the first model is still the one of the request before at that model.
        assert await client.ask(talk(4)) is None


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
        ({"output_config": {"effort": "low"}}, {"output_config": {"effort": "high"}}, "output_config.effort"),
        ({"tool_choice": {"type": "auto"}}, {"tool_choice": {"type": "any"}}, "tool_choice"),
        ({}, {"speed": "fast"}, "speed"),
    ],
)
async def test_a_field_on_which_the_cache_of_the_messages_api_depends(
    before: dict[str, Json], now: dict[str, Json], said: str
) -> None:
    """Anthropic, "Prompt caching", "What invalidates the cache"."""
    tools: Json = [{"name": "read", "description": LONG, "input_schema": {"type": "object"}}]
    system: Json = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    async with client_of() as client:
        assert await client.ask_messages(talk(2)[1:], system=system, tools=tools, **before) is None
        found = await client.ask_messages(talk(3)[1:], system=system, tools=tools, **now)
        assert found is not None
        assert found["cause"] == "client_fields" and f"The client changed {said}," in found["sentence"]
        part = "the system text and the messages" if said == "speed" else "the cache of the messages depends"
        assert part in found["sentence"]
        # What stands before the part is held.
        assert found["held"] > (100 if said == "speed" else 600)


async def test_a_field_that_no_cache_depends_on_and_marks_that_move() -> None:
    async with client_of() as client:
        for turns in (1, 2, 3):
            said = talk(turns)[1:]
            marked: Json = [{"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}]
            plain: Json = [{"type": "text", "text": "Go on."}]
            said = [{**cast("dict[str, Json]", one), "content": plain} for one in said]
            said[-1] = {"role": "user", "content": marked}
            assert await client.ask_messages(said, temperature=turns / 4) is None


@pytest.mark.parametrize("model", ["demo-messages", "demo-chat"])
async def test_the_first_block_of_claude_code_is_no_change(model: str) -> None:
    """It differs in each request; Anthropic reads it apart, and no backend gets it."""
    async with client_of() as client:
        for turns in (1, 2, 3):
            billing = f"x-anthropic-billing-header: cc_version=2.1; cc_entrypoint=cli; cch={turns}abc0;"
            mark: Json = {"type": "ephemeral"}
            system: Json = [{"type": "text", "text": billing}, {"type": "text", "text": LONG, "cache_control": mark}]
            assert await client.ask_messages(talk(turns)[1:], model=model, system=system) is None


async def test_a_branch_is_no_loss_of_the_other() -> None:
    async with client_of() as client:
        await client.ask(talk(3), tools=TOOLS)
        # An agent beside it, with the same system prompt; a title of the conversation; a fork of it.
        assert await client.ask([SYSTEM, user("Look for the file.")], tools=TOOLS) is None
        assert await client.ask([{"role": "system", "content": "Write a title."}, talk(1)[1]]) is None
        assert await client.ask([*talk(2), assistant("Other."), user("Other?")], tools=TOOLS) is None
        assert (
            await client.ask([*talk(2), assistant("Other."), user("Other?"), assistant("a"), user("b")], tools=TOOLS)
            is None
        )
        assert await client.ask(talk(4), tools=TOOLS) is None
        assert await client.counted("breaks_total") == {}


class CountingModel:
    """A backend of chat completions and of the Messages API that reports so many cached tokens of 5,000."""

    def __init__(self) -> None:
        self.cached: int | None = 0

    async def script(self, connection: Connection) -> None:
        body = self.message() if b"/v1/messages" in connection.head else self.completion()
        await connection.send(answer("200 OK", json.dumps(body).encode(), b"content-type: application/json"))

    def message(self) -> Json:
        cached = self.cached or 0
        usage: Json = {"input_tokens": 5000 - cached, "output_tokens": 1, "cache_read_input_tokens": cached}
        said: Json = [{"type": "text", "text": "Yes."}]
        head: dict[str, Json] = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": said, "stop_reason": "end_turn", "usage": usage}

    def completion(self) -> Json:
        usage: dict[str, Json] = {"prompt_tokens": 5000, "completion_tokens": 1, "total_tokens": 5001}
        if self.cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self.cached}
        said: Json = {"role": "assistant", "content": "Yes."}
        choice: Json = {"index": 0, "message": said, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": usage}


@asynccontextmanager
async def counting_client(adapter: str = "openai_chat") -> AsyncIterator[tuple[Client, CountingModel]]:
    """Runs a gateway before a backend that counts cached tokens."""
    model = CountingModel()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        backends: Json = {"b": {"adapter": adapter, "base_url": backend.base_url}}
        known: dict[str, Json] = {"backends": backends, "models": {"m": {"backend": "b", "price": PRICE}}}
        inspector: dict[str, Json] = {"inspector": {"contents": "always"}}
        gateway = await stack.enter_async_context(running_gateway({**known, **inspector}))
        yield Client(gateway), model


async def test_a_provider_that_reads_nothing_although_the_prefix_held() -> None:
    async with counting_client() as (client, model):
        assert await client.ask(talk(4), "m") is None
        found = await client.ask(talk(5), "m")
        assert found is not None
        assert (found["cause"], found["cached"]) == ("provider", 0)
        assert found["sentence"].startswith("The provider missed: the prompt begins as the one before, answered ")
        # All but the two new messages, by the backend's count of the whole.
        assert 3500 < found["lost"] == found["held"] < 5000
        assert found["cost"] == {"amount": round(found["lost"] * 2.5 / 1e6, 9), "currency": "EUR", "estimated": False}
        model.cached = 4096
        assert await client.ask(talk(6), "m") is None
        model.cached = None
        assert await client.ask(talk(7), "m") is None


@pytest.mark.parametrize(("marked", "cause"), [(True, "provider"), (False, "unmarked")])
async def test_a_request_of_the_messages_api_that_marks_nothing(marked: bool, cause: str) -> None:
    """Anthropic caches nothing without `cache_control`."""
    mark: dict[str, Json] = {"cache_control": {"type": "ephemeral"}} if marked else {}
    async with counting_client("anthropic_messages") as (client, _):
        system: Json = [{"type": "text", "text": LONG * 10, **mark}]
        assert await client.ask_messages(talk(1)[1:], model="m", system=system) is None
        found = await client.ask_messages(talk(2)[1:], model="m", system=system)
        assert found is not None and (found["cause"], found["cached"]) == (cause, 0)


async def test_a_short_prompt_is_not_cached_by_anyone() -> None:
    async with counting_client() as (client, _):
        said: list[Json] = [user("Hello")]
        assert await client.ask(said, "m") is None
        # Of 5,000 tokens that the backend counts, most are of the new message.
        assert await client.ask([*said, assistant("Yes."), user(LONG)], "m") is None


async def test_the_tokens_that_the_backend_reports_are_the_cost() -> None:
    async with counting_client() as (client, model):
        await client.ask(talk(4), "m")
        model.cached = 1024
        tuesday: Json = {"role": "system", "content": f"It is Tuesday. {LONG}"}
        found = await client.ask(talk(5, tuesday), "m")
        assert found is not None and found["cause"] == "client_system"
        assert found["cached"] == 1024 and 2000 < found["lost"] < 5000 - 1024
        assert "tokens that the request before had too are read anew (1,024 were read" in found["sentence"]


@pytest.mark.parametrize("how", ["header", "key", "never", "unwatched"])
async def test_nothing_is_kept_or_said_where_it_is_off(how: str) -> None:
    known: dict[str, dict[str, Any]] = {
        "header": {},
        "key": {"keys": {"*": {"state": "off"}}},
        "never": {"inspector": {"contents": "always", "caches": "never"}},
        "unwatched": {"inspector": {"contents": "watched"}},
    }
    headers = {"x-dragoman-state": "off"} if how == "header" else {}
    async with client_of(**known[how]) as client:
        await client.ask(talk(2), headers=headers)
        assert await client.ask(talk(3, {"role": "system", "content": "Other."}), headers=headers) is None
        inspector = client.gateway.app.gateway_state.inspector
        assert inspector is not None
        assert how == "never" or (inspector.recent.caches is not None and not inspector.recent.caches._conversations)
        assert await client.counted("requests_total") == {}


async def test_what_is_watched_is_examined_without_its_contents() -> None:
    async with client_of(inspector={"contents": "never"}) as client:
        inspector = client.gateway.app.gateway_state.inspector
        assert inspector is not None
        changes = inspector.recent.watchers.watch()
        begun = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await client.ask(talk(2))
        found = await client.ask(talk(3, {"role": "system", "content": "Other."}))
        assert found is not None and found["cause"] == "client_system"
        await begun
        await changes.aclose()


async def test_all_are_examined_without_a_viewer_or_an_inspector() -> None:
    async with client_of(inspector={"enabled": "off", "caches": "always"}) as client:
        for turns in (1, 2):
            body: Json = {"model": "demo-chat", "messages": talk(turns, {"role": "system", "content": f"Turn {turns}"})}
            assert (await client.gateway.client.post("/v1/chat/completions", json=body)).status_code == 200
        assert await client.counted("breaks_total") == {'backend="demo-chat",cause="client_system",rule="-"': 1}
        assert (await client.gateway.client.get("/inspect/api/requests")).status_code == 404


@pytest.mark.parametrize("stream", [False, True])
async def test_a_large_prompt_is_read_while_its_answer_is_awaited(stream: bool) -> None:
    large = "A line of a long file.\n" * 10_000
    async with client_of() as client:
        said: list[Json] = [SYSTEM, user(large)]
        assert await client.ask(said, stream=stream) is None
        said += [assistant("Yes."), user("Go on.")]
        assert await client.ask(said, stream=stream) is None
        found = await client.ask([{"role": "system", "content": "Other."}, *said[1:]], stream=stream)
        # The same messages again, in a request that does not go on: a branch.
        assert found is None
        found = await client.ask([{"role": "system", "content": "Other."}, *said[1:], user("More.")], stream=stream)
        assert found is None
        found = await client.ask([SYSTEM, *said[1:], assistant("a"), user("b")], stream=stream, tools=TOOLS)
        assert found is not None and found["cause"] == "client_tools" and found["lost"] > 50_000


async def test_what_is_kept_has_a_bound_and_goes_with_the_requests() -> None:
    async with client_of(inspector={"contents": "always", "keep_mb": 0.25}) as client:
        for number in range(40):
            await client.ask([SYSTEM, user(f"Conversation {number}")])
        inspector = client.gateway.app.gateway_state.inspector
        assert inspector is not None and inspector.recent.caches is not None
        caches = inspector.recent.caches
        assert 0 < len(caches._conversations) < 40 and caches._bytes <= 0.25 * 2**20 / 16
        sizes = [known.prompt.size for branches in caches._conversations.values() for known in branches]
        assert caches._bytes == sum(sizes)
        assert (await client.gateway.client.delete("/inspect/api/requests")).status_code == 204
        assert not caches._conversations and caches._bytes == 0
