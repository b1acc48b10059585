"""One tab of a browser, and what went on in it that nobody should see: dialogs, errors, requests to other hosts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Dialog, Page, Request

# A busy machine may take this long to show something, in ms.
PATIENCE: Final = 20_000
# The schemes of what a page has in itself.
_OWN: Final = ("data", "blob", "about")


class Look(msgspec.Struct, frozen=True):
    """How the viewer wants pages to look."""

    color_scheme: Literal["light", "dark"] = "light"
    forced_colors: Literal["none", "active"] = "none"
    reduced_motion: Literal["no-preference", "reduce"] = "no-preference"
    width: int = 1440
    height: int = 900


PLAIN: Final = Look()


class Viewer:
    """`page` is playwright's; `address` that of the gateway. What it collects is asserted to be empty at the end."""

    def __init__(self, page: "Page", address: str) -> None:
        self.page = page
        self.address = address
        self.dialogs: list[str] = []
        self.errors: list[str] = []
        self.asked: list[str] = []
        page.on("dialog", self._on_dialog)
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._on_request)

    async def _on_dialog(self, dialog: "Dialog") -> None:
        self.dialogs.append(f"{dialog.type}: {dialog.message}")
        await dialog.dismiss()

    def _on_console(self, message: "ConsoleMessage") -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _on_request(self, request: "Request") -> None:
        self.asked.append(f"{request.method} {request.url}")

    def foreign(self) -> list[str]:
        """Returns the requests to other hosts than the gateway."""
        own = urlsplit(self.address).netloc
        urls = [urlsplit(asked.partition(" ")[2]) for asked in self.asked]
        return [url.geturl() for url in urls if url.scheme not in _OWN and url.netloc != own]

    def fetches(self) -> list[str]:
        """Returns the paths of the inspector's routes that were asked, with their queries."""
        marker = "/inspect/api/"
        return [asked.partition(marker)[2] for asked in self.asked if marker in asked]

    def excuse(self, *words: str) -> list[str]:
        """Takes the errors with one of these words off the list, because a test has caused them; returns them."""
        excused = [error for error in self.errors if any(word in error for word in words)]
        self.errors = [error for error in self.errors if error not in excused]
        return excused


@asynccontextmanager
async def viewing(browser: "Browser", address: str, look: Look = PLAIN) -> AsyncIterator[Viewer]:
    """Opens a tab with an empty profile. At the end it has shown no dialog, logged no error and asked no other host."""
    context = await browser.new_context(
        viewport={"width": look.width, "height": look.height},
        color_scheme=look.color_scheme,
        forced_colors=look.forced_colors,
        reduced_motion=look.reduced_motion,
        permissions=["clipboard-read", "clipboard-write"],
        service_workers="block",
    )
    context.set_default_timeout(PATIENCE)
    try:
        viewer = Viewer(await context.new_page(), address)
        yield viewer
        assert viewer.dialogs == [], viewer.dialogs
        assert viewer.errors == [], viewer.errors
        assert viewer.foreign() == [], viewer.foreign()
    finally:
        await context.close()
