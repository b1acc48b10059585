"""What the inspector shows of one request is what `explain` says, and what the backend and the client saw."""

import json
import threading
from collections.abc import Callable
from typing import Any, Final, cast

import pytest

from gateway.core.conversation import Json
from gateway.server.inspect.capture import Capture
from gateway.testing.faulty import HEAD, Connection, chunk, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_routes import settings

HISTORY: Final[list[Json]] = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": "Wetter in Kassel?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Kassel"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c_9", "content": "verloren"},
    {"role": "tool", "tool_call_id": "c_1", "content": "Regen, " + "sehr nass " * 400},
    {"role": "user", "content": "Und morgen?"},
]
TOOLS: Final[Json] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
COLUMNS: Final = ("client", "repaired", "trimmed", "sent")
# The models of the demo that are sent messages as text, and those that are sent them as fields.
AS_TEXT: Final = ("demo-agent", "demo-text")
AS_FIELDS: Final = ("demo-chat", "demo-messages", "demo-grpc")


async def asked(gateway: RunningGateway, model: str, messages: Json = HISTORY, **fields: Json) -> str:
    """Returns the id of a request with a damaged history."""
    body: dict[str, Json] = {"model": model, "messages": messages, "tools": TOOLS, **fields}
    answer = await gateway.client.post("/v1/chat/completions", json=body)
    return answer.headers["x-request-id"]


async def shown(gateway: RunningGateway, path: str, **parameters: Any) -> dict[str, Any]:
    answer = await gateway.client.get(f"/inspect/api/requests/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    return cast("dict[str, Any]", answer.json())


def limited() -> dict[str, Json]:
    return {**settings(), "repair": "repair", "max_tool_result_chars": 200}


def seen_by_backend(gateway: RunningGateway, name: str) -> bytes:
    return gateway.app.gateway_state.demo_backends._running[name].requests[-1].body


def texts(rows: list[dict[str, Any]], column: str) -> list[str]:
    """Returns the texts of a stage, in its order."""
    cells = [row["cells"][column] for row in rows]
    cells = [cell for cell in cells if cell is not None and cell["position"] is not None]
    return [cell["text"] for cell in sorted(cells, key=lambda cell: cast(int, cell["position"]))]


def said(message: dict[str, Any]) -> str:
    return cast(str, message.get("content") or "")


@pytest.mark.parametrize("model", [*AS_TEXT, *AS_FIELDS])
async def test_the_rows_are_what_explain_says(model: str) -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, model)
        rows = (await shown(gateway, f"{request_id}/messages", reveal=1))["rows"]
        body: Json = {"model": model, "messages": HISTORY, "tools": TOOLS}
        explained = (await gateway.client.post("/v1/explain", json=body)).json()
        assert texts(rows, "client") == [said(one) for one in cast("list[dict[str, Any]]", HISTORY)]
        for column in ("repaired", "trimmed"):
            assert texts(rows, column) == [said(one) for one in explained[column]]
            indexes = [row["index"] for row in rows if (cell := row["cells"][column]) and cell["mark"] != "-"]
            assert sorted(indexes) == sorted(explained["indexes"][column])
        found = await shown(gateway, request_id, reveal=1)
        assert [
            (one["rule"], one["index"], one["sentence"])
            for one in found["notices"]
            if one["stage"] not in ("backend", "unwrap")
        ] == [(one["rule"], one.get("index"), one["detail"]) for one in explained["diagnostics"]]
        assert found["checks"] and all(check["same"] for check in found["checks"])


@pytest.mark.parametrize("model", AS_TEXT)
async def test_a_message_is_shown_as_the_text_that_was_sent(model: str) -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, model)
        rows = (await shown(gateway, f"{request_id}/messages", reveal=1))["rows"]
        sent = seen_by_backend(gateway, model.removeprefix("demo-"))
        assert texts(rows, "sent")
        at = 0
        for text in texts(rows, "sent"):
            assert text, rows
            written = text.encode() if model == "demo-agent" else json.dumps(text, ensure_ascii=False).encode()[1:-1]
            at = sent.index(written, at) + len(written)


async def test_what_redaction_changes_is_said() -> None:
    """The words of a refusal decide what the gateway says of it."""
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat?defect=refuses_two_system"}
    own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
    async with running_gateway(own) as gateway:
        two: list[Json] = [{"role": "system", "content": text} for text in ("Kurz.", "Knapp.")]
        request_id = await asked(gateway, "m", [*two, {"role": "user", "content": "Hallo"}])
        (lost,) = (await shown(gateway, request_id))["lost"]
        assert lost == "notices: number 1 was HISTORY_REFUSED None failed, now none (1 before, 0)"
        revealed = await shown(gateway, request_id, reveal=1)
        assert revealed["lost"] == [] and revealed["notices"][0]["rule"] == "HISTORY_REFUSED"
        # Where the words decide nothing, nothing is lost with them.
        assert (await shown(gateway, await asked(gateway, "m")))["lost"] == []


async def test_an_answer_of_which_a_part_is_not_kept_is_no_defect() -> None:
    async with running_gateway(settings(request_mb=0.05)) as gateway:
        large: Json = [{"role": "user", "content": "Hallo [[scenario:long_unicode]]"}]
        request_id = await asked(gateway, "demo-agent", large)
        found = await shown(gateway, request_id)
        assert "bytes of the answer are over inspector.request_mb" in found["absent"] and found["stages"]
        assert [check["name"] for check in found["checks"] if not check["same"]] == []
        assert len((await shown(gateway, f"{request_id}/messages"))["rows"]) == 1


async def test_a_message_is_shown_as_it_stands_in_the_body() -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        rows = (await shown(gateway, f"{request_id}/messages", reveal=1))["rows"]
        messages = json.loads(seen_by_backend(gateway, "chat"))["messages"]
        assert texts(rows, "sent") == [said(one) for one in messages]
        (calling,) = [row["cells"]["sent"] for row in rows if row["cells"]["sent"] and row["cells"]["sent"]["calls"]]
        assert calling["calls"] == [{"id": "c_1", "name": "weather", "arguments": '{"city":"Kassel"}'}]


async def test_the_marks_say_what_became_of_a_message() -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        rows = (await shown(gateway, f"{request_id}/messages"))["rows"]
        marks = {row["index"]: [cell and cell["mark"] for cell in map(row["cells"].get, COLUMNS)] for row in rows}
        assert marks[0] == marks[1] == marks[5] == ["=", "=", "=", "="]
        assert marks[3][:2] == ["=", "~"]
        assert marks[4] == ["=", "=", "..", "="]
        notices = (await shown(gateway, request_id))["notices"]
        (orphan,) = [one for one in notices if one["rule"] == "TOOL_ID_UNKNOWN"]
        assert orphan["index"] == 3 and "Copy the id" in orphan["advice"]
        (row,) = [row for row in rows if orphan["number"] in row["notices"]]
        assert row["index"] == 3


@pytest.mark.parametrize("model", [*AS_TEXT, *AS_FIELDS])
async def test_what_was_sent_is_shown_in_readable_forms(model: str) -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, model)
        name = model.removeprefix("demo-")
        found = await shown(gateway, f"{request_id}/sent", reveal=1)
        body = seen_by_backend(gateway, name)
        assert found["bytes"] == len(body) and not found["cut"]
        if "json" in found["views"]:
            assert json.loads(found["views"]["json"]) == json.loads(body)
        else:
            lines = found["views"]["hex"].split("\n")
            assert b"".join(bytes.fromhex(line[10:57]) for line in lines) == body
            assert "Kassel" in found["views"]["fields"]
        assert ("text" in found["views"]) == (model in AS_TEXT)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", [*AS_TEXT, *AS_FIELDS])
async def test_the_chunks_joined_are_what_the_client_got(model: str, stream: bool) -> None:
    async with running_gateway(settings()) as gateway:
        answer = await gateway.chat(model=model, stream=stream)
        request_id = answer.headers["x-request-id"]
        found = await shown(gateway, f"{request_id}/answer", reveal=1)
        assert "".join(chunk["text"] for chunk in found["chunks"]) == answer.text
        numbers = {read["number"] for read in found["reads"]}
        assert (found["total"], found["from"], found["to"]) == (len(numbers), 0, len(numbers))
        assert {"TextDelta", "Finish"} <= {event["event"] for event in found["events"]}
        text = [event for event in found["events"] if event["event"] == "TextDelta"]
        # What is no stream is decoded at its end.
        assert all(event["read"] in numbers for event in text) or not stream
        assert found["end"]["status"] == 200 and found["end"]["expected"] == ""
        for event in text if stream else ():
            (chunk,) = [one for one in found["chunks"] if one["read"] == event["read"]][:1]
            assert event["fields"]["text"].split()[0] in chunk["text"] or model != "demo-chat"


async def test_a_page_of_an_answer() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = (await gateway.chat(model="demo-chat", stream=True)).headers["x-request-id"]
        whole = await shown(gateway, f"{request_id}/answer")
        pages = [
            await shown(gateway, f"{request_id}/answer", **{"from": at, "to": at + 1}) for at in range(whole["total"])
        ]
        for name in ("reads", "events", "chunks"):
            assert sorted((one for page in pages for one in page[name]), key=lambda one: one["number"]) == whole[name]


async def test_words_are_replaced_unless_they_are_asked_for() -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await asked(gateway, "demo-chat")
        for part in ("", "/messages", "/sent", "/answer"):
            text = json.dumps(await shown(gateway, f"{request_id}{part}"))
            assert "Kassel" not in text and "Regen" not in text
        assert "Kassel" in json.dumps(await shown(gateway, f"{request_id}/messages", reveal=1))


async def test_the_log_says_whose_words_were_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway")
    async with running_gateway(settings()) as gateway:
        first, second = await asked(gateway, "demo-chat"), await asked(gateway, "demo-chat")
        for path in (f"requests/{first}", f"requests/{second}/diff", f"export?id={first}&id={first}&id={second}"):
            caplog.clear()
            assert (await gateway.client.get(f"/inspect/api/{path}")).status_code == 200
            assert "words" not in caplog.text
            sign = "&" if "?" in path else "?"
            answer = await gateway.client.get(f"/inspect/api/{path}{sign}reveal=1&redact=none")
            assert answer.status_code == 200
            said = [one.getMessage() for one in caplog.records if "words" in one.getMessage()]
            shown_ids = [one for one in (first, second) if one in "".join(said)]
            assert shown_ids == ([first] if path == f"requests/{first}" else [first, second]), said
        assert answer.json()["requests"] == 2


async def test_nobody_gets_words_where_that_is_off() -> None:
    async with running_gateway(settings(reveal=False)) as gateway:
        request_id = await asked(gateway, "demo-chat")
        for path in (f"requests/{request_id}/messages?reveal=1", f"export?redact=none&id={request_id}"):
            answer = await gateway.client.get(f"/inspect/api/{path}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_revealed")
        assert (await gateway.client.get("/inspect/api/settings")).json()["reveal"] is False


async def test_a_refused_request_shows_how_far_it_came() -> None:
    async with running_gateway({**settings(), "repair": "strict"}) as gateway:
        request_id = await asked(gateway, "demo-chat")
        found = await shown(gateway, request_id)
        assert (found["error"]["status"], found["error"]["code"]) == (400, "invalid_value")
        assert found["error"]["advice"] and [stage["name"] for stage in found["stages"]] == ["client"]
        rows = (await shown(gateway, f"{request_id}/messages"))["rows"]
        assert len(rows) == len(HISTORY) and all(row["cells"]["sent"] is None for row in rows)
        answer = await gateway.client.get(f"/inspect/api/requests/{request_id}/sent")
        assert answer.status_code == 404 and "did not come so far" in answer.json()["error"]["message"]


async def test_a_broken_answer_says_what_came_and_what_did_not() -> None:
    async with running_gateway(settings()) as gateway:
        messages: Json = [{"role": "user", "content": "Hi [[demo:truncated after=2]]"}]
        request_id = await asked(gateway, "demo-chat", messages, stream=True)
        end = (await shown(gateway, f"{request_id}/answer"))["end"]
        assert end["code"] == "upstream_stream_truncated" and "reads" in end["came"] and "Finish" in end["expected"]
        error = (await shown(gateway, request_id))["error"]
        assert (error["came"], error["expected"]) == (end["came"], end["expected"])


async def test_a_connection_that_breaks_behind_a_whole_answer_breaks_nothing() -> None:
    said = {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}

    async def script(connection: Connection) -> None:
        await connection.send(HEAD + chunk(b"data: %s\n\n" % json.dumps(said).encode()))
        connection.close()

    async with faulty_backend(script) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway:
            answer = await gateway.chat(stream=True)
            found = await shown(gateway, f"{answer.headers['x-request-id']}/answer")
            assert (found["end"]["status"], found["end"]["code"], found["end"]["cut"]) == (200, "", None)


async def test_missing_contents_say_why_beside_the_summary() -> None:
    async with running_gateway(settings(contents="never")) as gateway:
        found = await shown(gateway, await asked(gateway, "demo-chat"))
        assert "were not kept" in found["absent"] and found["summary"]["status"] == 200
        assert found["route"] is None and set(found["marks"].values()) == {None}


async def test_the_requests_of_a_conversation_name_the_one_before() -> None:
    async with running_gateway(settings()) as gateway:
        first = await asked(gateway, "demo-chat", HISTORY[:2])
        await asked(gateway, "demo-chat", [{"role": "user", "content": "Another"}])
        second = await asked(gateway, "demo-chat", [{"role": "system", "content": "It is noon."}, *HISTORY[1:]])
        found = await shown(gateway, second)
        assert found["previous"] == first and (await shown(gateway, first))["previous"] is None
        assert found["summary"]["conversation"] == (await shown(gateway, first))["summary"]["conversation"] != ""


async def test_a_notice_quotes_the_words_that_the_messages_show() -> None:
    async with running_gateway(limited()) as gateway:
        request_id = await asked(gateway, "demo-agent")
        quoted: list[str] = []
        for reveal in (0, 1):
            rows = (await shown(gateway, f"{request_id}/messages", reveal=reveal))["rows"]
            (lost,) = rows[3]["cells"]["client"]["answers"]
            found = (await shown(gateway, request_id, reveal=reveal))["notices"]
            (sentence,) = [one["sentence"] for one in found if one["rule"] == "TOOL_ID_UNKNOWN"]
            assert f"'{lost}'" in sentence
            quoted.append(lost)
        # An id is no word.
        assert quoted == ["c_9", "c_9"]


@pytest.mark.parametrize("path", ["requests/{id}", "requests/{id}/answer", "export?id={id}", "requests?filter=Hello"])
async def test_contents_are_read_beside_what_is_served(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a long stream take a quarter of a second."""
    threads: set[int] = set()

    def seen(work: Callable[..., Any]) -> Callable[..., Any]:
        def see(*args: Any, **fields: Any) -> Any:
            threads.add(threading.get_ident())
            return work(*args, **fields)

        return see

    async with running_gateway(settings()) as gateway:
        request_id = (await gateway.chat(model="demo-chat", stream=True)).headers["x-request-id"]
        for name in ("interaction", "texts"):
            monkeypatch.setattr(Capture, name, seen(getattr(Capture, name)))
        answer = await gateway.client.get(f"/inspect/api/{path.format(id=request_id)}")
        assert answer.status_code == 200
    assert threads and threading.get_ident() not in threads
