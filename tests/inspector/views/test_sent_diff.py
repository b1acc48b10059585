"""The bodies that were sent for two requests, line by line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Json
from gateway.inspector.views import matches
from gateway.inspector.views.matches import blocks_of
from gateway.inspector.views.sent_diff import Hunk, _hunks
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.recording.redact.canaries import CANARIES, core_of
from tests.server.api.inspect.test_routes import settings

LINES = st.lists(st.sampled_from("abcdef"), max_size=60)


def hunks(old: list[str], new: list[str]) -> list[Hunk]:
    return [*_hunks(old, new, [*blocks_of(old, new)])]


@given(LINES, LINES)
def test_the_hunks_lead_from_one_body_to_the_other(old: list[str], new: list[str]) -> None:
    made: list[str] = []
    at = 0
    for hunk in hunks(old, new):
        made += old[at : hunk.old - 1]
        assert len(made) == hunk.new - 1
        before = [line.text for line in hunk.lines if line.op != "+"]
        at = hunk.old - 1 + len(before)
        assert old[hunk.old - 1 : at] == before
        made += [line.text for line in hunk.lines if line.op != "-"]
    assert made + old[at:] == new
    assert all(any(line.op != "=" for line in hunk.lines) for hunk in hunks(old, new))


def test_the_hunks_lead_there_also_between_large_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "_MOST_MATCHED", 3)
    test_the_hunks_lead_from_one_body_to_the_other()


def test_lines_far_from_a_change_are_left_out() -> None:
    old = [str(number) for number in range(100)]
    new = [*old[:50], "new", *old[51:]]
    (hunk,) = hunks(old, new)
    assert (hunk.old, hunk.new) == (48, 48)
    assert [(line.op, line.text) for line in hunk.lines] == [
        *(("=", str(number)) for number in (47, 48, 49)),
        *(("-", "50"), ("+", "new")),
        *(("=", str(number)) for number in (51, 52, 53)),
    ]
    assert hunks(old, old) == []


def test_of_a_long_line_the_part_that_differs_is_shown() -> None:
    old, new = "x" * 5000 + "old" + "y" * 5000, "x" * 5000 + "new" + "y" * 5000
    (hunk,) = hunks([old], [new])
    removed, added = (line.text for line in hunk.lines)
    assert "xold" in removed and "xnew" in added and max(len(removed), len(added)) < 420


async def asked(gateway: RunningGateway, text: str, model: str = "demo-chat") -> str:
    messages: list[Json] = [{"role": "system", "content": "You help."}, {"role": "user", "content": text}]
    return (await gateway.chat(model=model, messages=messages)).headers["x-request-id"]


async def difference(gateway: RunningGateway, one: str, other: str, **query: Any) -> Any:
    answer = await gateway.client.get(f"/inspect/api/requests/{one}/diff", params={"against": other, **query})
    return answer.status_code, answer.json()


async def test_any_two_requests_are_compared_as_they_were_sent() -> None:
    async with running_gateway(settings()) as gateway:
        first, second = await asked(gateway, "Weather in Rome?"), await asked(gateway, "Weather in Oslo?")
        _, found = await difference(gateway, second, first, of="sent", reveal=1)
        assert (found["against"], found["form"], found["added"], found["removed"]) == (first, "json", 1, 1)
        changed = [line["text"].strip() for line in found["hunks"][0]["lines"] if line["op"] != "="]
        assert changed == ['"content": "Weather in Rome?"', '"content": "Weather in Oslo?"']
        _, hidden = await difference(gateway, second, first, of="sent")
        assert "Rome" not in str(hidden) and "Oslo" not in str(hidden) and hidden["added"] == 1
        agent = await asked(gateway, "Weather in Rome?", "demo-agent")
        other = await asked(gateway, "Weather in Oslo?", "demo-agent")
        _, found = await difference(gateway, other, agent, of="sent", reveal=1)
        assert found["form"] == "fields" and "Oslo" in str(found)
        status, refused = await difference(gateway, other, first, of="sent")
        assert status == 400 and "no form in common" in refused["error"]["message"]
        refused_id = await asked(gateway, "Hello", "no-such-model")
        status, refused = await difference(gateway, other, refused_id, of="sent")
        assert status == 404 and "not here" in refused["error"]["message"]


async def test_no_secret_is_in_a_difference() -> None:
    async with running_gateway(settings()) as gateway:
        said = "\n".join(CANARIES.values())
        first, second = await asked(gateway, said), await asked(gateway, f"Again: {said}")
        for query in ({"of": "sent"}, {"of": "sent", "reveal": 1}, {"reveal": 1}):
            status, found = await difference(gateway, second, first, **query)
            assert status == 200 and [one for one in map(core_of, CANARIES.values()) if one in str(found)] == []
