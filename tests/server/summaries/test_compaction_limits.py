"""What bounds a compaction, and what it says where it cannot hold everything: never an endless search for room, and
never a loss that nobody is told."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.core.sealed_compaction import MARK
from gateway.memory.summaries import sealed_summary
from gateway.server.telemetry.request_context import RequestContext
from tests.server.summaries.test_compaction import SECRET, TASK, TRIGGER, client, item_of, items

EXPLAIN: Final = {"x-dragoman-explain": "1"}
OWN: Final[dict[str, Json]] = {"type": "compaction", "encrypted_content": "gAAAA-opaque"}


def user(text: str) -> dict[str, Json]:
    return {"type": "message", "role": "user", "content": text}


async def test_a_history_of_too_many_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_summary, "MOST_TURNS", 6)
    async with client() as one:
        response = await one.post("/v1/responses/compact", input=items())
        assert response.status_code == 400 and "6 messages" in response.json()["error"]["message"]
        assert not one.model.summarised
        assert (await one.post("/v1/responses/compact", input=items(2))).status_code == 200


async def test_where_nothing_fits_the_search_for_room_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_summary, "LONGEST", 100)
    async with client() as one:
        response = await one.post("/v1/responses/compact", input=items())
        assert response.status_code == 400 and "sealed" in response.json()["error"]["message"]


async def test_what_has_no_room_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client() as one:
        monkeypatch.setattr(sealed_summary, "LONGEST", 700)
        one.model.summarise = lambda lines: json.dumps(
            {"goal": [{"text": f"Note {n:x}", "from": [1]} for n in range(99)]}
        )
        response = await one.post("/v1/responses/compact", EXPLAIN, input=items(20))
        made = item_of(response.json()["output"])["encrypted_content"]
        assert made.startswith(MARK) and len(made) <= 700
        [notice] = [notice for notice in one.notices(response) if notice["rule"] == "COMPACTION_UNWRITTEN"]
        assert "too long to be sealed" in notice["detail"]
        await one.post("/v1/responses", input=[item_of(response.json()["output"])])
        assert "are left out" in one.sent[0]["content"]


async def test_many_short_messages_do_not_fill_the_summary() -> None:
    async with client() as one:
        said: dict[str, Json] = {"type": "message", "role": "assistant", "content": "Which file?"}
        given = [user(TASK), said, *[user(f"{n} ok") for n in range(3_000)], *items(1, first=1)]
        response = await one.post("/v1/responses/compact", EXPLAIN, input=given, model="other")
        assert "COMPACTION_MADE" in one.rules(response)
        await one.post("/v1/responses", input=[item_of(response.json()["output"])])
        summary = one.sent[0]["content"]
        assert len(summary) < 40_000 and TASK in summary and '"2999 ok"' in summary


async def test_a_compaction_of_a_provider_among_the_covered_messages_is_told_to_be_lost() -> None:
    async with client() as one:
        response = await one.post("/v1/responses", EXPLAIN, input=[user("First."), OWN, *items(2, 1), TRIGGER])
        assert {"COMPACTION_MADE", "COMPACTION_UNREADABLE"} <= {*one.rules(response)}
        lines = one.model.summarised[-1]["messages"][1]["content"].split("\n")
        assert "only that provider reads" in json.loads(lines[1])["text"]
        item = item_of(response.json()["output"])
        for given in ([item], [item_of((await one.compacted([item, *items(1, 8)]))["output"])]):
            await one.post("/v1/responses", input=given)
            assert "only that provider reads" in one.sent[0]["content"].split("\n")[1]


async def test_the_summary_of_a_history_longer_than_the_window_passes_its_checks() -> None:
    """Identifiers that stand only in messages that the model was not given are not asked of it."""
    async with client() as one:
        given = [user(TASK)]
        for n in range(60):
            said = f"I looked at src/old_{n % 12}_file.py: " + "word " * 700
            given += [user("next step please"), {"type": "message", "role": "assistant", "content": said}]
        response = await one.post("/v1/responses/compact", EXPLAIN, input=[*given, *items(3)])
        assert "COMPACTION_MADE" in one.rules(response), one.notices(response)
        [made] = [notice for notice in one.notices(response) if notice["rule"] == "COMPACTION_MADE"]
        assert "which has not read 91 of them" in made["detail"]


async def test_each_notice_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    note = RequestContext.note

    def noted(self: RequestContext, notices: Any) -> None:
        told.extend(notice.rule for notice in notices)
        note(self, notices)

    monkeypatch.setattr(RequestContext, "note", noted)
    async with client() as one:
        first = await one.compacted(items())
        for path, more in (("/v1/responses/compact", []), ("/v1/responses", [TRIGGER])):
            told.clear()
            given = [*first["output"], *items(1, 8), {"type": "web_search_call", "id": "w"}, *more]
            response = await one.post(path, EXPLAIN, input=given, store=False)
            for rule in ("COMPACTION_OPENED", "COMPACTION_MADE", "ITEM_NOT_SENT"):
                assert told.count(rule) == 1 and one.rules(response).count(rule) == 1, (rule, told)


async def test_where_nothing_is_new_the_earlier_compaction_stays() -> None:
    async with client() as one:
        made = await one.compacted(items())
        response = await one.post("/v1/responses/compact", EXPLAIN, input=made["output"])
        [notice] = [notice for notice in one.notices(response) if notice["rule"].startswith("COMPACTION_MADE")]
        assert "nothing is new" in notice["detail"] and "window" not in notice["detail"]
        assert "COMPACTION_UNWRITTEN" not in one.rules(response) and len(one.model.summarised) == 1
        await one.post("/v1/responses", input=[item_of(made["output"])])
        before = one.sent[0]["content"]
        await one.post("/v1/responses", input=[item_of(response.json()["output"])])
        assert one.sent[0]["content"] == before


async def test_a_history_without_messages_says_so() -> None:
    async with client() as one:
        response = await one.post("/v1/responses", EXPLAIN, input=[TRIGGER], instructions="Be good.")
        [notice] = [notice for notice in one.notices(response) if notice["rule"] == "COMPACTION_UNWRITTEN"]
        assert "no messages" in notice["detail"] and "window" not in notice["detail"]


async def test_the_tokens_of_a_key_count_where_its_state_is_off(tmp_path: Path) -> None:
    """In the store of all workers: else each worker would have a limit of its own."""
    stored: Json = {"store": f"sqlite:{tmp_path / 'state'}", "deadline_ms": 10_000}
    async with client(more={"state": stored}, tokens_per_day=9_000) as one:
        off = {"x-dragoman-state": "off", **EXPLAIN}
        for _ in range(2):
            assert "COMPACTION_MADE" in one.rules(await one.post("/v1/responses/compact", off, input=items()))
        third = await one.post("/v1/responses/compact", EXPLAIN, input=items())
        assert "COMPACTION_UNWRITTEN" in one.rules(third)


async def test_the_tokens_of_a_failed_summary_come_back_but_not_those_of_a_late_one() -> None:
    """A model that was not waited for may have written all of it."""
    async with client(tokens_per_day=9_000, deadline_s=1) as one:
        one.model.summary_fault = b""
        for _ in range(3):
            failed = await one.post("/v1/responses/compact", EXPLAIN, input=items())
            assert "upstream_connection_error" in str(one.notices(failed))
        one.model.summary_fault = None
        one.model.gate.clear()
        late = await one.post("/v1/responses/compact", EXPLAIN, input=items())
        assert "upstream_timeout" in str(one.notices(late))
        one.model.gate.set()
        after = await one.post("/v1/responses/compact", EXPLAIN, input=items())
        assert "tokens of the day" in str(one.notices(after))


async def test_a_summary_whose_client_has_left_costs_what_was_expected() -> None:
    async with client(tokens_per_day=9_000) as one:
        one.model.gate.clear()
        asking = asyncio.create_task(one.post("/v1/responses/compact", input=items()))
        await one.model.has_begun()
        asking.cancel()
        async with asyncio.timeout(30):
            while 'status="499"' not in (await one.gateway.client.get("/metrics")).text:
                pass
        one.model.gate.set()
        after = await one.post("/v1/responses/compact", EXPLAIN, input=items())
        assert "tokens of the day" in str(one.notices(after))


async def test_an_older_compaction_is_superseded_by_a_newer_one() -> None:
    async with client() as one:
        older = item_of((await one.compacted([user("An older fact."), *items(1, 1)]))["output"])
        newer = item_of((await one.compacted(items()))["output"])
        forged: dict[str, Json] = {**older, "encrypted_content": f"{MARK}AAAA"}
        for before in (older, forged):
            response = await one.post("/v1/responses", EXPLAIN, input=[user("Kept."), before, newer])
            assert response.status_code == 200, response.text
            assert {"COMPACTION_OPENED", "COMPACTION_SUPERSEDED"} <= {*one.rules(response)}
            sent = json.dumps(one.sent)
            assert "Kept." in sent and "An older fact." not in sent and len(one.sent) == 2


async def test_the_name_of_a_call_goes_through_the_secrets() -> None:
    async with client() as one:
        call: dict[str, Json] = {"type": "function_call", "call_id": "c", "name": SECRET, "arguments": "{}"}
        output: dict[str, Json] = {"type": "function_call_output", "call_id": "c", "output": "fine"}
        await one.post("/v1/responses", input=[item_of((await one.compacted([user(TASK), call, output]))["output"])])
        assert SECRET not in one.sent[0]["content"] and "[key:openai:" in one.sent[0]["content"]


@pytest.mark.parametrize("sealed", [5, {}, [], True, "", None])
async def test_what_is_no_text_is_refused_by_the_index_of_the_client(sealed: Json) -> None:
    async with client() as one:
        stored = (await one.post("/v1/responses", input=items(), store=True)).json()["id"]
        given = [user("Hello."), {"type": "compaction", "encrypted_content": sealed}]
        response = await one.post("/v1/responses", input=given, previous_response_id=stored)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["param"]) == (400, "invalid_compaction", "input[1]")


async def test_a_compaction_that_is_not_stored_says_so() -> None:
    async with client() as one:
        stored = (await one.post("/v1/responses", input=items(), store=True)).json()["id"]
        asked: dict[str, Any] = {"input": [TRIGGER], "previous_response_id": stored}
        response = await one.post("/v1/responses", EXPLAIN, store=True, **asked)
        assert response.json()["store"] is False and "RESPONSE_NOT_STORED" in one.rules(response)
        response = await one.post("/v1/responses", EXPLAIN, store=False, **asked)
        assert "RESPONSE_NOT_STORED" not in one.rules(response)


@pytest.mark.parametrize("stream", [{}, "yes", 1])
async def test_a_stream_of_the_wrong_type_is_refused_at_compact_too(stream: Json) -> None:
    async with client() as one:
        response = await one.post("/v1/responses/compact", input=items(), stream=stream)
        assert (response.status_code, response.json()["error"]["param"]) == (400, "stream")


async def test_a_stream_has_no_effect_at_compact_and_that_is_told() -> None:
    async with client() as one:
        response = await one.post("/v1/responses/compact", EXPLAIN, input=items(), stream=True)
        assert response.json()["object"] == "response.compaction"
        assert any("stream" in notice["detail"] for notice in one.notices(response))


async def test_the_tokens_of_a_compaction_are_counted_once() -> None:
    """Where those of summaries are counted, of the backend whose model wrote it."""
    async with client(model="other") as one:
        assert (await one.compacted(items()))["usage"]["total_tokens"] > 0
        counted = (await one.gateway.client.get("/metrics")).text
        assert 'gateway_summary_tokens_total{backend="text",key="-",kind="prompt"}' in counted
        assert "gateway_tokens_total{" not in counted


@pytest.mark.parametrize("given", [{}, {"input": None}, {"input": []}])
async def test_a_stored_response_is_compacted_without_input(given: dict[str, Any]) -> None:
    """OpenAI's published `ResponseCompactParams` require the model alone."""
    async with client() as one:
        identities = set()
        for rounds in (2, 3):
            stored = (await one.post("/v1/responses", input=items(rounds), store=True)).json()["id"]
            response = await one.post("/v1/responses/compact", EXPLAIN, previous_response_id=stored, **given)
            assert response.status_code == 200, response.text
            made = response.json()["output"]
            assert [item["type"] for item in made] == ["message", "compaction"]
            assert "COMPACTION_MADE" in one.rules(response)
            identities.add(item_of(made)["id"])
        assert len(identities) == 2
        response = await one.post("/v1/responses/compact", **given)
        assert response.status_code == 400
