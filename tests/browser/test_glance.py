"""A request of an agent's size is read on one screen: what happened, why, and what was changed."""

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import Connection, answer, faulty_backend
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings
from tests.browser.viewer import Look

if TYPE_CHECKING:
    from playwright.async_api import Locator

pytestmark = BROWSER

ROUNDS: Final = 149
WIDE: Final = Look(width=1280, height=800)
NARROW: Final = Look(width=390, height=844, color_scheme="dark")
WORDS: Final = "Your plan allows 3 requests a minute"


def agent_request(model: str) -> dict[str, Json]:
    """A request of an agent: 300 messages, and tools of 60 KB."""
    messages: list[Json] = [
        {"role": "system", "content": "You are an agent. " * 300},
        {"role": "user", "content": "Mend the build. " * 20},
    ]
    for number in range(ROUNDS):
        function: Json = {"name": "shell", "arguments": json.dumps({"command": f"make {number}"})}
        call: Json = {"id": f"call_{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"line {number}\n" * 40})
    tools: list[Json] = [
        {
            "type": "function",
            "function": {
                "name": "shell" if not at else f"tool_{at}",
                "description": "What it does. " * 140,
                "parameters": {"type": "object"},
            },
        }
        for at in range(30)
    ]
    return {"model": model, "messages": messages, "tools": tools}


async def ask(gateway: RunningGateway, body: dict[str, Json]) -> str:
    response = await gateway.client.post("/v1/chat/completions", json=body, timeout=60)
    return response.headers["x-request-id"]


async def screens(page: InspectorPage, look: Look) -> float:
    """How many screens the opened request is high."""
    height: int = await page.page.locator(".request-body").evaluate("one => one.scrollHeight")
    return height / look.height


async def in_first_screen(one: "Locator", look: Look) -> bool:
    box: Any = await one.bounding_box()
    return box is not None and 0 <= box["y"] < look.height


@pytest.mark.parametrize("model", ["demo-agent", "demo-chat"])
@pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_300_messages_take_three_screens(look: Look, model: str, opened: Open) -> None:
    body = agent_request(model)
    assert len(json.dumps(body["tools"])) > 60_000
    async with running_gateway(settings()) as gateway, opened(gateway.base_url, look) as viewer:
        request_id = await ask(gateway, body)
        page = InspectorPage(viewer)
        await page.open(request_id)
        panel = await page.panel()
        await panel.locator("table.stages").wait_for()
        await page.settled()
        assert await screens(page, look) <= 3
        happened = page.request(request_id).get_by_role("region", name="What happened")
        assert f"The backend {model} answered with" in await happened.inner_text()
        assert await in_first_screen(happened, look)


async def test_equal_changes_are_counted_and_folded(opened: Open) -> None:
    own: dict[str, Json] = {**settings(), "max_tool_result_chars": 100}
    async with running_gateway(own) as gateway, opened(gateway.base_url, WIDE) as viewer:
        request_id = await ask(gateway, agent_request("demo-chat"))
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.panel()
        happened = page.request(request_id).get_by_role("region", name="What happened")
        assert f"{ROUNDS} × TOOL_RESULT_SHORTENED" in await happened.inner_text()
        fold = viewer.page.get_by_role("button", name="changed like those above")
        await fold.wait_for()
        assert await screens(page, WIDE) <= 3
        rows = await viewer.page.locator("table.stages tbody tr.is-changed").count()
        await fold.click()
        assert await viewer.page.locator("table.stages tbody tr.is-changed").count() == ROUNDS > rows


async def refused(connection: Connection) -> None:
    error: Json = {"error": {"message": f"{WORDS}. <b data-made>Pay</b> \u202eevil", "type": "x", "code": "rate"}}
    await connection.send(answer("429 Too Many Requests", json.dumps(error).encode()))


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_refusal_is_told_in_the_words_of_the_backend(look: Look, opened: Open) -> None:
    async with faulty_backend(refused) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
        async with running_gateway(own) as gateway, opened(gateway.base_url, look) as viewer:
            request_id = await ask(gateway, {"model": "m", "messages": [{"role": "user", "content": "Hallo"}]})
            page = InspectorPage(viewer)
            await page.open(request_id)
            happened = page.request(request_id).get_by_role("region", name="What happened")
            assert "The backend b refused the request with the status 429." in await happened.inner_text()
            error = page.request(request_id).get_by_role("group", name="Error")
            assert f"The backend says: {WORDS}. <b data-made>Pay</b>" in await error.evaluate("one => one.textContent")
            assert "\u202e" not in await error.evaluate("one => one.textContent")
            assert await page.count("[data-made]") == 0
            assert await in_first_screen(happened, look) and await in_first_screen(error, look)


@pytest.mark.parametrize("look", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_a_request_that_failed_while_nobody_watched_says_why(look: Look, opened: Open) -> None:
    async with faulty_backend(refused) as backend:
        entry: Json = {"adapter": "openai_chat", "base_url": backend.base_url}
        own: dict[str, Json] = {
            "backends": {"b": entry},
            "models": {"m": {"backend": "b"}},
            "inspector": {"send": True},
        }
        async with running_gateway({**settings(), **own}) as gateway:
            orphan: Json = {"role": "tool", "tool_call_id": "c_9", "content": "lost"}
            small = await ask(gateway, {"model": "m", "messages": [{"role": "user", "content": "Hallo"}, orphan]})
            large = await ask(gateway, agent_request("m"))
            off = await gateway.client.post("/v1/chat/completions", json=hello(), headers={"x-dragoman-state": "off"})
            async with opened(gateway.base_url, look) as viewer:
                page = InspectorPage(viewer)
                send = viewer.page.get_by_role("button", name="Send again")
                for request_id, views in ((small, 5), (large, 2)):
                    await page.open(request_id)
                    request = page.request(request_id)
                    happened = request.get_by_role("region", name="What happened")
                    assert "The backend b refused the request with the status 429." in await happened.inner_text()
                    error = request.get_by_role("group", name="Error")
                    assert f"The backend says: {WORDS}" in await error.evaluate("one => one.textContent")
                    assert await in_first_screen(happened, look) and await in_first_screen(error, look)
                    await request.get_by_role("tab").first.wait_for()
                    assert await request.get_by_role("tab").count() == views
                    assert await send.count() == (1 if request_id == small else 0)
                    if request_id == small:
                        assert "TOOL_ORPHAN" in await happened.inner_text()
                await request.get_by_text("not here as a whole, so that it cannot be sent again").wait_for()
                received = (await page.show("Sent")).get_by_role("region", name="Client's request")
                await received.get_by_text('"messages"').wait_for()
                await viewer.page.get_by_text("What was sent to the backend was not kept: it is too large.").wait_for()
                await (await page.show("Answer")).get_by_text("#0").wait_for()
                gone = off.headers["x-request-id"]
                await viewer.page.goto(f"{viewer.address}/inspect#request={gone}")
                error = page.request(gone).get_by_role("group", name="Error")
                await error.get_by_text("Means").wait_for()
                await page.request(gone).get_by_text("are not here, so that it cannot be sent again").wait_for()
                assert await send.count() == 0 and await page.request(gone).get_by_role("tab").count() == 0


async def test_the_answer_stands_above_its_bytes(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url, WIDE) as viewer:
        request_id = await ask(gateway, {"model": "demo-chat", "messages": [{"role": "user", "content": "Hello"}]})
        page = InspectorPage(viewer)
        await page.open(request_id)
        panel = await page.show("Answer")
        await page.reveal()
        said = panel.get_by_role("region", name="The answer")
        told = (await gateway.client.get(f"/inspect/api/requests/{request_id}/answer?reveal=1")).json()
        assert told["assembled"]["parts"][0]["text"].strip() in await said.inner_text()
        above, below = await said.bounding_box(), await panel.locator("table.answer").bounding_box()
        assert above is not None and below is not None and above["y"] < below["y"]


async def test_object_and_text_arguments_differ_and_the_notice_has_both(opened: Open) -> None:
    call: Json = {"id": "c_1", "type": "function", "function": {"name": "weather", "arguments": {"city": "Rom"}}}
    messages: list[Json] = [
        {"role": "user", "content": "Wetter?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c_1", "content": "Regen"},
    ]
    async with running_gateway(settings()) as gateway, opened(gateway.base_url, WIDE) as viewer:
        page = InspectorPage(viewer)
        await page.open(await ask(gateway, {"model": "demo-chat", "messages": messages}))
        await page.reveal()
        panel = await page.panel()
        row = panel.locator("tr.is-changed")
        assert await row.locator(".call .form").all_inner_texts() == ["arguments as an object", "arguments as text"]
        notice = panel.locator(".notice", has_text="CALL_ARGS_TYPE")
        assert await notice.locator("del").inner_text() == "object"
        assert await notice.locator("ins").inner_text() == "text"


async def test_both_bodies_stand_side_by_side(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url, WIDE) as viewer:
        request_id = await ask(gateway, {"model": "demo-text", "messages": [{"role": "user", "content": "Hello"}]})
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.reveal()
        panel = await page.show("Sent")
        received = json.loads(await panel.get_by_role("region", name="Received bytes as JSON").inner_text())
        assert received["messages"] == [{"role": "user", "content": "Hello"}]
        await panel.get_by_role("region", name="Sent bytes as JSON").wait_for()


async def test_what_is_new_is_shown_since_the_previous_request(gateway: RunningGateway, opened: Open) -> None:
    first: list[Json] = [{"role": "user", "content": "How are you today?"}]
    await ask(gateway, {"model": "demo-chat", "messages": first})
    added: list[Json] = [{"role": "assistant", "content": "Fine"}, {"role": "user", "content": "<b data-made>So</b>"}]
    request_id = await ask(gateway, {"model": "demo-chat", "messages": [*first, *added]})
    async with opened(gateway.base_url, WIDE) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await page.reveal()
        panel = await page.show("Since previous")
        await panel.get_by_text("1 message in common, 2 new.").wait_for()
        new = panel.get_by_role("article")
        assert [await one.get_attribute("aria-label") for one in await new.all()] == ["New message 1", "New message 2"]
        assert "<b data-made>So</b>" in await new.last.inner_text() and await page.count("[data-made]") == 0
