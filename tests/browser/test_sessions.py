"""Requests are grouped by session, with a timeline and a tree of requests, calls and agents, whatever their ids are."""

from typing import TYPE_CHECKING, Final

from gateway.core.conversation import Json
from gateway.core.session import LONGEST_ID
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings

if TYPE_CHECKING:
    from playwright.async_api import Locator

pytestmark = BROWSER

SESSION: Final = "x-claude-code-session-id"
AGENT: Final = "x-claude-code-agent-id"
PARENT: Final = "x-claude-code-parent-agent-id"
# Visible ASCII, and as long as one may be; a filter reads some of it as patterns.
HOSTILE: Final = "<img/src=x[1]/onerror=alert(1)>*?".ljust(LONGEST_ID, "&")
TASK: Final = "Find the slow page"


def loop(*names: str) -> list[Json]:
    """The messages of an agent after these calls."""
    messages: list[Json] = [{"role": "user", "content": TASK}]
    for at, name in enumerate(names):
        call: Json = {"id": f"call_{at}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{at}", "content": "done"},
        ]
    return messages


async def ask(gateway: RunningGateway, messages: list[Json], **headers: str) -> str:
    body = {"model": "demo-chat", "messages": messages}
    names = {"session": SESSION, "agent": AGENT, "parent": PARENT}
    sent = {names[name]: value for name, value in headers.items()}
    return (await gateway.client.post("/v1/chat/completions", json=body, headers=sent)).headers["x-request-id"]


async def shown(page: InspectorPage, first: str) -> "Locator":
    """Shows the sessions, and opens the one with these words."""
    sessions = page.page.get_by_role("region", name="Sessions")
    await sessions.locator("summary", has_text=first).click()
    await sessions.get_by_role("img", name="Timeline").wait_for()
    return sessions.locator("details[open]")


async def test_sessions_are_shown_as_trees_and_filter_the_list(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        for headers in ({SESSION: "s-1"}, {SESSION: "s-1", AGENT: "a-1"}, {SESSION: HOSTILE}):
            await gateway.client.post("/v1/chat/completions", json=hello("demo-chat"), headers=headers)
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await viewer.page.get_by_role("button", name="Sessions").click()
            sessions = viewer.page.get_by_role("region", name="Sessions")
            await sessions.locator("summary").nth(1).wait_for()
            assert "2 requests" in await sessions.locator("summary").nth(1).inner_text()
            await sessions.locator("summary").nth(0).click()
            hostile = sessions.locator("details[open]")
            await hostile.get_by_role("img", name="Timeline").wait_for()
            assert HOSTILE in await hostile.inner_text() and await sessions.locator("img").count() == 0
            await hostile.get_by_role("button", name="Show its requests in the list").click()
            await viewer.page.get_by_text("1 of 3", exact=True).wait_for()
            await viewer.page.get_by_role("searchbox", name="Filter").fill("")
            await viewer.page.get_by_text("3 of 3", exact=True).wait_for()
            await viewer.page.get_by_role("button", name="Sessions").click()
            await sessions.locator("summary").nth(1).click()
            await sessions.get_by_role("button", name="a-1").click()
            await viewer.page.get_by_text("1 of 3", exact=True).wait_for()
            await page.grid.locator(".rows [role='row']").first.click()
            facts = viewer.page.locator(".request .facts")
            await facts.get_by_role("button", name="s-1").click()
            await viewer.page.get_by_text("2 of 3", exact=True).wait_for()


async def test_a_session_shows_its_requests_calls_and_agents_in_their_order(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        ids = [await ask(gateway, loop(*names), session="s-1") for names in ((), ("grep",), ("grep", "task"))]
        below = [{"role": "user", "content": "Read the profile"}]
        await ask(gateway, below, session="s-1", agent="a-1")  # type: ignore[arg-type]
        broken: list[Json] = [{"role": "user", "content": "Hello [[demo:truncated after=1]]"}]
        await ask(gateway, broken, session="s-1", agent="a-2", parent="a-1")
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await viewer.page.keyboard.press("r")
            await viewer.page.keyboard.press("g")
            session = await shown(page, TASK)
            text = [line for line in (await session.locator(".agents").first.inner_text()).split("\n") if line.strip()]
            order = (
                TASK,
                "grep",
                "with the results",
                "task",
                "with the results",
                "a-1",
                "Read the profile",
                "a-2",
                "Hello",
            )
            at = -1
            for expected in order:
                at = next(place for place, line in enumerate(text) if place > at and expected in line)
            timeline = session.get_by_role("img", name="Timeline")
            assert await timeline.locator(".lane").count() == 3
            assert "5 requests of 3 agents" in str(await timeline.get_attribute("aria-label"))
            assert await timeline.locator(".failed").count() == 1
            # By the keys alone: to the second request of the main agent.
            requests = session.locator(".session-request")
            await requests.nth(1).focus()
            await viewer.page.keyboard.press("Enter")
            await page.request(ids[1]).get_by_role("tablist").wait_for()
            assert await requests.nth(1).get_attribute("aria-current") == "true"
            await viewer.page.keyboard.press("g")
            await page.row(ids[1]).wait_for()


async def test_a_long_session_is_drawn_in_parts(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        for at in range(120):
            await ask(gateway, [{"role": "user", "content": f"Message {at}"}], session="s-1")
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await viewer.page.keyboard.press("g")
            session = await shown(page, "")
            assert await session.locator(".session-request").count() == 100
            await session.get_by_role("button", name="Show earlier ones: 20 requests").click()
            assert await session.locator(".session-request").count() == 120
