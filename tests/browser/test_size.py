"""Ten thousand requests cost no more elements than a screen of them, and an opened one three fetches."""

from collections.abc import AsyncIterator
from typing import Final

import pytest_asyncio

from gateway.core.conversation import Json
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import sent, settings

pytestmark = BROWSER

ALL: Final = 10_000
MOST_NODES: Final = 1_500
MOST_FETCHES: Final = 3
LONG: Final = 400
NODES: Final = "() => document.querySelectorAll('*').length"


def flood(gateway: RunningGateway, count: int) -> None:
    """Lets so many requests begin and end as the middleware does, without their contents."""
    inspector = gateway.app.gateway_state.inspector
    assert inspector is not None
    observers = Observers(inspector.recent)
    for number in range(count):
        context = RequestContext("POST", "/v1/chat/completions", CHAT, {}, observers, dialect="openai_chat")
        context.model = f"model-{number % 7}"
        context.backend = "demo-chat"
        context.code = "upstream_error" if number % 50 == 0 else "-"
        context.conclude(502 if number % 50 == 0 else 200)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def flooded() -> AsyncIterator[RunningGateway]:
    """A gateway whose list is full."""
    async with running_gateway(settings()) as gateway:
        flood(gateway, ALL)
        yield gateway


async def test_a_full_list_has_few_elements_wherever_it_is_scrolled_to(flooded: RunningGateway, opened: Open) -> None:
    async with opened(flooded.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await page.grid.get_by_role("row").nth(10).wait_for()
        assert await page.grid.get_attribute("aria-rowcount") == str(ALL + 1)
        await viewer.page.get_by_text("10,000 of 10,000").wait_for()
        counts = [await viewer.page.evaluate(NODES)]
        # To the end, as somebody does who keeps the key pressed: what lies further is loaded on the way.
        box = page.grid.locator(".rows")
        for _ in range(1000):
            await box.evaluate("one => { one.scrollTop = one.scrollHeight; }")
            await page.settled()
            counts.append(await viewer.page.evaluate(NODES))
            if await page.grid.get_by_role("row").last.get_attribute("aria-rowindex") == str(ALL + 1):
                break
        else:
            raise AssertionError("the oldest request is not reached")
        assert max(counts) < MOST_NODES
        # The list is asked for in parts, each once.
        asked = [path for path in viewer.fetches() if path.startswith("requests")]
        assert len(asked) == len(set(asked)) <= 25


async def test_the_request_of_an_address_is_in_view(flooded: RunningGateway, opened: Open) -> None:
    listed = (await flooded.client.get("/inspect/api/requests?limit=400")).json()["requests"]
    request_id = listed[-1]["id"]
    async with opened(flooded.base_url) as viewer:
        page = InspectorPage(viewer)
        await viewer.page.goto(f"{flooded.base_url}/inspect#request={request_id}")
        await page.row(request_id).wait_for()
        await page.settled()
        assert await page.row(request_id).evaluate(_IN_VIEW)
        # And it stays there while others come.
        flood(flooded, 20)
        await viewer.page.get_by_role("button", name="Newest").wait_for()
        await page.settled()
        assert await page.row(request_id).evaluate(_IN_VIEW)


_IN_VIEW: Final = """row => {
  const [one, box] = [row, row.closest(".rows")].map(each => each.getBoundingClientRect());
  return one.top >= box.top && one.bottom <= box.bottom + 1;
}"""


async def test_a_long_history_has_few_elements_and_three_fetches(flooded: RunningGateway, opened: Open) -> None:
    messages: list[Json] = [
        {"role": ("user", "assistant")[at % 2], "content": f"Message {at}. " * 20} for at in range(LONG + 1)
    ]
    request_id = await sent(flooded, model="demo-chat", messages=messages)
    async with opened(flooded.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await page.row(request_id).wait_for()
        before = len(viewer.fetches())
        await page.row(request_id).click()
        await page.request(request_id).get_by_text(f"{LONG + 1} messages; every stage is the same.").wait_for()
        await page.settled()
        assert len(viewer.fetches()) - before <= MOST_FETCHES
        assert await viewer.page.evaluate(NODES) < MOST_NODES
        # Messages and the answer are not asked for again; both bodies are, each time that "Sent" is shown.
        for view in ("Sent", "Messages", "Sent", "Answer", "Messages"):
            await page.show(view)
        assert len(viewer.fetches()) - before <= MOST_FETCHES + 2 * 2


async def test_a_burst_of_requests_leaves_the_list_as_it_was(flooded: RunningGateway, opened: Open) -> None:
    async with opened(flooded.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await page.grid.get_by_role("row").nth(10).wait_for()
        # Scrolled away from the newest: the rows that are read stay where they are.
        await page.grid.locator(".rows").evaluate("one => { one.scrollTop = 40 * 27; }")
        await page.settled()
        shown = await _middle(page)
        flood(flooded, 500)
        newest = (await flooded.client.get("/inspect/api/requests?limit=1")).json()["requests"][0]["id"]
        await viewer.page.get_by_role("button", name="Newest").wait_for()
        await page.settled()
        assert await _middle(page) == shown
        assert await viewer.page.evaluate(NODES) < MOST_NODES
        await viewer.page.get_by_role("button", name="Newest").click()
        await page.row(newest).wait_for()


async def _middle(page: InspectorPage) -> str:
    """Returns the id of the row in the middle of the list."""
    found: str = await page.grid.locator(".rows").evaluate(
        """box => {
          const {left, top, height} = box.getBoundingClientRect();
          return document.elementFromPoint(left + 20, top + Math.round(height / 2)).closest("[data-id]").dataset.id;
        }"""
    )
    return found


async def test_the_rows_that_are_read_stay_in_every_frame_of_a_reload(flooded: RunningGateway, opened: Open) -> None:
    """More requests than the gateway tells of one by one, while the list is scrolled further than one page of it."""
    async with opened(flooded.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await page.grid.get_by_role("row").nth(10).wait_for()
        box = page.grid.locator(".rows")
        while await box.evaluate("one => one.scrollHeight") < 1800 * 27:
            await box.evaluate("one => { one.scrollTop = one.scrollHeight; }")
            await page.settled()
        await box.evaluate("one => { one.scrollTop = 1500 * 27; }")
        await page.settled()
        shown = await _middle(page)
        await viewer.page.evaluate(_WATCH_FRAMES, shown)
        async with viewer.page.expect_response(lambda answer: "/requests?" in answer.url) as reload:
            flood(flooded, 800)
        await viewer.page.get_by_text("10,000 of 10,000").wait_for()
        newest = (await flooded.client.get("/inspect/api/requests?limit=1")).json()["requests"][0]["id"]
        await (await reload.value).finished()
        await page.settled()
        frames: list[bool] = await viewer.page.evaluate("() => window.frames_with_row")
        assert len(frames) > 5 and all(frames)
        assert await _middle(page) == shown
        await viewer.page.get_by_role("button", name="Newest").click()
        await page.row(newest).wait_for()


# In each frame: whether the row of this id stands where it stood.
_WATCH_FRAMES: Final = """id => {
  window.frames_with_row = [];
  const box = document.querySelector(".grid .rows");
  const place = () => box.querySelector(`[data-id="${id}"]`)?.getBoundingClientRect().top;
  const before = place();
  const look = () => {
    window.frames_with_row.push(Math.abs((place() ?? -1e6) - before) < 2);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
