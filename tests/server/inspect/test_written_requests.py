"""What is written in the page is sent through the gateway's own front: its answer comes as the client of any other
request gets it, under the limits of the inspector's key, and without secrets."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any, Final

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from gateway.core.conversation import Json
from gateway.core.events import Event, PassthroughFields, TextDelta, ToolCallDelta, ToolCallEnd, ToolCallStart
from gateway.recording.lines import RequestLine
from gateway.recording.recording import Interaction
from gateway.server.inspect.sent_answer import AnswerEnded, AnswerPiece, SentAnswer
from gateway.server.inspect.sent_requests import SentRequests
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.testing.faulty import END, HEAD, Connection, FaultyBackend, answer, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_request_routes import seen_by_backend
from tests.server.api.inspect.test_routes import ADMIN, settings
from tests.server.inspect.test_sent_requests import REQUESTS, SAID, backend_requests, summary
from tests.server.media.scene import asking, describing_gateway, picture

CHAT_BODY: Final[dict[str, Json]] = {"model": "demo-chat", "messages": SAID, "stream": True}
SECRET: Final = "backend-secret-12345"

Told = tuple[str, Any]


def _told(text: str) -> list[Told]:
    """Returns the events of a stream that has come so far."""
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" in fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


async def written(gateway: RunningGateway, body: "Json | bytes", **options: Any) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": "application/json", **options.pop("headers", {})}
    return await gateway.client.post("/inspect/api/send", content=content, headers=headers, timeout=60, **options)


async def told(gateway: RunningGateway, body: "Json | bytes", **options: Any) -> list[Told]:
    response = await written(gateway, body, **options)
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return _told(response.text)


def said(events: Sequence[Told]) -> list[dict[str, Any]]:
    """Returns the parts of an answer as the page adds them up."""
    parts: dict[int, dict[str, Any]] = {}
    for name, pieces in events:
        for piece in pieces if name == "pieces" else ():
            part = parts.setdefault(piece["part"], {"id": "", "name": "", **piece, "text": ""})
            part["text"] += piece.get("text", "")
    return [parts[number] for number in sorted(parts)]


def ended(events: Sequence[Told]) -> dict[str, Any]:
    name, end = events[-1]
    assert name == "ended"
    found: dict[str, Any] = end
    return found


@asynccontextmanager
async def behind(backend: FaultyBackend, **of_backend: Json) -> AsyncIterator[RunningGateway]:
    """A gateway whose model `m` this backend has."""
    own = settings(send=True)
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": backend.base_url}
    own |= {"backends": {"b": {**entry, **of_backend}}, "models": {"m": {"backend": "b"}}}
    async with running_gateway(own) as gateway:
        yield gateway


def delta(**fields: Json) -> bytes:
    document = {"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields}]}
    return chunk(b"data: %s\n\n" % json.dumps(document).encode())


def finished(reason: str) -> bytes:
    document = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    return chunk(b"data: %s\n\n" % json.dumps(document).encode()) + chunk(b"data: [DONE]\n\n") + END


def to(model: str, **fields: Json) -> dict[str, Json]:
    return {**CHAT_BODY, "model": model, **fields}


@pytest.mark.parametrize("stream", [True, False])
async def test_what_the_answer_says_comes_and_its_request_is_in_the_list(stream: bool) -> None:
    async with running_gateway(settings(send=True)) as gateway:
        body = {**CHAT_BODY, "stream": stream}
        client = await gateway.client.post("/v1/chat/completions", json={**body, "stream": False})
        events = await told(gateway, body)
        assert events[0][0] == "begun"
        (part,) = said(events)
        assert (part["kind"], part["text"]) == ("text", client.json()["choices"][0]["message"]["content"])
        end = ended(events)
        assert (end["status"], end["code"], end["message"], end["finish"]) == (200, "", "", "stop")
        assert end["prompt_tokens"] == (None if stream else client.json()["usage"]["prompt_tokens"])
        one = await summary(gateway, events[0][1]["id"])
        assert (one["key"], one["status"], one["stream"]) == ("inspector", 200, stream)
        listed = (await gateway.client.get("/inspect/api/requests")).json()["requests"]
        assert listed[0]["id"] == events[0][1]["id"]
        assert json.loads(seen_by_backend(gateway, "chat"))["messages"] == SAID


@pytest.mark.parametrize("dialect", REQUESTS)
async def test_the_answer_is_told_alike_in_every_dialect(dialect: str) -> None:
    path, body = REQUESTS[dialect]
    async with running_gateway(settings(send=True)) as gateway:
        events = await told(gateway, body, params={"path": path})
        assert [part["kind"] for part in said(events)] == ["text"], events
        one = await summary(gateway, events[0][1]["id"])
        assert (one["dialect"], one["status"], one["path"]) == (dialect, 200, path.partition("?")[0])


async def test_a_call_is_told_and_nobody_runs_it() -> None:
    function: Json = {"name": "shell", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}

    async def script(connection: Connection) -> None:
        call: Json = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "shell", "arguments": ""}}
        more: Json = {"index": 0, "function": {"arguments": '{"command": "rm -rf /"}'}}
        await connection.send(HEAD, delta(reasoning_content="Hm."), delta(content="I look."))
        await connection.send(delta(tool_calls=[call]), delta(tool_calls=[more]), finished("tool_calls"))

    async with faulty_backend(script) as backend, behind(backend) as gateway:
        events = await told(gateway, to("m", tools=[{"type": "function", "function": function}]))
        thinking, text, call = said(events)
        assert (thinking["kind"], thinking["text"]) == ("thinking", "Hm.")
        assert (text["kind"], text["text"]) == ("text", "I look.")
        assert (call["kind"], call["id"], call["name"]) == ("call", "call_1", "shell")
        assert json.loads(call["text"]) == {"command": "rm -rf /"}
        assert ended(events)["finish"] == "tool_calls" and len(backend.seen) == 1


async def test_it_is_told_while_it_comes_and_ends_with_who_waits_for_it() -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(HEAD, delta(content="One two "))
        await connection.gone()
        gone.set()

    async with faulty_backend(script) as backend, behind(backend) as gateway:
        body = json.dumps(to("m")).encode()
        headers = {"content-type": "application/json"}
        seen = ""
        async with asyncio.timeout(20):
            async with gateway.client.stream("POST", "/inspect/api/send", content=body, headers=headers) as response:
                async for text in response.aiter_text():
                    seen += text
                    if "One two" in seen:
                        break
            await gone.wait()
        one = await summary(gateway, _told(seen)[0][1]["id"])
        assert (one["status"], one["code"]) == (499, "client_gone")


async def test_an_error_is_told_with_its_status_its_code_and_its_words() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        events = await told(gateway, to("nobody"))
        end = ended(events)
        assert (end["status"], end["code"]) == (404, "model_not_found") and "nobody" in end["message"] and end["advice"]
        end = ended(await told(gateway, b"{not json"))
        assert (end["status"], end["code"]) == (400, "invalid_json")
        broken: Json = [{"role": "user", "content": "Hello [[demo:truncated after=2]]"}]
        events = await told(gateway, {**CHAT_BODY, "messages": broken})
        assert said(events)[0]["text"] and ended(events)["code"] == "upstream_stream_truncated"
        # Of a whole answer that fails, there is the error alone, as for a client.
        events = await told(gateway, {**CHAT_BODY, "messages": broken, "stream": False})
        assert said(events) == [] and (ended(events)["status"], ended(events)["code"]) == (
            502,
            "upstream_stream_truncated",
        )


async def test_no_secret_of_the_gateway_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_BACKEND", SECRET)
    words = [SECRET[:4], SECRET[4:9], SECRET[9:], " and sk-", "abcdefghij", "klmnop."]

    async def script(connection: Connection) -> None:
        if b'"stream":false' in connection.body.replace(b" ", b""):
            error: Json = {"error": {"message": f"Your key is {SECRET}.", "code": SECRET}}
            await connection.send(answer("400 Bad Request", json.dumps(error).encode()))
            return
        await connection.send(HEAD)
        for word in ["The key is ", *words]:
            await connection.send(delta(content=word))
            await asyncio.sleep(0.12)
        call: Json = {"index": 0, "id": SECRET, "type": "function", "function": {"name": "f", "arguments": ""}}
        await connection.send(delta(tool_calls=[call]))
        for word in ['{"a": "', *words, '"}']:
            await connection.send(delta(tool_calls=[{"index": 0, "function": {"arguments": word}}]))
        await connection.send(finished("tool_calls"))

    async with faulty_backend(script) as backend, behind(backend, api_key_env="SECRET_OF_BACKEND") as gateway:
        tools: Json = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
        response = await written(gateway, to("m", tools=tools))
        text, call = said(_told(response.text))
        assert "The key is [key:" in text["text"] and "[key:" in call["text"]
        assert len(text["text"]) == len("The key is " + "".join(words))
        for word in (SECRET, "backend-", "abcdefghij"):
            assert word not in response.text
        events = await told(gateway, to("m", stream=False))
        assert ended(events)["status"] == 400 and "Your key is" in ended(events)["message"]
        assert SECRET not in json.dumps(events)


async def test_it_is_under_the_limits_of_the_inspector() -> None:
    limits: Json = {"inspector": {"requests_per_minute": 2, "models": ["demo-chat"]}}
    async with running_gateway({**settings(send=True), "keys": limits}) as gateway:
        ends = [ended(await told(gateway, CHAT_BODY)) for _ in range(3)]
        assert [(one["status"], one["code"]) for one in ends] == [
            (200, ""),
            (200, ""),
            (429, "rate_limit_exceeded"),
        ]
        assert backend_requests(gateway) == 2


async def test_what_a_day_may_take_is_that_of_the_inspector() -> None:
    keys: Json = {"inspector": {"compress": {"tokens_per_day": 1}}}
    inspector: Json = {"contents": "always", "send": True}
    async with describing_gateway(inspector=inspector, keys=keys) as (client, backends):
        body: dict[str, Json] = {"model": "m", "messages": asking(picture())}
        events = await told(client.gateway, body)
        assert ended(events)["status"] == 200 and backends.asked == []
        detail = (await client.gateway.client.get(f"/inspect/api/requests/{events[0][1]['id']}")).json()
        assert "IMAGE_NOT_DESCRIBED" in {notice["rule"] for notice in detail["notices"]}
        # The limit is no client's.
        await client.chat(asking(picture()))
        assert len(backends.asked) == 1


async def test_only_so_many_are_answered_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD, delta(content="One two "))
        await connection.gone()

    limits: Json = {"inspector": {"concurrent_streams": 1}}
    own = {**settings(send=True), "keys": limits}
    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        own |= {"backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway:
            first = asyncio.create_task(told(gateway, to("m")))
            async with asyncio.timeout(20):
                await backend.requested.wait()
            end = ended(await told(gateway, to("m")))
            assert (end["status"], end["code"]) == (429, "rate_limit_exceeded")
            first.cancel()
            await asyncio.wait([first])


async def test_nothing_is_sent_unless_the_settings_say_so() -> None:
    async with running_gateway(settings()) as gateway:
        answer = await written(gateway, CHAT_BODY)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_sent")
        assert "inspector.send" in answer.json()["error"]["message"]
        assert backend_requests(gateway) == 0
        assert (await gateway.client.get("/inspect/api/requests")).json()["total"] == 0


async def test_who_may_not_look_may_not_send(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_gateway(settings(send=True)) as gateway:
        for headers in (
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"origin": "http://evil.test"},
        ):
            assert (await written(gateway, CHAT_BODY, headers=headers)).status_code == 403
        assert (await written(gateway, CHAT_BODY, headers={"host": "evil.test"})).status_code == 421
        for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            assert (await written(gateway, CHAT_BODY, headers={"content-type": media_type})).status_code == 415
        assert (await gateway.client.get("/inspect/api/send")).status_code in (404, 405)
        assert backend_requests(gateway) == 0
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", "admin-secret")
    async with running_gateway(settings(enabled="on", send=True)) as gateway:
        assert (await written(gateway, CHAT_BODY)).status_code == 401
        assert (await written(gateway, CHAT_BODY, headers={"authorization": "Bearer other"})).status_code == 401
        assert backend_requests(gateway) == 0
        assert ended(await told(gateway, CHAT_BODY, headers=ADMIN))["status"] == 200


async def test_a_body_has_at_most_a_megabyte() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        fits = json.dumps(CHAT_BODY).encode().ljust(2**20)
        assert ended(await told(gateway, fits))["status"] == 200
        answer = await written(gateway, fits + b" ")
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")
        assert "up to 1 MB" in answer.json()["error"]["message"]
        assert backend_requests(gateway) == 1


@pytest.mark.parametrize(
    "path",
    [
        *("/inspect/api/send", "/inspect/api/requests", "/v1/models", "/healthz", "/metrics", "/v1/explain"),
        *("", "v1/chat/completions", "http://evil.test/v1/chat/completions", "//evil.test/", "/v1/../inspect"),
        *("/v1/chat/completions/", "/v1/chat%2Fcompletions/x", "/\r\nx: y", "/\u202e", "/" + "a" * 20_000),
    ],
)
async def test_it_goes_to_no_path_but_those_of_models(path: str) -> None:
    async with running_gateway(settings(send=True)) as gateway:
        answer = await written(gateway, CHAT_BODY, params={"path": path} if path else {"path": "/"})
        assert answer.status_code in (400, 414, 431), answer.text
        assert backend_requests(gateway) == 0


async def test_a_kept_request_is_sent_with_another_body_and_its_own_head() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        headers = {"x-dragoman-tag": "t", "anthropic-version": "2023-06-01"}
        body: dict[str, Json] = {"model": "demo-chat", "max_tokens": 99, "messages": SAID}
        first = await gateway.client.post("/v1/messages", json=body, headers=headers)
        like = first.headers["x-request-id"]
        edited: dict[str, Json] = {**body, "messages": [{"role": "user", "content": "Und morgen?"}]}
        events = await told(gateway, edited, params={"like": like})
        one = await summary(gateway, events[0][1]["id"])
        assert (one["dialect"], one["path"], one["key"]) == ("anthropic_messages", "/v1/messages", "inspector")
        assert b"Und morgen?" in seen_by_backend(gateway, "chat")
        assert (await written(gateway, edited, params={"like": "unknown"})).status_code == 404


async def test_what_is_stored_for_a_client_is_not_found() -> None:
    async with running_gateway(settings(send=True)) as gateway:
        answer = await gateway.client.post("/v1/responses", json={"model": "demo-chat", "input": "Wetter?"})
        body: dict[str, Json] = {"model": "demo-chat", "input": "Und?", "previous_response_id": answer.json()["id"]}
        end = ended(await told(gateway, body, params={"path": "/v1/responses"}))
        assert (end["status"], end["code"]) == (400, "previous_response_not_found")


def context() -> RequestContext:
    return RequestContext("POST", "/v1/chat/completions", CHAT, {}, Observers())


async def test_an_answer_waits_for_who_looks_at_it() -> None:
    answer, of = SentAnswer(list), context()
    answer.open_stream(of)
    for _ in range(3):
        answer.events(of, [TextDelta("word " * 100_000)])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await answer.ready(1_500_000)
    told = answer.told()
    (piece,) = _pieces(await anext(told))
    assert len(piece.text) == 1_500_000
    await answer.ready(1_000)
    await told.aclose()


async def test_who_looks_at_nothing_more_keeps_nothing_running() -> None:
    left = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        context_ = context()
        scope["state"]["client"].join(context_)
        for observe in context_.observers.open_stream:
            observe(context_)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        left.set()

    sent = SentRequests(True, list)
    request = RequestLine(1, "r", "openai_chat", "POST", "/v1/chat/completions", {})
    told = sent.answer(app, Interaction(request), b"{}")
    assert await anext(told)
    (running,) = sent._running
    await asyncio.sleep(0.1)
    assert not left.is_set() and not running.done()
    await told.aclose()
    async with asyncio.timeout(10):
        await running


async def test_calls_that_come_side_by_side_are_told_apart() -> None:
    answer, of = SentAnswer(list), context()
    answer.open_stream(of)
    answer.events(
        of, [ToolCallStart(0, "a", "f"), ToolCallStart(1, "b", "g"), ToolCallDelta(0, "1 "), ToolCallDelta(1, "2 ")]
    )
    answer.events(of, [ToolCallDelta(0, "3"), ToolCallEnd(0), ToolCallDelta(1, "4"), ToolCallEnd(1)])
    answer.close()
    found = [one async for one in answer.told()]
    assert [(one.id, one.name, one.text) for one in _pieces(found[0])] == [("a", "f", "1 3"), ("b", "g", "2 4")]
    assert isinstance(found[1], AnswerEnded)


async def test_words_that_nothing_interrupts_for_a_person_are_one_part() -> None:
    answer, of = SentAnswer(list), context()
    answer.open_stream(of)
    found: list[AnswerPiece] = []
    unread = PassthroughFields("choice", {"logprobs": 1})
    call = PassthroughFields("event", {"q": 1}, call="search")
    steps: list[list[Event]] = [[TextDelta("One ")], [unread, TextDelta("two ")], [call]]
    for events in steps:
        answer.events(of, events)
        found += answer._take(whole=False)
    answer.events(of, [TextDelta("three")])
    found += answer._take(whole=True)
    assert [(one.part, one.kind, one.text, one.name) for one in found] == [
        (0, "text", "One ", ""),
        (0, "text", "two ", ""),
        (1, "call", '{"q":1}', "search"),
        (2, "text", "three", ""),
    ]


def _pieces(told: Sequence[AnswerPiece] | AnswerEnded) -> Sequence[AnswerPiece]:
    assert not isinstance(told, AnswerEnded)
    return told


@pytest.mark.parametrize(
    "secret", ["two words of it", "schl\u00fcssel-1234", "\U0001f511\U0001f511\U0001f511\U0001f511\U0001f511\U0001f511"]
)
async def test_a_secret_of_any_signs_is_told_at_no_time(secret: str) -> None:
    answer, of = SentAnswer(lambda: [secret]), context()
    answer.open_stream(of)
    found = ""
    told = answer.told()
    for sign in f"Say {secret} now, please.":
        answer.events(of, [TextDelta(sign)])
        found += "".join(piece.text for piece in answer._take(whole=False))
        assert not any(secret[:size] in found for size in range(3, len(secret)))
    answer.close()
    async for one in told:
        found += "" if isinstance(one, AnswerEnded) else "".join(piece.text for piece in one)
    assert found.startswith("Say ") and found.endswith(" now, please.") and secret not in found
    assert len(found) == len(f"Say {secret} now, please.")


@pytest.mark.parametrize("ends", [True, False])
def test_calls_take_work_in_proportion_to_their_number(ends: bool) -> None:
    def steps(count: int) -> int:
        answer, of = SentAnswer(list), context()
        answer.open_stream(of)
        for at in range(count):
            answer.events(of, [ToolCallStart(at, f"c{at}", "f"), ToolCallDelta(at, "{}")])
            answer.events(of, [ToolCallEnd(at)] if ends else [])
        found = 0

        def count_call(frame: FrameType, event: str, arg: object) -> None:
            nonlocal found
            found += event == "call"

        sys.setprofile(count_call)
        try:
            assert len(answer._take(whole=False)) == count
        finally:
            sys.setprofile(None)
        return found

    assert steps(400) < 5 * steps(100)
