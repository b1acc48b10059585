"""A client of the Responses API has its history compacted by a gateway whose backend knows no compaction: by both
requests that ask for it, over a change of backend, and whatever the model writes."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import httpx
import openai
import pytest

from gateway.core.conversation import Json
from gateway.core.errors import SettingsError
from gateway.core.sealed_compaction import MARK
from gateway.testing.faulty import answer, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.summaries.scripted import WINDOW, ScriptedModel

TRIGGER: Final[dict[str, Json]] = {"type": "compaction_trigger"}
TASK: Final = "Find out why the service fails at its start. Never push to origin/main."
SECRET: Final = "sk-proj-0123456789abcdefghijklmnop"


def items(rounds: int = 3, first: int = 0) -> list[dict[str, Json]]:
    """The items of an agent after so many rounds."""
    found: list[dict[str, Json]] = [{"type": "message", "role": "user", "content": TASK}] if not first else []
    for n in range(first, first + rounds):
        call: dict[str, Json] = {"type": "function_call", "call_id": f"call_{n}", "name": "read_file"}
        path = json.dumps({"path": f"/srv/app/module_{n}.py"})
        output = f"KeyError: 'total_{n}'\n" + "x = 1\n" * 200
        found += [
            {**call, "arguments": path},
            {"type": "function_call_output", "call_id": f"call_{n}", "output": output},
        ]
    return found


class Client:
    """A client of the gateway, and the model behind it."""

    def __init__(self, gateway: RunningGateway, model: ScriptedModel) -> None:
        self.gateway = gateway
        self.model = model

    async def post(self, path: str, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        return await self.gateway.client.post(path, json={"model": "m", **body}, headers=headers)

    async def compacted(self, given: list[dict[str, Json]], **fields: Any) -> dict[str, Any]:
        """Returns the object of `POST /v1/responses/compact`."""
        response = await self.post("/v1/responses/compact", input=given, **fields)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    @property
    def sent(self) -> list[Any]:
        messages: list[Any] = self.model.answered[-1]["messages"]
        return messages

    def notices(self, response: httpx.Response) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = response.json()["dragoman"]["diagnostics"]
        return found

    def rules(self, response: httpx.Response) -> list[str]:
        return [notice["rule"] for notice in self.notices(response)]


@asynccontextmanager
async def client(
    keys: str | None = None, server: Mapping[str, Json] = {}, more: Mapping[str, Json] = {}, **compress: Json
) -> AsyncIterator[Client]:
    model = ScriptedModel()
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(faulty_backend(model.script))
        settings: dict[str, Json] = {
            "compress": {**compress},
            "server": {"api_keys_env": keys, **server},
            "state": {"deadline_ms": 10_000},
            "backends": {
                "b": {"adapter": "openai_chat", "base_url": backend.base_url},
                "text": {"adapter": "openai_chat", "base_url": backend.base_url},
            },
            "models": {"m": {"backend": "b", "context_length": WINDOW}, "other": {"backend": "text"}},
            **more,
        }
        yield Client(await stack.enter_async_context(running_gateway(settings)), model)


def item_of(output: list[dict[str, Any]]) -> dict[str, Any]:
    [item] = [one for one in output if one["type"] == "compaction"]
    assert item == output[-1]
    return item


async def test_a_compacted_history_is_the_users_messages_and_one_item() -> None:
    async with client() as one:
        made = await one.compacted(items())
        assert made["object"] == "response.compaction" and made["usage"]["output_tokens"] > 0
        assert [item["type"] for item in made["output"]] == ["message", "compaction"]
        assert made["output"][0]["content"] == [{"type": "input_text", "text": TASK}]
        assert item_of(made["output"])["encrypted_content"].startswith(MARK)
        assert TASK not in item_of(made["output"])["encrypted_content"]
        assert len(one.model.summarised) == 1 and not one.model.answered


async def test_the_next_request_has_the_summary_in_place_of_the_covered_history() -> None:
    async with client() as one:
        made = await one.compacted(items())
        given = [*made["output"], {"type": "message", "role": "user", "content": "Go on."}]
        response = await one.post("/v1/responses", {"x-dragoman-explain": "1"}, input=given)
        assert response.status_code == 200 and "COMPACTION_OPENED" in one.rules(response)
        assert [message["role"] for message in one.sent] == ["user", "user", "user"]
        summary = one.sent[1]["content"]
        assert summary.startswith("[The first 7 turns of this conversation are left out here")
        assert f'turn 1, user: "{TASK}"' in summary and "/srv/app/module_2.py" in summary
        assert "KeyError: 'total_1'" in summary and "x = 1" not in summary
        assert one.sent[2]["content"] == "Go on."


async def test_another_backend_reads_it_after_a_change_of_model() -> None:
    async with client() as one:
        made = await one.compacted(items())
        response = await one.post("/v1/responses", input=[*made["output"]], model="other")
        assert response.status_code == 200 and "Never push to origin/main" in one.sent[1]["content"]


async def test_a_streamed_trigger_is_answered_by_exactly_one_item() -> None:
    async with client() as one:
        given = [*items(), TRIGGER]
        text = (await one.post("/v1/responses", input=given, stream=True, store=False)).text
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        kinds = [event["type"] for event in events]
        assert kinds == [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.completed",
        ]
        item = events[3]["item"]
        assert item["type"] == "compaction" and item["encrypted_content"].startswith(MARK) and item["id"]
        assert events[4]["response"]["output"] == [item] and events[4]["response"]["usage"]["total_tokens"] > 0
        assert events[4]["response"]["store"] is False


async def test_the_official_sdk_reads_both_forms() -> None:
    http = openai.DefaultAsyncHttpxClient(trust_env=False)
    async with (
        client() as one,
        openai.AsyncOpenAI(base_url=f"{one.gateway.base_url}/v1", api_key="none", http_client=http) as sdk,
    ):
        given: Any = items()
        made = await sdk.responses.compact(model="m", input=given)
        assert (made.object, made.output[-1].type) == ("response.compaction", "compaction")
        triggered: Any = [*given, TRIGGER]
        response = await sdk.responses.create(model="m", input=triggered)
        assert [item.type for item in response.output] == ["compaction"]


async def test_three_compactions_keep_what_was_said_first() -> None:
    async with client() as one:
        history = items()
        for n in range(1, 4):
            made = await one.compacted([*history, {"type": "message", "role": "user", "content": f"Step {n}."}])
            # A client that keeps the item alone.
            history = [item_of(made["output"]), *items(2, first=10 * n)]
        await one.post("/v1/responses", input=history)
        summary = one.sent[0]["content"]
        assert TASK in summary and all(f'"Step {n}."' in summary for n in (1, 2, 3))
        assert summary.startswith("[The first 18 turns")
        previous = json.loads(one.model.summarised[-1]["messages"][1]["content"].split("\n")[0])
        assert previous["summary_of_turns"][0] == 1
        assert summary.count(TASK) == 1


async def test_messages_that_the_client_keeps_before_an_item_are_said_once() -> None:
    async with client() as one:
        long = f"My key is {SECRET}. " + "The log says nothing. " * 400
        given: list[dict[str, Json]] = [{"type": "message", "role": "user", "content": long}, *items()]
        made = await one.compacted(given)
        for n in (1, 2):
            made = await one.compacted([*made["output"], *items(1, first=20 + n)])
        await one.post("/v1/responses", input=[item_of(made["output"])])
        summary = one.sent[0]["content"]
        assert summary.count("My key is") == 1 and summary.count(TASK) == 1
        # One message of the user, and the task; seven rounds of a call and its result.
        assert summary.startswith("[The first 12 turns")


FAILURES: Final = ["error", "refusal", "cut", "unreachable", "budget"]


@pytest.mark.parametrize("failure", FAILURES)
async def test_what_needs_no_model_is_there_whatever_the_model_writes(failure: str) -> None:
    async with client(tokens_per_day=10 if failure == "budget" else 1_000_000) as one:
        if failure == "error":
            one.model.summary_fault = answer("500 Internal Server Error", b"{}", b"content-type: application/json")
        elif failure == "refusal":
            one.model.summarise = lambda lines: "Sorry, I cannot help with that."
        elif failure == "cut":
            one.model.finish = "length"
        elif failure == "unreachable":
            one.model.summary_fault = b""
        response = await one.post("/v1/responses/compact", {"x-dragoman-explain": "1"}, input=items())
        assert response.status_code == 200, response.text
        assert "COMPACTION_UNWRITTEN" in one.rules(response)
        await one.post("/v1/responses", input=response.json()["output"])
        summary = one.sent[1]["content"]
        assert f'turn 1, user: "{TASK}"' in summary and "/srv/app/module_2.py" in summary
        assert "KeyError: 'total_1'" in summary and "Goal:" not in summary


async def test_a_compaction_counts_for_its_key_and_needs_no_model_where_the_budget_is_spent() -> None:
    keys: dict[str, Json] = {"*": {"budget": {"tokens_per_day": 1_000_000}}}
    async with client(more={"keys": keys}) as one:
        made = await one.compacted(items())
        metrics = one.gateway.app.gateway_state.metrics
        cost = sum(sample.value for sample in metrics.summary_tokens.samples())
        assert [sample.value for sample in metrics.budget_tokens.samples()] == [cost]
        assert made["usage"]["total_tokens"] == cost
    async with client(more={"keys": {"*": {"budget": {"tokens_per_day": 10}}}}) as one:
        response = await one.post("/v1/responses/compact", {"x-dragoman-explain": "1"}, input=items())
        assert response.status_code == 200, response.text
        [told] = [notice for notice in one.notices(response) if notice["rule"] == "COMPACTION_UNWRITTEN"]
        assert "insufficient_quota" in told["detail"] and not one.model.summarised


async def test_what_a_model_wrote_before_stays_where_it_writes_nothing_now() -> None:
    async with client() as one:
        made = await one.compacted(items())
        one.model.summarise = lambda lines: "Sorry, I cannot help with that."
        made = await one.compacted([*made["output"], *items(1, first=9)])
        await one.post("/v1/responses", input=[item_of(made["output"])])
        summary = one.sent[0]["content"]
        assert "Goal:" in summary and "/srv/app/module_9.py" in summary


async def test_the_model_that_writes_summaries_exists_whether_compression_is_on_or_not() -> None:
    with pytest.raises(SettingsError, match="there is no model 'none'"):
        async with client(model="none"):
            pass


async def test_another_model_writes_it() -> None:
    async with client(model="other") as one:
        await one.compacted(items())
        assert [body["model"] for body in one.model.summarised] == ["other"]


async def test_secrets_are_in_no_part_of_it() -> None:
    async with client() as one:
        call: dict[str, Json] = {"type": "function_call", "call_id": "c", "name": "run"}
        given: list[dict[str, Json]] = [
            {"type": "message", "role": "user", "content": f"My key is {SECRET}."},
            {**call, "arguments": json.dumps({"command": f"login {SECRET}"})},
            {"type": "function_call_output", "call_id": "c", "output": f"error: {SECRET} is wrong"},
        ]
        made = await one.compacted(given)
        await one.post("/v1/responses", input=[item_of(made["output"])])
        assert "[key:openai:" in one.sent[0]["content"] and SECRET not in one.sent[0]["content"]


async def test_two_megabytes_are_compacted() -> None:
    async with client() as one:
        given = items(2_000)
        assert len(json.dumps(given)) > 2_000_000
        response = await one.post("/v1/responses/compact", {"x-dragoman-explain": "1"}, input=given)
        assert response.status_code == 200 and "COMPACTION_MADE" in one.rules(response)
        assert len(item_of(response.json()["output"])["encrypted_content"]) <= 256 * 1024
        # What does not fit into the window of the model is left to the words, the calls and the errors.
        lines = [json.loads(line) for line in one.model.summarised[0]["messages"][1]["content"].split("\n")]
        assert lines[-1]["n"] == 4_001 and lines[0]["n"] > 3_000


def forged(sealed: str) -> dict[str, str]:
    return {
        "forged": f"{sealed[:-8]}AAAAAAA=",
        "cut": sealed[: len(sealed) // 2 // 4 * 4],
        "empty": MARK,
        "too long": MARK + "A" * 300_000,
    }


@pytest.mark.parametrize("kind", ["forged", "cut", "empty", "too long"])
async def test_what_cannot_be_opened_is_the_same_error_by_its_index(kind: str) -> None:
    async with client() as one:
        sealed = item_of((await one.compacted(items()))["output"])["encrypted_content"]
        item: dict[str, Json] = {"type": "compaction", "encrypted_content": forged(sealed)[kind]}
        given = [{"type": "message", "role": "user", "content": "Hello."}, item]
        response = await one.post("/v1/responses", input=given)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "invalid_compaction", "input[1]")
        assert error["message"] == (
            "input[1] is a compaction that cannot be opened. Begin a new conversation, or send the messages."
        )
        assert not one.model.answered


async def test_another_api_key_gets_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS_OF_THE_TEST", "alice-key-0123456789,bob-key-0123456789")
    async with client(keys="KEYS_OF_THE_TEST") as one:
        alice, bob = ({"authorization": f"Bearer {name}-key-0123456789"} for name in ("alice", "bob"))
        made = await one.post("/v1/responses/compact", alice, input=items())
        given = [item_of(made.json()["output"])]
        assert (await one.post("/v1/responses", alice, input=given)).status_code == 200
        response = await one.post("/v1/responses", bob, input=given)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_compaction")


async def test_a_trigger_must_be_the_last_item() -> None:
    async with client() as one:
        response = await one.post("/v1/responses", input=[TRIGGER, *items()])
        assert (response.status_code, response.json()["error"]["param"]) == (400, "input[1]")


async def test_explain_shows_what_a_compaction_says() -> None:
    async with client() as one:
        made = await one.compacted(items())
        body = {"model": "m", "input": made["output"]}
        shown = await one.gateway.client.post("/v1/explain?dialect=openai_responses", json=body)
        assert shown.status_code == 200 and "Never push to origin/main" in shown.text
        assert "COMPACTION_OPENED" in shown.text


async def test_the_tokens_of_an_input_are_those_of_the_opened_summary() -> None:
    async with client() as one:
        made = await one.compacted(items())
        response = await one.post("/v1/responses/input_tokens", input=[item_of(made["output"])])
        assert response.status_code == 200 and 100 < response.json()["input_tokens"] < 1_000


WIRES: Final[dict[str, dict[str, Json]]] = {
    "warp": {"adapter": "warp", "base_url": "demo:agent", "encoding": "flatten"},
    "warp, structured": {"adapter": "warp", "base_url": "demo:agent"},
    "text": {"adapter": "text", "base_url": "demo:text", "wire": "llama_cpp"},
    "a mapping": {"adapter": "proto", "preset": "demo", "base_url": "demo:grpc"},
    "gemini": {"adapter": "gemini", "base_url": "demo:gemini"},
    "messages": {"adapter": "anthropic_messages", "base_url": "demo:messages"},
}


@pytest.mark.parametrize("wire", WIRES)
async def test_each_wire_gets_the_summary_in_place_of_the_history(wire: str) -> None:
    settings: dict[str, Json] = {"backends": {"b": WIRES[wire]}, "models": {"m": {"backend": "b"}}}
    async with running_gateway(settings) as gateway:
        body: dict[str, Any] = {"model": "m", "input": items()}
        made = await gateway.client.post("/v1/responses/compact", json=body)
        assert made.status_code == 200, made.text
        body = {"model": "m", "input": [*made.json()["output"], {"role": "user", "content": "Go on."}]}
        shown = (await gateway.client.post("/v1/explain?dialect=openai_responses", json=body)).text
        assert "7 turns of this conversation are left out here" in shown and MARK not in shown
        response = await gateway.client.post("/v1/responses", json=body)
        assert response.status_code == 200 and response.json()["status"] == "completed", response.text
