"""Takes the pictures of the page that the documentation shows, and some that people judge. All go to build/pictures;
`--rewrite-golden` replaces those that are kept in docs/pictures."""

import re
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.situations import SITUATIONS
from tests.browser.small_png import small_png
from tests.browser.traffic import TRUNCATED, history, sent, settings
from tests.browser.viewer import Look
from tests.paths import ROOT

pytestmark = BROWSER

FOLDER: Final = ROOT / "build" / "pictures"
KEPT: Final = ROOT / "docs" / "pictures"
SITUATION: Final = Look(width=1280, height=800)
LIGHT: Final = Look(width=1360, height=760)
PHONE: Final = Look(width=390, height=844)
DARK_PHONE: Final = Look(width=390, height=844, color_scheme="dark")
# A small one would be an empty page; a large one makes the repository and the pages heavy.
LEAST_BYTES: Final = 20_000
MOST_BYTES: Final = 120_000


async def others(gateway: RunningGateway) -> None:
    """Sends what else goes on in a gateway."""
    for model in ("demo-chat", "demo-agent", "demo-messages", "demo-gemini", "demo-text", "demo-grpc"):
        await sent(gateway, model=model, stream=True)
        await sent(gateway, model=model, messages=history(model))


async def take(page: InspectorPage, name: str) -> None:
    """Takes a picture of what is in view."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    await page.settled()
    await page.page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
    assert (FOLDER / f"{name}.png").stat().st_size > LEAST_BYTES


@pytest.mark.parametrize(
    ("name", "situation", "look"),
    [
        *((f"inspector-{situation}", situation, SITUATION) for situation in SITUATIONS),
        ("inspector-phone", "broken", PHONE),
    ],
)
async def test_a_picture_of_a_situation(
    name: str, situation: str, look: Look, opened: Open, request: pytest.FixtureRequest
) -> None:
    async with SITUATIONS[situation]() as one:
        await others(one.gateway)
        async with opened(one.gateway.base_url, look) as viewer:
            page = InspectorPage(viewer)
            await page.open(one.request_id)
            await page.panel()
            await page.reveal()
            await viewer.page.evaluate("() => document.activeElement.blur()")
            await viewer.page.mouse.move(0, 0)
            await take(page, name)
    if request.config.getoption("--rewrite-golden"):
        KEPT.mkdir(exist_ok=True)
        (KEPT / f"{name}.png").write_bytes(small_png((FOLDER / f"{name}.png").read_bytes()))


async def test_the_pictures_that_are_kept_are_shown_and_small() -> None:
    shown = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/inspector.md"))
    # Each with words for those who do not see it.
    named = set(re.findall(r"!\[[^]]{20,}\]\((?:docs/)?pictures/([\w-]+\.png)\)", shown))
    assert named == {path.name for path in KEPT.iterdir()}
    assert [path.name for path in KEPT.iterdir() if path.stat().st_size > MOST_BYTES] == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy() -> AsyncIterator[tuple[RunningGateway, str]]:
    """A gateway with the requests of an afternoon, and the id of the newest."""
    async with running_gateway(settings()) as gateway:
        await others(gateway)
        await sent(gateway, model="no-such-model")
        await sent(gateway, model="demo-chat", messages=TRUNCATED, stream=True)
        yield gateway, await sent(gateway, model="demo-chat", messages=history("demo-chat"))


@pytest.mark.parametrize(("name", "look"), [("inspector-list", LIGHT), ("inspector-list-phone", DARK_PHONE)])
async def test_a_picture_of_the_list(name: str, look: Look, busy: tuple[RunningGateway, str], opened: Open) -> None:
    gateway, newest = busy
    async with opened(gateway.base_url, look) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("button", name="Reveal").click()
        await page.row(newest).get_by_text("And in Oslo?").wait_for()
        await viewer.page.get_by_role("list", name="Backends").wait_for()
        await take(page, name)
