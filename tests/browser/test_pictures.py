"""Takes the pictures of the page that the web site of the documentation shows (build/pictures). People judge them. The
one that the README shows is kept in docs/pictures: `--rewrite-golden` replaces it."""

import shutil
from collections.abc import AsyncIterator
from typing import Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import TRUNCATED, history, sent, settings
from tests.browser.viewer import Look
from tests.paths import ROOT

pytestmark = BROWSER

FOLDER: Final = ROOT / "build" / "pictures"
KEPT: Final = ROOT / "docs" / "pictures" / "inspector-request.png"
LIGHT: Final = Look(width=1360, height=760)
DARK: Final = Look(width=1360, height=760, color_scheme="dark")
PHONE: Final = Look(width=390, height=844, color_scheme="dark")
# A small one would be an empty page.
LEAST_BYTES: Final = 20_000


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def busy() -> AsyncIterator[tuple[RunningGateway, dict[str, str]]]:
    """A gateway with the requests of an afternoon, and the ids of those that are looked at."""
    async with running_gateway(settings()) as gateway:
        for model in ("demo-chat", "demo-agent", "demo-messages", "demo-gemini", "demo-text", "demo-grpc"):
            await sent(gateway, model=model, stream=True)
            await sent(gateway, model=model, messages=history(model))
        await sent(gateway, model="no-such-model")
        slow: list[Json] = [{"role": "user", "content": "Hello [[demo:slow ms=60]]"}]
        yield (
            gateway,
            {
                "failed": await sent(gateway, model="demo-chat", messages=TRUNCATED, stream=True),
                "answer": await sent(gateway, model="demo-chat", messages=slow, stream=True),
                "request": await sent(gateway, model="demo-chat", messages=history("demo-chat")),
            },
        )


@pytest.mark.parametrize(
    ("name", "which", "view", "look"),
    [
        ("inspector-request", "request", "Messages", LIGHT),
        ("inspector-answer", "answer", "Answer", DARK),
        ("inspector-error", "failed", "Answer", LIGHT),
    ],
)
async def test_a_picture(
    name: str,
    which: str,
    view: str,
    look: Look,
    busy: tuple[RunningGateway, dict[str, str]],
    opened: Open,
    request: pytest.FixtureRequest,
) -> None:
    gateway, ids = busy
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with opened(gateway.base_url, look) as viewer:
        page = InspectorPage(viewer)
        await page.open(ids[which])
        await page.reveal()
        await page.show(view)
        await page.settled()
        await viewer.page.screenshot(path=FOLDER / f"{name}.png")
    assert (FOLDER / f"{name}.png").stat().st_size > LEAST_BYTES
    if KEPT.stem == name and request.config.getoption("--rewrite-golden"):
        KEPT.parent.mkdir(exist_ok=True)
        shutil.copyfile(FOLDER / f"{name}.png", KEPT)


@pytest.mark.parametrize(("name", "look"), [("inspector-list", LIGHT), ("inspector-list-phone", PHONE)])
async def test_a_picture_of_the_list(
    name: str, look: Look, busy: tuple[RunningGateway, dict[str, str]], opened: Open
) -> None:
    gateway, ids = busy
    FOLDER.mkdir(parents=True, exist_ok=True)
    async with opened(gateway.base_url, look) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("button", name="Reveal").click()
        await page.row(ids["request"]).get_by_text("And in Oslo?").wait_for()
        await viewer.page.get_by_role("list", name="Backends").wait_for()
        await viewer.page.screenshot(path=FOLDER / f"{name}.png")
    assert (FOLDER / f"{name}.png").stat().st_size > LEAST_BYTES
