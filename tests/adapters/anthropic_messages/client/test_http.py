"""The routes of the dialect over real sockets: keys, models, counts, refusals and broken requests."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import httpx
import pytest
import pytest_asyncio

from adapters.anthropic_messages.client.routes import ROUTES
from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.adapters.anthropic_messages.client.client import read_error, read_models, read_stream, read_whole
from tests.adapters.anthropic_messages.client.requests import HELLO
from tests.hostile.bodies import NOT_AN_OBJECT, NOT_JSON

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY: Final = "a-key-of-this-test"
LIMITED: Final = "another-key-of-this-test"
VERSION: Final = {"anthropic-version": "2023-06-01"}
BODY: Final[dict[str, Any]] = {"model": "claude-haiku-5", "max_tokens": 64, "messages": [HELLO]}
MESSAGES: Final = "/v1/messages"
COUNT: Final = "/v1/messages/count_tokens"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(f"test:{KEY}\nlimited:{LIMITED}\n")
    settings: dict[str, Json] = {
        "server": {"api_keys_file": str(keys)},
        "keys": {"limited": {"requests_per_minute": 1}},
        "backends": {"demo": {"adapter": "openai_chat", "base_url": "demo:chat"}},
        "models": {"claude-haiku-*": {"backend": "demo", "name": "demo-chat"}, "exact": {"backend": "demo"}},
    }
    async with running_gateway(settings) as opened:
        yield opened


async def post(gateway: RunningGateway, path: str, body: object, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"content-type": "application/json", "x-api-key": KEY, **headers}
    return await gateway.client.post(path, content=content, headers=sent)


def error_of(response: httpx.Response) -> Mapping[str, Any]:
    assert read_error(response.content)
    assert response.json()["request_id"] == response.headers["request-id"] == response.headers["x-request-id"]
    error: Mapping[str, Any] = response.json()["error"]
    return error


async def test_an_answer_whole_and_streamed(gateway: RunningGateway) -> None:
    whole = await post(gateway, MESSAGES, BODY, **VERSION)
    streamed = await post(gateway, f"{MESSAGES}?beta=true", {**BODY, "stream": True}, **VERSION)
    assert whole.headers["content-type"] == "application/json"
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert whole.headers["request-id"] == whole.headers["x-request-id"]
    answer = read_stream(streamed.content)
    assert answer.text == read_whole(whole.content).text != ""
    assert answer.finish == "end_turn"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"x-api-key": KEY}, 200),
        ({"authorization": f"Bearer {KEY}"}, 200),
        ({"x-api-key": "wrong"}, 401),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": f"Basic {KEY}"}, 401),
        ({}, 401),
    ],
)
async def test_the_key_stands_in_either_header(gateway: RunningGateway, headers: dict[str, str], status: int) -> None:
    for path in (MESSAGES, COUNT):
        sent = {"content-type": "application/json", **headers}
        response = await gateway.client.post(path, content=json.dumps(BODY), headers=sent)
        assert response.status_code == status
        if status == 401:
            assert error_of(response)["type"] == "authentication_error"


async def test_models_are_listed_in_the_form_that_the_header_asks_for(gateway: RunningGateway) -> None:
    listed = await gateway.client.get("/v1/models", headers={"x-api-key": KEY, **VERSION})
    assert read_models(listed.content) == ["exact"]
    one = await gateway.client.get("/v1/models/exact", headers={"x-api-key": KEY, **VERSION})
    assert (one.json()["type"], one.json()["id"]) == ("model", "exact")
    unknown = await gateway.client.get("/v1/models/nobody", headers={"x-api-key": KEY, **VERSION})
    assert (unknown.status_code, error_of(unknown)["type"]) == (404, "not_found_error")
    unmarked = await gateway.client.get("/v1/models", headers={"authorization": f"Bearer {KEY}"})
    assert unmarked.json()["object"] == "list"


async def test_a_count_includes_all_that_is_sent(gateway: RunningGateway) -> None:
    tool = {"name": "f", "description": "Reads. " * 20, "input_schema": {"type": "object"}}
    plain = {"model": "claude-haiku-5", "messages": [HELLO]}
    counts = []
    for fields in ({}, {"system": "Be brief. " * 20}, {"tools": [tool]}, {"messages": [HELLO] * 3}):
        response = await post(gateway, COUNT, {**plain, **fields})
        assert (response.status_code, response.headers["x-dragoman-usage"]) == (200, "estimated")
        counts.append(response.json()["input_tokens"])
    assert counts[0] > 0 and all(count > counts[0] for count in counts[1:])


async def test_a_count_costs_no_request(gateway: RunningGateway) -> None:
    counted = [await post(gateway, COUNT, BODY, **{"x-api-key": LIMITED}) for _ in range(3)]
    answered = [await post(gateway, MESSAGES, BODY, **{"x-api-key": LIMITED}) for _ in range(2)]
    assert [response.status_code for response in (*counted, *answered)] == [200, 200, 200, 200, 429]
    assert error_of(answered[1])["type"] == "rate_limit_error"


async def test_a_count_of_a_broken_request_is_refused(gateway: RunningGateway) -> None:
    refused = await post(gateway, COUNT, {"model": "claude-haiku-5", "messages": [HELLO], "tools": "x"})
    assert (refused.status_code, error_of(refused)["param"]) == (400, "tools")


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_the_api_is_reachable(gateway: RunningGateway, method: str) -> None:
    response = await gateway.client.request(method, "/api/hello", headers={"x-api-key": KEY})
    assert response.status_code == 200


@pytest.mark.parametrize("route", [route for route in ROUTES if route.kind == "refused"], ids=lambda route: route.path)
async def test_what_is_not_offered_says_what_to_do(gateway: RunningGateway, route: Any) -> None:
    path = route.path.replace("{batch}", "msgbatch_1/results").replace("{file}", "file_1")
    response = await gateway.client.request(route.method, path, headers={"x-api-key": KEY, **VERSION})
    error = error_of(response)
    assert (response.status_code, error["type"], error["code"]) == (404, "not_found_error", "unsupported_operation")
    assert error["message"] == route.refusal.message


async def test_another_method_is_refused_in_the_form_of_the_dialect(gateway: RunningGateway) -> None:
    response = await gateway.client.get(MESSAGES, headers={"x-api-key": KEY})
    assert (response.status_code, error_of(response)["type"]) == (405, "invalid_request_error")


NUMBER: Final[tuple[object, ...]] = ("x", True, [], {})
OBJECT: Final[tuple[object, ...]] = ("x", True, 1, [])
# Fields, and for each what it can never be.
WRONG: Final[Mapping[str, tuple[object, ...]]] = {
    "model": (None, True, 1, [], {}, "", "  "),
    "messages": (None, True, 1, "x", {}, []),
    "max_tokens": (None, *NUMBER, 1.5, 2**64),
    "stream": ("true", 1, [], {}),
    "stop_sequences": (True, 1, "x", {}, [1], [None]),
    "temperature": NUMBER,
    "top_p": NUMBER,
    "top_k": (*NUMBER, 0.5),
    "tools": ("x", True, 1, {}, [1], ["x"], [{}], [{"name": 1}], [{"name": "f", "input_schema": []}]),
    "tool_choice": (*OBJECT, {}, {"type": "sometimes"}, {"type": "tool"}, {"type": "tool", "name": 1}),
    "thinking": (*OBJECT, {}, {"type": 1}, {"type": "enabled", "budget_tokens": "x"}),
    "output_config": (*OBJECT, {"effort": 1}, {"effort": "most"}, {"format": {}}, {"format": {"type": "text"}}),
    "metadata": (*OBJECT, {"user_id": 1}),
    "thread": (*OBJECT, {}, {"type": "continue"}),
    "mcp_servers": ("x", True, 1, {}, [{}]),
    "container": ("x", True, 1, {"id": "x"}),
}


@pytest.mark.parametrize(("field", "values"), WRONG.items(), ids=str)
async def test_a_wrong_field_is_named(gateway: RunningGateway, field: str, values: tuple[object, ...]) -> None:
    for value in values:
        response = await post(gateway, MESSAGES, {**BODY, field: value})
        error = error_of(response)
        assert (response.status_code, error["type"]) == (400, "invalid_request_error"), value
        assert str(error["param"]).partition("[")[0].partition(".")[0] == field, value


@pytest.mark.parametrize("name", NOT_JSON)
async def test_what_is_no_json_is_refused(gateway: RunningGateway, name: str) -> None:
    for path in (MESSAGES, COUNT):
        response = await post(gateway, path, NOT_JSON[name])
        assert (response.status_code, error_of(response)["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("body", NOT_AN_OBJECT)
async def test_what_is_no_object_is_refused(gateway: RunningGateway, body: bytes) -> None:
    response = await post(gateway, MESSAGES, body)
    assert (response.status_code, error_of(response)["type"]) == (400, "invalid_request_error")


async def test_a_fault_of_the_history_is_mended_or_named(gateway: RunningGateway) -> None:
    orphan = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "nobody", "content": "x"}, HELLO]}
    response = await post(gateway, MESSAGES, {**BODY, "messages": [orphan]}, **{"x-dragoman-explain": "1"})
    answer = read_whole(response.content)
    assert response.status_code == 200 and {"TOOL_ORPHAN", "PART_TYPE"} <= set(answer.notices)
