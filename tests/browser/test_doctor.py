"""The doctor asks a backend only where the settings say so and somebody presses the button, and shows what it finds."""

import json

from gateway.core.conversation import Json
from gateway.settings import read_settings
from gateway.testing.gateway import running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings
from tests.server.inspect.test_sent_requests import backend_requests

pytestmark = BROWSER


async def test_a_backend_is_asked_after_a_question(opened: Open) -> None:
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat?defect=ignores_choice_none"}
    own: dict[str, Json] = {**settings(send=True), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
    async with running_gateway(own) as gateway, opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.get_by_role("button", name="Doctor").click()
        dialog = viewer.page.get_by_role("dialog", name="Doctor")
        button = dialog.get_by_role("button", name="Ask it up to")
        await button.wait_for()
        await button.click()
        findings = dialog.get_by_role("group", name="Findings")
        await findings.get_by_text("tool_choice").first.wait_for(timeout=120_000)
        # The tab keeps it.
        await dialog.get_by_role("button", name="Close").click()
        await dialog.wait_for(state="detached")
        await viewer.page.keyboard.press("x")
        await findings.wait_for()


async def test_the_settings_that_the_doctor_suggests_are_shown(opened: Open) -> None:
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": "demo:chat?defect=refuses_two_system"}
    own: dict[str, Json] = {**settings(send=True), "backends": {"b": entry}, "models": {"m": {"backend": "b"}}}
    async with running_gateway(own) as gateway, opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.keyboard.press("x")
        dialog = viewer.page.get_by_role("dialog", name="Doctor")
        await dialog.get_by_role("button", name="Ask it up to").click()
        suggested = dialog.get_by_role("region", name="Suggested settings")
        await suggested.wait_for(timeout=120_000)
        shown = json.loads(await suggested.inner_text())
        assert shown == {"profiles": {"b": {"base": "none", "system": "first"}}, "backends": {"b": {"profile": "b"}}}
        # The file takes them as they are.
        merged = {**own, "profiles": shown["profiles"], "backends": {"b": {**entry, **shown["backends"]["b"]}}}
        assert read_settings(merged).backends["b"].profile == "b"


async def test_nothing_is_asked_where_the_settings_do_not_say_so(opened: Open) -> None:
    async with running_gateway(settings()) as gateway, opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.keyboard.press("x")
        dialog = viewer.page.get_by_role("dialog", name="Doctor")
        await dialog.get_by_text("inspector.send is false").wait_for()
        assert await dialog.get_by_role("button").all_inner_texts() == ["Close"]
        assert backend_requests(gateway) == 0
