"""What if: other rules, and the words of what would be sent where somebody reveals them."""

from gateway.testing.gateway import RunningGateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import history, sent

pytestmark = BROWSER


async def test_the_words_are_revealed_there_too(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-chat", messages=history("demo-chat"))
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        panel = await page.show("What if")
        await panel.get_by_role("spinbutton", name="Most messages").fill("1")
        await panel.get_by_role("button", name="Show").click()
        stages = panel.get_by_role("group", name="Messages by stage")
        await stages.get_by_text("left out").first.wait_for()
        assert "Oslo" not in await stages.inner_text()
        await viewer.page.get_by_role("button", name="Reveal").click()
        await stages.get_by_text("And in Oslo?").first.wait_for()
        # It is still what the other rules make of it.
        assert await stages.get_by_text("left out").count() > 0
        assert await panel.get_by_role("spinbutton", name="Most messages").input_value() == "1"
        await viewer.page.get_by_role("button", name="Reveal").click()
        await stages.get_by_text("And in Oslo?").first.wait_for(state="detached")
