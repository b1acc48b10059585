"""What a client, its key or its model may not lose is refused before anything is sent, or ends the answer."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.promises.test_forced_tools import DIALECTS
from tests.server.api.test_hidden_rounds import DONE, SEARCH, Rounds, said, tools
from tests.server.inspect.test_fidelity import check_all
from tests.server.media.scene import asking, describing_gateway, picture
from tests.server.summaries.test_compaction import client
from tests.server.summaries.test_compaction_blocks import edit, history
from tests.server.summaries.test_own_compaction import TRIGGER, USER, serving
from tests.server.websocket_client import Denied, connected, opened, upgrade

REQUIRE: Final = "x-dragoman-require"
# It accepts no `tool_choice` that forces a call.
GLM: Final[Mapping[str, Json]] = {"adapter": "openai_chat", "profile": "glm"}
TEXT: Final[Mapping[str, Json]] = {"adapter": "text", "wire": "llama_cpp"}
CHAT: Final[Mapping[str, Json]] = {"adapter": "openai_chat"}
NEVER: Final = "a request that is refused was sent"
# The code of an error, in each dialect of `DIALECTS`.
CODES: Final[Mapping[str, Any]] = {
    "openai_chat": lambda body: body["error"]["code"],
    "openai_responses": lambda body: body["error"]["code"],
    "anthropic_messages": lambda body: body["error"]["code"],
    "gemini": lambda body: body["error"]["details"][0]["reason"],
}


async def silent(connection: Connection) -> None:
    raise AssertionError(NEVER)


def settings(
    backend: FaultyBackend, entry: Mapping[str, Json], model: Mapping[str, Json] = {}, **more: Json
) -> dict[str, Json]:
    return {
        "backends": {"b": {**entry, "base_url": backend.base_url}},
        "models": {"m": {"backend": "b", **model}, "free": {"backend": "b"}},
        **more,
    }


async def asked(gateway: RunningGateway, dialect: str, words: str, *, stream: bool, model: str = "m") -> httpx.Response:
    """Returns the answer to a request that demands a call of a function."""
    streamed, whole, body, required, _ = DIALECTS[dialect]
    path = (streamed if stream else whole).format(model=model)
    fields: dict[str, Json] = {} if dialect == "gemini" else {"model": model, "stream": stream}
    return await gateway.client.post(path, json={**body, **required, **fields}, headers={REQUIRE: words})


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_request_that_would_lose_it_is_refused_in_the_form_of_its_api(dialect: str, stream: bool) -> None:
    """The provider accepts no choice that forces a call."""
    async with faulty_backend(silent) as backend, running_gateway(settings(backend, GLM)) as gateway:
        response = await asked(gateway, dialect, "tools", stream=stream)
        assert (response.status_code, CODES[dialect](response.json())) == (400, "requirement_not_met")
        error = response.json()["error"]
        assert "tools" in error["message"] and "REQUEST_FIELD_CHANGED" in error["message"]
        assert (error["requirement"], error["rule"], error["loss_count"]) == ("tools", "REQUEST_FIELD_CHANGED", 1)
        assert [loss["rule"] for loss in error["losses"]] == ["REQUEST_FIELD_CHANGED"]
        assert response.headers["x-should-retry"] == "false"
        assert not backend.seen


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_an_answer_that_has_lost_it_ends_behind_the_notice(dialect: str, stream: bool) -> None:
    """The backend ignores the choice of a function, which shows only at the end of its answer."""
    async with (
        faulty_backend(Rounds((said("I will not."), said(finish="stop")))) as backend,
        running_gateway(settings(backend, CHAT)) as gateway,
    ):
        response = await asked(gateway, dialect, "tools", stream=stream)
        metrics = (await gateway.client.get("/metrics")).text
    # It is a failure of no backend.
    assert re.search(r'gateway_errors_total\{code="requirement_not_met",phase="\w+"\} 1', metrics)
    assert 'gateway_notices_total{rule="TOOL_CHOICE_IGNORED",stage="backend"} 1.0' in metrics
    assert not re.search(r"gateway_upstream_errors_total\{.*\} [1-9]", metrics)
    if not stream:
        assert (response.status_code, CODES[dialect](response.json())) == (400, "requirement_not_met")
        assert response.headers["x-should-retry"] == "false"
        return
    assert response.status_code == 200 and "I will not." in response.text
    assert "requirement_not_met" in response.text and "TOOL_CHOICE_IGNORED" in response.text
    for end in ("[DONE]", "response.completed", "message_stop", '"finishReason"'):
        assert end not in response.text


async def test_a_failed_response_of_the_responses_api_is_not_asked_for_again() -> None:
    """Codex asks again after each code of `response.failed` that it does not know."""
    async with (
        faulty_backend(Rounds((said("I will not."), said(finish="stop")))) as backend,
        running_gateway(settings(backend, CHAT)) as gateway,
    ):
        response = await asked(gateway, "openai_responses", "tools", stream=True)
    events = [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    error, failed = events[-2:]
    assert (error["type"], error["code"]) == ("error", "requirement_not_met")
    assert (failed["type"], failed["response"]["error"]["code"]) == ("response.failed", "invalid_prompt")


async def test_what_is_lost_beside_the_words_is_told_and_sent() -> None:
    """A choice that is not sent breaks no word but `tools`."""
    async with (
        faulty_backend(Rounds((said("Hello"), said(finish="stop")))) as backend,
        running_gateway(settings(backend, GLM)) as gateway,
    ):
        assert (await asked(gateway, "openai_chat", "effort, images", stream=True)).status_code == 200


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", {"prompt": "Hello", "tools": tools("f")}),
        ("/v1/completions", {"prompt": "Hello", "tool_choice": "required"}),
        (
            "/v1/responses",
            {
                "input": "Hello",
                "tools": [
                    {
                        "type": "namespace",
                        "name": "crm",
                        "description": "Looks customers up.",
                        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
                    }
                ],
            },
        ),
        (
            "/v1/messages",
            {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": "Hello"}],
                "tools": [{"name": "f", "input_schema": {"type": "object"}, "input_examples": [{}]}],
            },
        ),
        (
            "/v1/responses",
            {
                "input": "Hello",
                "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "output_schema": {}}],
            },
        ),
        (
            "/v1beta/models/m:generateContent",
            {
                "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
                "tools": [{"functionDeclarations": [{"name": "f", "response": {"type": "STRING"}}]}],
            },
        ),
    ],
)
async def test_what_a_tool_is_declared_with_may_not_be_lost(path: str, fields: dict[str, Json]) -> None:
    async with faulty_backend(silent) as backend, running_gateway(settings(backend, TEXT)) as gateway:
        response = await gateway.client.post(path, json={"model": "m", **fields}, headers={REQUIRE: "tools"})
        assert (response.status_code, response.json()["error"]["rule"]) == (400, "FIELD_NOT_SENT"), response.text
        assert not backend.seen


@pytest.mark.parametrize("words", ["Tools", "tools\t, ,effort,", "images,TOOLS", ",tools"])
async def test_the_header_is_a_list_in_any_case(words: str) -> None:
    async with faulty_backend(silent) as backend, running_gateway(settings(backend, GLM)) as gateway:
        assert (await asked(gateway, "openai_chat", words, stream=False)).status_code == 400
        assert not backend.seen


@pytest.mark.parametrize("words", ["tool", "tools effort", "tools;q=1", "tools, speed", "*", "\x85"])
async def test_an_unknown_word_is_refused_with_the_known_ones(words: str) -> None:
    async with faulty_backend(silent) as backend, running_gateway(settings(backend, GLM)) as gateway:
        headers = [(REQUIRE.encode(), words.encode("latin-1"))]
        response = await gateway.client.post("/v1/chat/completions", json=hello(), headers=headers)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "invalid_value", REQUIRE)
        assert "tools, effort, images, reasoning, cache, ids" in error["message"]
        assert not backend.seen


async def test_the_header_twice_is_refused() -> None:
    async with faulty_backend(silent) as backend, running_gateway(settings(backend, GLM)) as gateway:
        headers = [(REQUIRE, "tools"), (REQUIRE, "effort")]
        response = await gateway.client.post("/v1/chat/completions", json=hello(), headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "duplicate_header")


@pytest.mark.parametrize("words", ["", ", ,"])
async def test_an_empty_list_requires_nothing(words: str) -> None:
    async with (
        faulty_backend(Rounds((said("I will not."), said(finish="stop")))) as backend,
        running_gateway(settings(backend, CHAT)) as gateway,
    ):
        assert "error" not in (await asked(gateway, "openai_chat", words, stream=True)).text


async def test_a_model_and_a_key_have_requirements_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is required is what any of the three says."""
    monkeypatch.setenv("REQUIRED_KEYS", "k-one,k-two")
    more: dict[str, Json] = {
        "server": {"api_keys_env": "REQUIRED_KEYS"},
        "keys": {"env-1": {"require": ["tools"]}, "env-2": {"require": ["images"]}},
    }

    async def code(key: str, model: str, words: str = "") -> object:
        streamed, _, body, required, _ = DIALECTS["openai_chat"]
        headers = {"authorization": f"Bearer {key}", REQUIRE: words}
        response = await gateway.client.post(streamed, json={**body, **required, "model": model}, headers=headers)
        return response.json().get("error", {}).get("code")

    async with (
        faulty_backend(Rounds((said("Hello"), said(finish="stop")))) as backend,
        running_gateway(settings(backend, GLM, {"require": ["tools"]}, **more)) as gateway,
    ):
        assert await code("k-two", "m") == "requirement_not_met"
        assert await code("k-one", "free") == "requirement_not_met"
        assert await code("k-two", "free", "tools") == "requirement_not_met"
        assert not backend.seen
        await code("k-two", "free", "ids")
        assert backend.seen


async def test_all_losses_are_listed_and_the_message_names_the_first_with_its_place() -> None:
    messages: list[Json] = [
        {"role": "user", "content": [{"type": "text", "text": "Look"}, picture()]},
        {"role": "assistant", "content": "At what?"},
        {"role": "user", "content": [picture(1)]},
    ]
    async with (
        faulty_backend(silent) as backend,
        running_gateway(settings(backend, TEXT, {"images": "placeholder"})) as gateway,
    ):
        headers = {REQUIRE: "images", "x-dragoman-explain": "1"}
        fields = {"model": "m", "messages": messages}
        response = await gateway.client.post("/v1/chat/completions", json=fields, headers=headers)
    error = response.json()["error"]
    assert error["message"].startswith(
        "The request would lose images, which it requires: messages[0]: PART_NOT_SENT: a part of kind image"
    )
    assert "It is the first of 2 losses." in error["message"] and error["param"] == "messages[0]"
    assert [(loss["rule"], loss["index"]) for loss in error["losses"]] == [("PART_NOT_SENT", 0), ("PART_NOT_SENT", 2)]
    told = [one["rule"] for one in error["diagnostics"]]
    assert told.count("PART_NOT_SENT") == 2, "each notice once"


@pytest.mark.parametrize(("words", "rule"), [("images", "IMAGE_DESCRIBED"), ("tools", "REQUEST_FIELD_CHANGED")])
async def test_no_picture_is_described_for_a_request_that_is_refused(words: str, rule: str) -> None:
    """A description is a request of its own, which costs."""
    async with faulty_backend(silent) as backend:
        entry: Json = {**GLM, "base_url": backend.base_url}
        seeing: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        described: Json = {"backend": "b", "images": "describe", "facts": {"images": False}}
        more: dict[str, Json] = {
            "backends": {"b": entry, "vision": seeing},
            "vision": {"model": "seeing"},
            "models": {"m": described, "seeing": {"backend": "vision"}},
        }
        async with running_gateway(more) as gateway:
            fields: dict[str, Json] = {"model": "m", "messages": asking(picture()), "tools": tools("f")}
            body = {**fields, "tool_choice": "required"}
            response = await gateway.client.post("/v1/chat/completions", json=body, headers={REQUIRE: words})
        assert (response.status_code, response.json()["error"]["rule"]) == (400, rule)
        assert not backend.seen


async def test_a_picture_is_described_where_that_is_no_loss() -> None:
    async with describing_gateway() as (asker, backends):
        response = await asker.chat(asking(picture()), {REQUIRE: "tools, effort"})
        assert response.status_code == 200 and len(backends.asked) == len(backends.sent) == 1


async def test_no_picture_is_described_for_a_candidate_that_is_then_not_asked() -> None:
    """The model that the client has named reads pictures, and its backend fails; the candidate reads none."""

    async def failing(connection: Connection) -> None:
        await connection.send(answer("503 Service Unavailable"))

    async with faulty_backend(failing) as failed, faulty_backend(silent) as backend:
        more: dict[str, Json] = {
            "backends": {"b": {**CHAT, "base_url": failed.base_url}, "c": {**CHAT, "base_url": backend.base_url}},
            "vision": {"model": "seeing"},
            "models": {
                "m": {"backend": "b", "candidates": ["blind"]},
                "blind": {"backend": "c", "images": "describe", "facts": {"images": False}},
                "seeing": {"backend": "c"},
            },
        }
        async with running_gateway(more) as gateway:
            fields: dict[str, Json] = {"model": "m", "messages": asking(picture())}
            response = await gateway.client.post("/v1/chat/completions", json=fields, headers={REQUIRE: "images"})
        assert (response.status_code, len(failed.seen), len(backend.seen)) == (503, 1, 0)


async def test_no_compaction_is_made_for_a_request_that_is_refused() -> None:
    """A summary is a request of its own, too. The mark shows only where the request is planned."""
    marked: Json = {"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}}
    messages: list[Json] = [*history(), {"role": "user", "content": [marked]}]
    async with client() as one:
        fields = {"model": "m", "max_tokens": 99, "messages": messages, "context_management": edit()}
        for words, status, summaries in (("cache", 400, 0), ("tools", 200, 1)):
            response = await one.gateway.client.post("/v1/messages", json=fields, headers={REQUIRE: words})
            assert (response.status_code, len(one.model.summarised)) == (status, summaries), response.text
            assert response.json().get("error", {}).get("rule") == (None if status == 200 else "FIELD_NOT_SENT")


async def test_a_provider_that_compacts_by_itself_gets_what_only_its_own_api_has() -> None:
    """What the reader of the client's API leaves out for the others is no loss then."""
    async with serving() as (gateway, asked):
        own: Json = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
        fields: dict[str, Json] = {"model": "openai_responses", "input": [USER, own, TRIGGER]}
        response = await gateway.client.post("/v1/responses", json=fields, headers={REQUIRE: "tools"})
        assert response.status_code == 200 and asked[-1][1]["input"] == [USER, own, TRIGGER], response.text
        sent = len(asked)
        response = await gateway.client.post(
            "/v1/responses", json={**fields, "model": "local"}, headers={REQUIRE: "tools"}
        )
        assert (response.status_code, response.json()["error"]["rule"]) == (400, "ITEM_NOT_SENT")
        assert len(asked) == sent


async def test_an_answer_that_has_lost_something_is_not_stored() -> None:
    async with (
        faulty_backend(Rounds((said("I will not."), said(finish="stop")))) as backend,
        running_gateway(settings(backend, CHAT)) as gateway,
    ):
        streamed, _, body, required, _ = DIALECTS["openai_responses"]
        fields = {**body, **required, "model": "m", "stream": True, "store": True}
        response = await gateway.client.post(streamed, json=fields, headers={REQUIRE: "tools"})
        name = re.search(r'"id":"(resp_\w+)"', response.text)
        assert name is not None and "requirement_not_met" in response.text
        assert (await gateway.client.get(f"/v1/responses/{name[1]}")).status_code == 404


async def test_a_loss_in_a_hidden_round_ends_the_answer() -> None:
    """The first round asks for a search; the second one calls without an id, which the gateway has to add."""
    nameless = said(calls=[("get_weather", "{}")]).replace(b'"id": "call_get_weather_0", ', b"")
    assert nameless != said(calls=[("get_weather", "{}")])
    rounds = Rounds((said(calls=[SEARCH]), said(finish="tool_calls")), (nameless, said(finish="tool_calls")))
    async with (
        faulty_backend(rounds) as backend,
        running_gateway(settings(backend, CHAT, {"tool_loading": "on_demand"})) as gateway,
    ):
        offered = tools("get_weather", "send_mail", "list_files", "read_stock", "book_room", "play_song")
        fields = {**hello(), "stream": True, "tools": offered}
        response = await gateway.client.post("/v1/chat/completions", json=fields, headers={REQUIRE: "ids"})
        assert len(backend.seen) == 2
    assert "CALL_ID_ADDED" in response.text and "requirement_not_met" in response.text


async def test_nothing_is_read_of_the_backend_behind_the_loss() -> None:
    """A client of completions reads no reasoning."""

    async def script(connection: Connection) -> None:
        thought = said("x").replace(b'"content"', b'"reasoning_content"')
        await connection.send(HEAD, chunk(said("Now. ")), chunk(thought))
        await connection.gone()

    async with faulty_backend(script) as backend, running_gateway(settings(backend, CHAT)) as gateway:
        fields: dict[str, Json] = {"model": "m", "prompt": "Hello", "stream": True}
        response = await gateway.client.post("/v1/completions", json=fields, headers={REQUIRE: "reasoning"})
        await backend.closed.wait()
    assert "Now. " in response.text and "REASONING_NOT_SHOWN" in response.text
    assert json.loads(response.text.strip().rpartition("data: ")[2])["error"]["code"] == "requirement_not_met"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1beta/models/m:{method}", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]}),
        ("/v1beta/interactions", {"model": "m", "input": "Hello"}),
        ("/api/chat", {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "think": False}),
    ],
)
async def test_reasoning_that_the_client_has_declined_is_no_loss(
    path: str, fields: dict[str, Json], stream: bool
) -> None:
    """So that a client of Gemini's API, which gets thoughts only if it asks for them, may require its signatures."""
    thought = said("Hm.").replace(b'"content"', b'"reasoning_content"')
    async with (
        faulty_backend(Rounds((thought, said("Now."), said(finish="stop")))) as backend,
        running_gateway(settings(backend, CHAT)) as gateway,
    ):
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        body = fields if "contents" in fields else {**fields, "stream": stream}
        response = await gateway.client.post(path.format(method=method), json=body, headers={REQUIRE: "reasoning"})
        metrics = (await gateway.client.get("/metrics")).text
    assert response.status_code == 200 and "Now." in response.text and "requirement_not_met" not in response.text
    assert 'gateway_notices_total{rule="REASONING_NOT_SHOWN",stage="backend"} 1.0' in metrics


async def test_over_a_websocket_the_header_is_that_of_the_upgrade() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, chunk(said("Hello")), chunk(said(finish="stop")), chunk(DONE), END)

    async with faulty_backend(script) as backend, running_gateway(settings(backend, CHAT)) as gateway:
        function: Json = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
        async with connected(gateway, f"{REQUIRE}: tools") as socket:
            socket.create("Hello")
            assert (await socket.answer())[-1]["type"] == "response.completed"
            socket.create("Hello", tools=[{"type": "web_search"}, function])
            [refused] = await socket.answer()
            assert (refused["status"], refused["error"]["code"]) == (400, "requirement_not_met")
            socket.create("Hello", tools=[function], tool_choice="required")
            assert "requirement_not_met" in json.dumps(await socket.answer())
        assert len(backend.seen) == 2
        async with connected(gateway, f"{REQUIRE}: speed") as socket:
            socket.create("Hello")
            [refused] = await socket.answer()
            assert (refused["status"], refused["error"]["param"]) == (400, REQUIRE)
        denied = await opened(gateway, upgrade(f"{REQUIRE}: tools", f"{REQUIRE}: ids"))
        assert isinstance(denied, Denied) and (denied.status, denied.code) == (400, "duplicate_header")


async def test_explain_and_the_inspector_name_the_words_beside_the_notices() -> None:
    async with faulty_backend(silent) as backend:
        shown: dict[str, Json] = {"inspector": {"contents": "always"}}
        async with running_gateway(settings(backend, GLM, {}, **shown)) as gateway:
            _, whole, body, required, _ = DIALECTS["openai_chat"]
            fields = {**body, **required, "model": "m"}
            explained = (await gateway.client.post("/v1/explain", json=fields)).json()
            refused = await gateway.client.post(whole, json=fields, headers={REQUIRE: "tools"})
            name = refused.headers["x-request-id"]
            found = (await gateway.client.get(f"/inspect/api/requests/{name}")).json()
    assert explained["losses"] == {"tools": ["REQUEST_FIELD_CHANGED"]}
    (told,) = [one for one in explained["diagnostics"] if one["rule"] == "REQUEST_FIELD_CHANGED"]
    assert told["fields"] == ["tool_choice"]
    assert found["error"]["code"] == "requirement_not_met"
    assert found["error"]["cause"] and found["error"]["advice"]
    assert [one["loses"] for one in found["notices"] if one["rule"] == "REQUEST_FIELD_CHANGED"] == [["tools"]]


@pytest.mark.parametrize("explain", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_recording_of_a_loss_comes_to_the_same_again(dialect: str, stream: bool, explain: bool) -> None:
    """What was required of a request may be the key's or the model's: it is not in the recording."""
    streamed, whole, body, required, _ = DIALECTS[dialect]
    fields: dict[str, Json] = {} if dialect == "gemini" else {"stream": stream}
    for entry in (CHAT, GLM):
        async with faulty_backend(Rounds((said("I will not."), said(finish="stop")))) as backend:
            recorded: dict[str, Json] = {"inspector": {"contents": "always"}}
            async with running_gateway(settings(backend, entry, {"require": ["tools"]}, **recorded)) as gateway:
                path = (streamed if stream else whole).format(model="m")
                named: dict[str, Json] = {} if dialect == "gemini" else {"model": "m"}
                headers = {"x-dragoman-explain": "1"} if explain else {}
                response = await gateway.client.post(
                    path, json={**body, **required, **fields, **named}, headers=headers
                )
                assert "requirement_not_met" in response.text
                check_all(gateway)


@pytest.mark.parametrize(
    ("fields", "losses"),
    [
        ({"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}, {}),
        ({"thinking": {"type": "adaptive"}}, {"effort": ["FIELD_NOT_SENT"]}),
        (
            {"output_config": {"effort": "high"}, "thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"effort": ["FIELD_NOT_SENT"]},
        ),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, {"effort": ["EFFORT_CHANGED"]}),
        ({"tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": False}]}, {}),
        ({"tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": True}]}, {"tools": ["FIELD_NOT_SENT"]}),
        ({"metadata": {"user_id": "u"}}, {"ids": ["FIELD_NOT_SENT"]}),
        ({"cache_control": {"type": "ephemeral"}}, {"cache": ["FIELD_NOT_SENT"]}),
        ({"temperature": 0.5, "top_k": 3}, {}),
    ],
)
async def test_what_says_the_same_or_nothing_is_no_loss(fields: dict[str, Json], losses: Json) -> None:
    async with faulty_backend(silent) as backend:
        both: dict[str, Json] = {"models": {"chat": {"backend": "b"}, "text": {"backend": "t"}}}
        entries: Json = {"b": {**CHAT, "base_url": backend.base_url}, "t": {**TEXT, "base_url": backend.base_url}}
        async with running_gateway({"backends": entries, **both}) as gateway:
            model = "text" if fields.keys() & {"tools", "metadata"} else "chat"
            messages: Json = [{"role": "user", "content": "Hello"}]
            body: dict[str, Json] = {"model": model, "max_tokens": 9000, "messages": messages, **fields}
            response = await gateway.client.post("/v1/explain?dialect=anthropic_messages", json=body)
    assert response.json()["losses"] == losses, response.text
