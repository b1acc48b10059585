"""Everything of the page is done by keyboard alone, and the focus is always somewhere."""

from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.inspector.filter import FIELDS
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import history, sent, settings

pytestmark = BROWSER

# So many messages the page loads at once (messages.js).
FIRST_MESSAGES: Final = 500
# A key that is kept pressed comes so often, and rests after so long that the page opens the row (inspector.js).
REPEAT_MS: Final = 30
RESTED_MS: Final = 300


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ids(gateway: RunningGateway) -> AsyncIterator[list[str]]:
    """The ids of three requests, oldest first: the second goes on with the conversation of the first."""
    first = history("demo-chat")
    longer: list[Json] = [*first, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "And now?"}]
    yield [
        await sent(gateway, model="demo-chat", messages=first),
        await sent(gateway, model="demo-chat", messages=longer, stream=True),
        await sent(gateway, model="demo-text", messages=first),
    ]


# Collects what lost the focus to nothing: the next task, which may be that of a key, finds no element that has it.
WATCH_FOCUS: Final = """() => {
  window.losers = [];
  const look = event => document.activeElement === document.body && losers.push(event.target.outerHTML.slice(0, 120));
  document.addEventListener("focusout", event => setTimeout(look, 0, event));
}"""


class Keyboard:
    """Keys, and what has the focus."""

    def __init__(self, page: InspectorPage) -> None:
        self.page = page

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.page.page.keyboard.press(key)
            assert await self.focus("one => one !== document.body"), f"{key} loses the focus"

    async def watch_focus(self) -> None:
        await self.page.page.evaluate(WATCH_FOCUS)

    async def losers(self) -> list[str]:
        """Returns the elements that lost the focus to nothing, also for a moment, since it is watched."""
        await self.page.settled()
        losers: list[str] = await self.page.page.evaluate("() => window.losers")
        return losers

    async def hold(self, key: str, times: int) -> None:
        """Keeps a key pressed for so many steps of the page's clock, which is held: no machine is too slow for it."""
        for _ in range(times):
            await self.page.page.keyboard.down(key)
            await self.page.page.clock.run_for(REPEAT_MS)
        await self.page.page.keyboard.up(key)

    async def focus(self, question: str) -> bool:
        """Returns the answer of the element that has the focus."""
        answer: bool = await self.page.page.evaluate(f"() => ({question})(document.activeElement)")
        return answer

    async def tab_to(self, name: str) -> None:
        """Presses Tab until the control of this name has the focus."""
        for _ in range(60):
            if await self.focus(f"one => (one.ariaLabel ?? one.textContent).trim() === {name!r}"):
                return
            await self.page.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {name}")


async def test_a_whole_journey_by_keyboard(gateway: RunningGateway, ids: list[str], opened: Open) -> None:
    first, second, third = ids
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open()
        await page.row(first).wait_for()
        await keyboard.watch_focus()
        # The list: down, up, and open.
        await keyboard.press("j")
        assert await keyboard.focus(f"one => one.dataset.id === {third!r}")
        await keyboard.press("j", "j", "k")
        assert await keyboard.focus(f"one => one.dataset.id === {second!r}")
        await keyboard.press("Enter")
        await page.request(second).get_by_role("tablist").wait_for()
        # Notices, one after the other.
        await page.request(second).get_by_role("list", name="Notices").first.wait_for()
        await keyboard.press("n")
        assert await keyboard.focus("one => one.textContent.includes('CALLS_UNANSWERED')")
        await keyboard.press("n")
        assert await keyboard.focus("one => one.textContent.includes('TOOL_ID_UNKNOWN')")
        await keyboard.press("N")
        assert await keyboard.focus("one => one.textContent.includes('CALLS_UNANSWERED')")
        # Why: what the documentation says of the rule.
        await viewer.page.keyboard.press("Tab")
        await keyboard.press("Enter")
        await page.request(second).get_by_text("A call without a result gets a fixed text").wait_for()
        # Views: next, previous, and the two that have a key.
        for key, view in (("]", "Sent"), ("]", "Answer"), ("[", "Sent"), ("d", "Since previous"), ("w", "What if")):
            await keyboard.press(key)
            await viewer.page.get_by_role("tab", name=view, exact=True, selected=True).wait_for()
        # What if: a form is filled in and sent.
        await keyboard.tab_to("Show")
        await keyboard.press("Enter")
        await viewer.page.get_by_role("group", name="Messages by stage").wait_for()
        # Reveal, and hide again.
        await keyboard.press("r")
        await viewer.page.locator(".revealed").wait_for()
        await keyboard.press("r")
        await viewer.page.locator(".revealed").wait_for(state="detached")
        # Copy.
        await keyboard.press("c")
        await viewer.page.get_by_role("dialog", name="Copy the request").wait_for()
        await keyboard.tab_to("curl")
        await keyboard.press("Enter")
        await viewer.page.get_by_text("curl is on the clipboard.").first.wait_for()
        assert "curl" in await viewer.page.evaluate("() => navigator.clipboard.readText()")
        await keyboard.press("Escape")
        await viewer.page.get_by_role("dialog").wait_for(state="detached")
        # Back to the row, the help, and the filter.
        await keyboard.press("Escape")
        await page.request(second).wait_for(state="detached")
        assert await keyboard.focus(f"one => one.dataset.id === {second!r}")
        await keyboard.press("?")
        help_ = viewer.page.get_by_role("dialog", name="Keys and filter")
        await help_.wait_for()
        # Every field of the filter is there.
        terms = await help_.locator(".terms").inner_text()
        assert [field for field in FIELDS if f"{field}:" not in terms] == []
        await keyboard.press("Escape")
        assert await keyboard.focus(f"one => one.dataset.id === {second!r}")
        await viewer.page.locator("dialog").wait_for(state="detached")
        await keyboard.press("/")
        await viewer.page.keyboard.type("stream:yes")
        await page.row(first).wait_for(state="detached")
        assert await page.row(second).count() == 1
        assert await keyboard.losers() == []


# Ends a dialog as a browser does that does not ask the page.
CLOSE: Final = '() => document.querySelector("dialog").close()'


@pytest.mark.parametrize("end", ["Escape", "Enter", CLOSE])
async def test_a_dialog_gives_the_focus_back_before_another_key_can_come(
    gateway: RunningGateway, ids: list[str], opened: Open, end: str
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open()
        await page.row(ids[0]).wait_for()
        await keyboard.press("j", "j", "?")
        dialog = viewer.page.get_by_role("dialog", name="Keys and filter")
        await dialog.wait_for()
        await keyboard.watch_focus()
        if end == CLOSE:
            await viewer.page.evaluate(CLOSE)
        else:
            await keyboard.press(end)
        await dialog.wait_for(state="detached")
        assert await keyboard.losers() == []
        assert await keyboard.focus(f"one => one.dataset.id === {ids[1]!r}")


async def test_a_request_opened_from_another_one_has_the_focus_at_once(
    gateway: RunningGateway, ids: list[str], opened: Open
) -> None:
    first, second, _ = ids
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open(second)
        await keyboard.press("d")
        await viewer.page.get_by_role("button", name=first).focus()
        await keyboard.watch_focus()
        await viewer.page.keyboard.press("Enter")
        await page.request(first).get_by_role("tablist").wait_for()
        assert await keyboard.losers() == []
        assert await keyboard.focus(f"one => one.textContent === {first!r}")


async def test_what_goes_with_the_words_leaves_the_focus_in_the_request(
    gateway: RunningGateway, ids: list[str], opened: Open
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open(ids[0])
        await page.request(ids[0]).get_by_role("list", name="Notices").first.wait_for()
        await keyboard.watch_focus()
        await keyboard.press("n", "r")
        await viewer.page.locator(".revealed").wait_for()
        assert await keyboard.losers() == []
        assert await keyboard.focus("one => one.closest('.request') !== null")


async def test_a_request_that_the_browser_goes_back_from_leaves_the_focus_in_the_list(
    gateway: RunningGateway, ids: list[str], opened: Open
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open()
        await page.row(ids[0]).wait_for()
        await keyboard.press("j", "j", "Enter")
        await page.request(ids[1]).get_by_role("tablist").wait_for()
        await keyboard.watch_focus()
        await viewer.page.go_back()
        await page.request(ids[1]).wait_for(state="detached")
        assert await keyboard.losers() == []
        assert await keyboard.focus(f"one => one.dataset.id === {ids[1]!r}")


async def test_forgetting_leaves_the_focus_in_the_list(opened: Open) -> None:
    async with running_gateway(settings()) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        request_id = await sent(gateway, model="demo-chat")
        await page.open()
        await page.row(request_id).wait_for()
        await viewer.page.get_by_role("button", name="Forget").focus()
        await viewer.page.keyboard.press("Enter")
        await viewer.page.get_by_role("button", name="Forget them").focus()
        await keyboard.watch_focus()
        await viewer.page.keyboard.press("Enter")
        await viewer.page.get_by_text("No requests yet.").wait_for()
        assert await keyboard.losers() == []
        assert await keyboard.focus("one => one.closest('.list') !== null")


async def test_a_row_that_is_gone_leaves_the_focus_in_the_list(opened: Open) -> None:
    async with running_gateway(settings(keep=2)) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        first = await sent(gateway, model="demo-chat")
        await page.open()
        for key in ("", "?"):
            await page.row(first).wait_for()
            await keyboard.watch_focus()
            await keyboard.press("j", *key)
            await page.settled()
            for _ in range(2):
                last = await sent(gateway, model="demo-chat")
            await page.row(first).wait_for(state="detached")
            if key:
                await keyboard.press("Escape")
                await viewer.page.locator("dialog").wait_for(state="detached")
            assert await keyboard.losers() == []
            assert await keyboard.focus("one => one.closest('.list') !== null")
            first = last


# Presses two keys, and lets nothing happen between but what the page does at once.
PRESS_BOTH: Final = """async ([first, second]) => {
  for (const key of [first, second]) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await null;
  }
}"""


async def test_a_request_is_opened_before_the_next_key(gateway: RunningGateway, ids: list[str], opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open()
        await page.row(ids[2]).wait_for()
        await keyboard.press("j")
        await viewer.page.evaluate(PRESS_BOTH, ["Enter", "j"])
        await page.request(ids[1]).get_by_role("tablist").wait_for()
        assert await keyboard.focus(f"one => one.dataset.id === {ids[1]!r}")


async def test_the_keys_of_a_request_are_there_exactly_as_long_as_it(
    gateway: RunningGateway, ids: list[str], opened: Open
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(ids[0])
        await viewer.page.evaluate(PRESS_BOTH, ["Escape", "w"])
        await page.settled()
        assert await viewer.page.get_by_role("status").all_inner_texts() == [""]


# Closes the dialog with its button and presses the key before the browser has told anybody that a dialog was closed.
CLOSE_AND_PRESS: Final = """async key => {
  document.querySelector("dialog header button").click();
  await null;
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
}"""


async def test_the_key_behind_the_end_of_a_dialog_opens_the_next_one(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.keyboard.press("?")
        dialog = viewer.page.get_by_role("dialog", name="Keys and filter")
        await dialog.wait_for()
        await viewer.page.evaluate(CLOSE_AND_PRESS, ",")
        await viewer.page.get_by_role("dialog", name="Settings in use").wait_for()
        assert await dialog.count() == 0


async def test_buttons_that_are_gone_when_they_are_pressed_leave_the_focus_nearby(
    gateway: RunningGateway, opened: Open
) -> None:
    messages: list[Json] = [
        {"role": ("user", "assistant")[at % 2], "content": f"Message {at}. "} for at in range(FIRST_MESSAGES)
    ]
    messages += [{"role": "user", "content": "Long words of many. " * 200}]
    request_id = await sent(gateway, model="demo-chat", messages=messages)
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await page.open(request_id)
        await keyboard.watch_focus()
        for name in ("Load more", f"{FIRST_MESSAGES} messages unchanged", "Show all"):
            button = page.request(request_id).get_by_role("button", name=name)
            await button.focus()
            await viewer.page.keyboard.press("Enter")
            await button.wait_for(state="detached")
            await page.settled()
            assert await keyboard.losers() == []
            assert await keyboard.focus("one => one.closest('.request') !== null"), name


async def test_tab_reaches_every_control_of_an_opened_request(
    gateway: RunningGateway, ids: list[str], opened: Open
) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(ids[0])
        named = ["Filter", "Pause", "? Keys and filter", "Copy", "Reveal", "Close the request", "Messages", "Forget"]
        reached: set[str] = set()
        for _ in range(60):
            await viewer.page.keyboard.press("Tab")
            reached.add(
                await viewer.page.evaluate(
                    "() => (document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()"
                )
            )
        assert [name for name in named if name not in reached] == []


async def test_the_focus_is_seen(gateway: RunningGateway, ids: list[str], opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(ids[0])
        unseen: set[str] = set()
        for _ in range(40):
            await viewer.page.keyboard.press("Tab")
            unseen.add(
                await viewer.page.evaluate(
                    """() => {
                  const one = document.activeElement, style = getComputedStyle(one);
                  const seen = one === document.body || (style.outlineStyle !== "none" && style.outlineWidth !== "0px")
                    || style.boxShadow !== "none";
                  return seen ? "" : one.outerHTML.slice(0, 120);
                }"""
                )
            )
        assert unseen == {""}


async def test_rows_that_the_keys_only_pass_are_not_loaded(gateway: RunningGateway, opened: Open) -> None:
    passed = [await sent(gateway, model="demo-chat") for _ in range(12)]
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        keyboard = Keyboard(page)
        await viewer.page.clock.install()
        await page.open(passed[-1])
        await page.row(passed[-1]).wait_for()
        await page.settled()
        await viewer.page.clock.pause_at(await viewer.page.evaluate("() => new Date(Date.now() + 60_000)"))
        before = len(viewer.fetches())
        await keyboard.hold("j", 11)
        assert await keyboard.focus(f"one => one.dataset.id === {passed[0]!r}")
        await viewer.page.clock.run_for(RESTED_MS)
        await page.request(passed[0]).get_by_role("tablist").wait_for()
        loaded = {path.partition("?")[0].split("/")[1] for path in viewer.fetches()[before:]}
        assert loaded == {passed[-2], passed[0]}
        # Closed before the keys rest, it stays closed.
        await keyboard.hold("k", 3)
        await keyboard.press("Escape")
        await viewer.page.clock.run_for(RESTED_MS)
        assert await page.count(".request") == 0
