"""A request is sent again only where the settings say so, after a question, and is then compared with the first."""

from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import sent, settings
from tests.server.inspect.test_sent_requests import backend_requests

pytestmark = BROWSER


async def test_nothing_is_sent_where_the_settings_do_not_say_so(gateway: RunningGateway, opened: Open) -> None:
    request_id = await sent(gateway, model="demo-chat")
    before = backend_requests(gateway)
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(request_id)
        await viewer.page.keyboard.press("s")
        dialog = viewer.page.get_by_role("dialog", name="Send the request again?")
        await dialog.get_by_text("inspector.send is false").wait_for()
        assert await dialog.get_by_role("button").all_inner_texts() == ["Close"]
    assert backend_requests(gateway) == before


async def test_a_request_is_sent_again_and_opened(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        first = await sent(gateway, model="demo-chat")
        # Another one of the same conversation comes between.
        await sent(gateway, model="demo-chat")
        page = InspectorPage(viewer)
        await page.open(first)
        await viewer.page.get_by_role("button", name="Send again").click()
        dialog = viewer.page.get_by_role("dialog", name="Send the request again?")
        await dialog.get_by_text("That may cost money: before, it took").wait_for()
        assert backend_requests(gateway) == 2
        async with viewer.page.expect_response(lambda answer: answer.url.endswith("/send")) as response:
            await dialog.get_by_role("button", name="Send it").click()
        new_id = (await (await response.value).json())["id"]
        request = page.request(new_id)
        await request.get_by_role("tablist").wait_for()
        await dialog.wait_for(state="detached")
        await page.row(new_id).get_by_text("inspector").wait_for(state="attached")
        assert await viewer.page.evaluate("() => document.activeElement.textContent") == new_id
        await viewer.page.keyboard.press("d")
        await (await page.panel()).get_by_role("button", name=first).wait_for()
        # The address keeps with which it is compared.
        await viewer.page.reload()
        await request.get_by_role("tablist").wait_for()
        await viewer.page.keyboard.press("d")
        await (await page.panel()).get_by_role("button", name=first).wait_for()
        assert backend_requests(gateway) == 3
