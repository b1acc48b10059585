"""The start page as a browser shows it: found at the address that a person types, readable at every width."""

import re
from typing import Final

import pytest

from gateway.testing.gateway import RunningGateway
from tests.browser.conftest import Open
from tests.browser.installed import BROWSER
from tests.browser.test_accessibility import violations
from tests.browser.viewer import Look

pytestmark = BROWSER

LOOKS: Final = {
    "light": Look(width=1280, height=800),
    "dark": Look(width=1280, height=800, color_scheme="dark"),
    "forced colours": Look(width=1280, height=800, forced_colors="active"),
    "phone": Look(width=390, height=844),
    "dark phone": Look(width=390, height=844, color_scheme="dark"),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_it_keeps_nobody_out_and_fits(look: str, gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url, LOOKS[look]) as viewer:
        await viewer.page.goto(gateway.base_url)
        await viewer.page.get_by_role("heading", name="Clients").wait_for()
        assert await violations(viewer) == []
        wide = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert await viewer.page.evaluate(wide) == 0
        # Its own style sheet, and no script.
        assert await viewer.page.evaluate("() => [document.styleSheets.length, document.scripts.length]") == [1, 0]
        assert await viewer.page.evaluate("() => document.styleSheets[0].cssRules.length") > 10


async def test_it_leads_to_the_inspector_and_the_routes_by_keyboard(gateway: RunningGateway, opened: Open) -> None:
    async with opened(gateway.base_url) as viewer:
        for presses, address in ((1, "/inspect"), (2, "/docs")):
            await viewer.page.goto(gateway.base_url)
            for _ in range(presses):
                await viewer.page.keyboard.press("Tab")
            await viewer.page.keyboard.press("Enter")
            await viewer.page.wait_for_url(re.compile(re.escape(gateway.base_url + address)))
