"""Requests are grouped by session, with the agents of each as a tree, whatever their ids are."""

from gateway.core.session import LONGEST_ID
from gateway.testing.gateway import hello, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings

pytestmark = BROWSER

SESSION = "x-claude-code-session-id"
AGENT = "x-claude-code-agent-id"
# Visible ASCII, and as long as one may be.
HOSTILE = "<img/src=x/onerror=alert(1)>".ljust(LONGEST_ID, "&")


async def test_sessions_are_shown_as_trees_and_filter_the_list(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        for headers in ({SESSION: "s-1"}, {SESSION: "s-1", AGENT: "a-1"}, {SESSION: HOSTILE}):
            await gateway.client.post("/v1/chat/completions", json=hello("demo-chat"), headers=headers)
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await viewer.page.get_by_role("button", name="Sessions").click()
            sessions = viewer.page.get_by_role("region", name="Sessions")
            headings = sessions.get_by_role("heading")
            await headings.nth(1).wait_for()
            assert HOSTILE in await headings.nth(0).inner_text()
            assert await sessions.locator("img").count() == 0
            assert "Claude Code, 2 requests" in " ".join((await headings.nth(1).inner_text()).split())
            below = sessions.locator("section").nth(1).locator("ul ul li")
            assert "a-1" in await below.inner_text() and "1 request" in await below.inner_text()
            await below.get_by_role("button", name="a-1").click()
            await viewer.page.get_by_text("1 of 3", exact=True).wait_for()
            await page.grid.locator(".rows [role='row']").first.click()
            facts = viewer.page.locator(".request .facts")
            await facts.get_by_role("button", name="s-1").click()
            await viewer.page.get_by_text("2 of 3", exact=True).wait_for()
