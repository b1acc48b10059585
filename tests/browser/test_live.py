"""A request is shown from its beginning to its end, also where it breaks off."""

import re

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import TRUNCATED, sent, settings
from tests.machines.faulty_proxy import faulty_proxy

pytestmark = BROWSER

# So slow that the page is looked at while it runs, and the test ends it when it has seen enough.
SLOW: list[Json] = [{"role": "user", "content": "Hello [[demo:slow ms=600]]"}]


async def test_a_row_appears_while_a_stream_runs_and_changes_when_it_ends(
    gateway: RunningGateway, opened: Open
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        body = {**hello("demo-chat"), "messages": SLOW, "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            await page.row(request_id).get_by_text("live", exact=True).wait_for()
            await page.row(request_id).click()
            # What has come so far is shown, and nothing of it is called a fault.
            panel = await page.show("Answer")
            await panel.locator(".chunk").first.wait_for()
            assert await page.request(request_id).locator(".banner").count() == 0
            before = await panel.locator(".chunk").count()
            async for _ in answer.aiter_bytes():
                pass
        await page.row(request_id).get_by_text("200", exact=True).wait_for()
        await page.request(request_id).get_by_text("The answer is complete.").wait_for()
        await page.settled()
        assert await panel.locator(".chunk").count() > before
        assert await page.request(request_id).locator(".banner").count() == 0
        # The live list is one stream, not a question every second.
        assert [path.partition("?")[0] for path in viewer.fetches()].count("stream") == 1


async def test_a_broken_stream_says_what_came_and_what_did_not(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-chat", messages=TRUNCATED, stream=True)
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        banner = page.request(request_id).get_by_role("group", name="Error")
        said = " ".join((await banner.inner_text()).split())
        assert "upstream_stream_truncated" in said and "ended before the response was complete" in said
        assert (
            re.search(r"Came a response with the status 200, \d+ bytes", said) and "Expected the event Finish" in said
        )
        # Nobody reads it as a success: not in the list, and not in the head.
        row = page.row(request_id)
        await row.get_by_text("200 failed", exact=True).wait_for()
        await page.request(request_id).locator("header").get_by_text("200 failed", exact=True).wait_for()
        # Beside the request the list is narrow, and its code is still read whole.
        code = row.get_by_text("upstream_stream_truncated", exact=True)
        assert await code.evaluate("one => one.getBoundingClientRect().right") <= await row.evaluate(
            "one => one.getBoundingClientRect().right"
        )
        # The banner comes before everything else of the request.
        above = await banner.evaluate("one => one.getBoundingClientRect().top")
        assert above < await page.request(request_id).get_by_role("tablist").evaluate(
            "one => one.getBoundingClientRect().top"
        )
        panel = await page.show("Answer")
        assert (
            await panel.locator("tbody tr")
            .last.locator(".chunk")
            .last.evaluate("one => one.textContent.includes('upstream_stream_truncated')")
        )


async def test_failed_requests_are_shown_alone(gateway: RunningGateway, opened: Open) -> None:
    failed = await sent(gateway, model="demo-chat", messages=TRUNCATED, stream=True)
    fine = await sent(gateway, model="demo-chat", stream=True)
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("searchbox", name="Filter").fill("model:demo-chat")
        await page.row(fine).wait_for()
        await viewer.page.get_by_role("button", name="Failed only").click()
        await page.row(fine).wait_for(state="detached")
        await page.row(failed).wait_for()
        await viewer.page.get_by_role("button", name="Failed only").click()
        await page.row(fine).wait_for()


async def test_a_client_that_leaves_is_told_as_such(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        body = {**hello("demo-chat"), "messages": SLOW, "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            await page.row(request_id).get_by_text("live", exact=True).wait_for()
        await page.row(request_id).get_by_text("499").first.wait_for()


async def test_what_came_while_the_page_was_paused_is_shown_afterwards(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("button", name="Pause").click()
        ids = [await sent(gateway, model="demo-chat") for _ in range(3)]
        await viewer.page.get_by_text("3 waiting").wait_for()
        assert await page.row(ids[0]).count() == 0
        await viewer.page.get_by_role("button", name="Pause").click()
        for request_id in ids:
            await page.row(request_id).wait_for()


async def test_the_list_goes_on_when_the_connection_is_back(gateway: RunningGateway, opened: Open) -> None:
    async with faulty_proxy(gateway.port) as proxy, opened(f"http://127.0.0.1:{proxy.port}") as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await proxy.set("refuse")
        await viewer.page.get_by_text("connection lost, trying again").wait_for()
        request_id = await sent(gateway, model="demo-chat")
        await proxy.set("pass")
        await page.row(request_id).wait_for()
        assert viewer.excuse("ERR_CONNECTION", "ERR_INCOMPLETE_CHUNKED_ENCODING")


async def test_forgotten_requests_are_gone(opened: Open) -> None:
    async with running_gateway(settings()) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        request_id = await sent(gateway, model="demo-chat")
        await page.open()
        await page.row(request_id).wait_for()
        await viewer.page.get_by_role("button", name="Forget").click()
        await viewer.page.get_by_role("button", name="Forget them").click()
        await viewer.page.get_by_text("No requests yet.").wait_for()
        assert (await gateway.client.get("/inspect/api/requests")).json()["total"] == 0


async def test_missing_contents_say_why(opened: Open) -> None:
    async with running_gateway(settings(contents="never")) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        request_id = await sent(gateway, model="demo-chat")
        await page.open()
        await page.row(request_id).click()
        await page.request(request_id).get_by_text("set inspector.contents to always").wait_for()
