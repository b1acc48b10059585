"""The inspector's page as its users see it: rows, the opened request, its views, by their roles and names."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tests.browser.viewer import Viewer

if TYPE_CHECKING:
    from playwright.async_api import Locator

STAGES: Final = ("client", "repaired", "trimmed", "sent")
# The forms of a copy: the button, and how the page calls what it copied.
COPIES: Final = {
    **{form: form for form in ("curl", "Python", "pytest", "Recording", "HAR")},
    "Link": "The link",
}
# The table of messages -> one list of cells for each row; null for a stage where the message is not.
_READ_MESSAGES: Final = """() => [...document.querySelectorAll("table.stages tbody tr")]
  .filter(row => !row.matches(".fold, .notice-row"))
  .map(row => [...row.querySelectorAll("td")].map(cell => {
    const mark = cell.querySelector(".mark");
    if (mark === null) return null;
    const text = selector => [...cell.querySelectorAll(selector)].map(one => one.textContent);
    return {
      mark: mark.textContent,
      role: text(".who > .role")[0] ?? null,
      texts: text(":scope .cell > .text"),
      calls: [...cell.querySelectorAll(".call")].map(call => [
        call.querySelector(".name").textContent, call.querySelector(".id").textContent,
        call.querySelector(".text").textContent]),
    };
  }))"""


class ShownCell(msgspec.Struct, frozen=True):
    """A message at one stage. An equal one shows its mark alone."""

    mark: str
    role: str | None
    texts: list[str]
    calls: list[tuple[str, str, str]]


class InspectorPage:
    """The page in a viewer's tab."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.page = viewer.page

    async def open(self, request_id: str = "") -> None:
        """Opens the page, with a request beside the list if one is named."""
        await self.page.goto(f"{self.viewer.address}/inspect" + (f"#request={request_id}" if request_id else ""))
        await self.page.locator(".stream.live").wait_for(state="attached")
        if request_id:
            await self.request(request_id).get_by_role("tablist").wait_for()

    @property
    def grid(self) -> "Locator":
        return self.page.get_by_role("grid", name="Requests")

    def row(self, request_id: str) -> "Locator":
        return self.grid.locator(f'[role=row][data-id="{request_id}"]')

    def request(self, request_id: str) -> "Locator":
        return self.page.get_by_role("region", name=f"Request {request_id}")

    async def show(self, view: str) -> "Locator":
        """Shows a view of the opened request, and returns its panel once it has loaded."""
        await self.page.get_by_role("tab", name=view, exact=True).click()
        return await self.panel()

    async def panel(self) -> "Locator":
        """Returns the panel of the shown view once it has loaded."""
        panel = self.page.get_by_role("tabpanel")
        await panel.wait_for()
        await panel.get_by_text("Loading ...").first.wait_for(state="detached")
        return panel

    async def reveal(self) -> None:
        """Shows the words: of the messages and the answer, which are asked for again."""
        async with (
            self.page.expect_response(lambda answer: "/messages?reveal=1" in answer.url) as messages,
            self.page.expect_response(lambda answer: "/answer?reveal=1" in answer.url) as answer,
        ):
            await self.page.get_by_role("button", name="Reveal").click()
        for response in (await messages.value, await answer.value):
            await response.finished()
        await self.page.locator(".revealed").wait_for()
        await self.settled()

    async def settled(self) -> None:
        """Waits until the page has drawn what it has got."""
        frame = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"
        await self.page.evaluate(f"async () => {{ await {frame}; await {frame}; await {frame}; }}")

    async def open_all(self) -> None:
        """Chooses every read, and presses every button that shows the rest of something."""
        for read in [None, *await self.page.locator(".read-number").all()]:
            if read is not None:
                await read.click()
            more = self.page.get_by_role("tabpanel").locator("button.more:visible, tr.fold button:visible")
            while await more.count():
                await more.first.click()
                await self.settled()

    async def copies(self) -> AsyncIterator[str]:
        """Copies the opened request in one form after the other, and yields what is on the clipboard each time."""
        await self.page.get_by_role("button", name="Copy", exact=True).click()
        dialog = self.page.get_by_role("dialog", name="Copy the request")
        await dialog.wait_for()
        assert await dialog.locator(".forms button").all_inner_texts() == [*COPIES]
        for button, copy in COPIES.items():
            await dialog.get_by_role("button", name=button, exact=True).click()
            await dialog.get_by_text(f"{copy} is on the clipboard.").wait_for()
            copied: str = await self.page.evaluate("() => navigator.clipboard.readText()")
            yield copied

    async def messages(self) -> list[list[ShownCell | None]]:
        """Returns the rows of the messages, with a cell for each stage."""
        await (await self.panel()).locator("table.stages").wait_for()
        return msgspec.convert(await self.page.evaluate(_READ_MESSAGES), list[list[ShownCell | None]])

    async def count(self, selector: str) -> int:
        found: int = await self.page.locator(selector).count()
        return found

    async def whole_text(self) -> str:
        """Returns all text of the document, also what is not in view, with the values of its fields."""
        text: Any = await self.page.evaluate(
            "() => document.documentElement.outerHTML + document.documentElement.textContent"
            " + [...document.querySelectorAll('input, select')].map(one => one.value).join(' ')"
        )
        return str(text)
