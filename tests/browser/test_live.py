"""A request is shown from its beginning to its end, also where it breaks off."""

import asyncio
import re
import threading

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, hello, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import TRUNCATED, sent, settings
from tests.browser.viewer import PATIENCE, Look
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
            re.search(r"Came A response with the status 200, \d+ bytes", said) and "Expected The event Finish" in said
        )
        # Nobody reads it as a success: not in the list, and not in the head.
        row = page.row(request_id)
        await row.get_by_text("200 failed", exact=True).wait_for()
        await page.request(request_id).locator("header").get_by_text("200 failed", exact=True).wait_for()
        # Beside the request the list is narrow, and what became of it is still read whole.
        outcome = row.get_by_text("answer broke off", exact=True)
        assert await outcome.evaluate("one => one.getBoundingClientRect().right") <= await row.evaluate(
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


async def test_a_silent_backend_is_waited_for_and_nothing_settles(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        for fault, waits in (("stall_headers", "wait"), ("stall after=2", "waiting for more")):
            messages: list[Json] = [{"role": "user", "content": f"Hello [[demo:{fault}]]"}]
            body = {**hello("demo-chat"), "messages": messages, "stream": True}
            asked = asyncio.create_task(gateway.client.post("/v1/chat/completions", json=body))
            await viewer.page.locator("[data-id]", has_text="live").first.click()
            times = viewer.page.get_by_role("region", name="Times")
            part = times.locator("dl div", has_text=re.compile(rf"^\s*{waits}\s*[1-9]\.\d+ s"))
            await part.wait_for()
            # The head tells the time as the row does: it goes on.
            await viewer.page.locator(".facts div", has_text=re.compile(r"Took\s*[2-9]\.\d+ s")).wait_for()
            asked.cancel()
            await viewer.page.locator(".facts .failed", has_text="499").wait_for()
            await part.wait_for()
            assert "settle" not in await times.inner_text()
            await viewer.page.get_by_role("button", name="Close the request").click()


async def test_an_error_that_came_whole_is_settled(gateway: RunningGateway, opened: Open) -> None:
    messages: list[Json] = [{"role": "user", "content": "Hello [[demo:status code=503]]"}]
    request_id = await sent(gateway, model="demo-chat", messages=messages)
    async with opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open(request_id)
        times = viewer.page.get_by_role("region", name="Times")
        await times.locator("dt", has_text="wait").wait_for()
        assert "waiting for more" not in await times.inner_text() and await times.locator(".missing").count() == 0


async def test_a_long_answer_that_breaks_off_is_never_called_complete(gateway: RunningGateway, opened: Open) -> None:
    messages: list[Json] = [{"role": "user", "content": "[[scenario:client_cancel]]"}]
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        body = {**hello("demo-agent"), "messages": messages, "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            await page.row(request_id).click()
            panel = await page.show("Answer")
            # More reads than are loaded at once, while the rest is still to come.
            more = panel.get_by_role("button", name="Load more")
            await more.click()
            await panel.locator(".read-number", has_text="#200").wait_for()
            # What has come since is offered, too.
            await more.wait_for()
        await panel.get_by_text("It ends here: client_gone.").wait_for()
        await more.wait_for()
        assert await panel.get_by_text("The answer is complete.").count() == 0


async def test_an_answer_that_no_backend_gave_is_called_the_gateways_own(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="no-such-model")
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        panel = await page.show("Answer")
        await panel.get_by_text("nothing came").wait_for()
        await panel.get_by_text("The answer is the gateway's own: model_not_found.").wait_for()


# A busy machine reads what was written at once in several parts, of which the first is larger than the smaller limit.
@pytest.mark.parametrize(
    ("framing", "request_mb", "shown"),
    [("", 0.004, "of the backend were not kept"), (" chunk=1000 delay_ms=1", 0.05, "#0")],
    ids=["at once", "in parts"],
)
async def test_what_is_here_of_a_request_is_shown_beside_what_is_not(
    framing: str, request_mb: float, shown: str, opened: Open
) -> None:
    async with running_gateway(settings(request_mb=request_mb)) as gateway, opened(gateway.base_url) as viewer:
        large: list[Json] = [{"role": "user", "content": f"Hello [[scenario:long_unicode{framing}]]"}]
        request_id = await sent(gateway, model="demo-agent", messages=large)
        page = InspectorPage(viewer)
        await page.open(request_id)
        await viewer.page.get_by_text("bytes of the answer are over inspector.request_mb").wait_for()
        assert len(await page.messages()) == 1
        assert await viewer.page.get_by_role("region", name="Defect of the gateway").count() == 0
        panel = await page.show("Answer")
        await panel.get_by_text(shown).first.wait_for()
        assert await panel.get_by_text("sent nothing").or_(panel.get_by_text("nothing came")).count() == 0


async def test_what_redaction_changes_is_said_until_the_words_are_shown(opened: Open) -> None:
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat?defect=refuses_two_system"}
    own: dict[str, Json] = {**settings(), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
    two: list[Json] = [{"role": "system", "content": text} for text in ("Short.", "Terse.")]
    async with running_gateway(own) as gateway, opened(gateway.base_url) as viewer:
        request_id = await sent(gateway, model="m", messages=[*two, {"role": "user", "content": "Hello"}])
        page = InspectorPage(viewer)
        await page.open(request_id)
        said = viewer.page.get_by_role("region", name="Changed by redaction")
        await said.get_by_text("was HISTORY_REFUSED None failed, now none").wait_for()
        await page.reveal()
        await said.wait_for(state="detached")


@pytest.mark.parametrize(("width", "shown"), [(1024, "list and request"), (600, "list alone")])
async def test_a_narrow_row_is_read_whole(width: int, shown: str, gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-messages", messages=TRUNCATED, stream=True)
    async with opened(gateway.base_url, Look(width=width, height=768)) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id if shown == "list and request" else "")
        row = page.row(request_id)
        await row.wait_for()
        # Of the changes, which may be many, the outcome comes first; words and names may be long.
        cut: list[str] = await row.evaluate(
            """row => {
              const right = one => one.getBoundingClientRect().right;
              const mayBeCut = ".changes, .asks, .client, .model";
              const isCut = one => !one.matches(mayBeCut) && one.scrollWidth > one.clientWidth;
              const read = [...row.querySelectorAll("[role=gridcell], .failed")];
              return [...[...row.children].filter(isCut), ...read.filter(one => right(one) > right(row))]
                .map(one => one.textContent);
            }"""
        )
        assert cut == []


async def test_a_filter_that_nothing_passes_is_taken_away(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-chat")
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        box = viewer.page.get_by_role("searchbox", name="Filter")
        await box.fill("model:no-such-thing")
        await viewer.page.get_by_role("button", name="Clear the filter").click()
        await page.row(request_id).wait_for()
        assert await box.evaluate("one => one === document.activeElement && one.value === ''")


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


async def test_a_long_pause_keeps_no_more_than_the_gateway(opened: Open) -> None:
    async with running_gateway(settings(keep=5)) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("button", name="Pause").click()
        ids = [await sent(gateway, model="demo-chat") for _ in range(12)]
        await viewer.page.get_by_text("5 waiting").wait_for()
        # The stream was away meanwhile: the list stands still all the same.
        await viewer.page.evaluate(_HIDE_AND_SHOW)
        await viewer.page.locator(".stream.paused").wait_for()
        await page.settled()
        assert await page.grid.locator("[data-id]").count() == 0
        await viewer.page.get_by_role("button", name="Pause").click()
        await page.row(ids[-1]).wait_for()
        await viewer.page.get_by_text("5 of 5").wait_for()
        assert await page.grid.locator("[data-id]").count() == 5


# The tab goes into the background, and comes back.
_HIDE_AND_SHOW = """async () => {
  for (const hidden of [true, false]) {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
    await new Promise(done => setTimeout(done, 300));
  }
}"""


async def test_a_gateway_that_is_busy_is_asked_again(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-chat")
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await page.row(request_id).wait_for()
        rest = threading.Event()
        waiting = [asyncio.create_task(inspector.thread.run(rest.wait, PATIENCE / 1000)) for _ in range(8)]
        try:
            async with viewer.page.expect_response(lambda answer: answer.status == 503):
                await page.row(request_id).click()
        finally:
            rest.set()
            await asyncio.gather(*waiting)
        await page.request(request_id).get_by_role("tablist").wait_for()
        assert viewer.excuse("503")


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


async def test_what_is_known_stays_where_the_gateway_is_gone_but_not_the_words_that_somebody_hides(
    gateway: RunningGateway, opened: Open
) -> None:
    async with faulty_proxy(gateway.port) as proxy, opened(f"http://127.0.0.1:{proxy.port}") as viewer:
        page = InspectorPage(viewer)
        await page.open()
        body = {**hello("demo-chat"), "messages": SLOW, "stream": True}
        async with gateway.client.stream("POST", "/v1/chat/completions", json=body) as answer:
            request_id = answer.headers["x-request-id"]
            await page.row(request_id).click()
            await page.reveal()
            words = page.request(request_id).get_by_text("Hello [[demo:slow ms=600]]")
            await words.first.wait_for()
            await proxy.set("refuse")
            await viewer.page.get_by_text("connection lost, trying again").wait_for()
            # It goes on, and is loaded again each second.
            await viewer.page.wait_for_timeout(2500)
            assert await words.count() > 0
            await viewer.page.get_by_role("button", name="Reveal").click()
            await words.first.wait_for(state="detached")
        assert viewer.excuse("ERR_")


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


async def test_the_tries_that_failed_stand_before_the_answer_of_another_model(opened: Open) -> None:
    own = settings()
    backends: dict[str, Json] = {
        "closed": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:1/v1"},
        "chat": {"adapter": "openai_chat", "base_url": "demo:chat"},
    }
    models: dict[str, Json] = {
        "large": {"backend": "closed", "candidates": ["small"]},
        "small": {"backend": "chat"},
    }
    async with (
        running_gateway({**own, "backends": backends, "models": models}) as gateway,
        opened(gateway.base_url) as viewer,
    ):
        request_id = await sent(gateway, model="large", messages=[{"role": "user", "content": "Hello"}])
        page = InspectorPage(viewer)
        await page.open(request_id)
        tries = page.request(request_id).get_by_role("list", name="Failed tries").get_by_role("listitem")
        (said,) = await tries.all_inner_texts()
        assert re.fullmatch(r"large at closed failed after .+: upstream_connection_error", said.strip()), said
