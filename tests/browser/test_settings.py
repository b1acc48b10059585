"""The settings in use are shown with what sets them, and nobody's secrets."""

import json
from pathlib import Path
from typing import Final

from gateway.core.conversation import Json
from gateway.settings import load_settings
from gateway.settings.source import SettingsSource
from gateway.testing.gateway import running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings

pytestmark = BROWSER

SECRET: Final = "header-secret-1"


async def test_what_somebody_has_set_is_shown_first_and_the_rest_is_found(tmp_path: Path, opened: Open) -> None:
    path = tmp_path / "settings.json"
    entry: Json = {"adapter": "openai_chat", "base_url": "demo:chat", "headers": {"x-team": SECRET}}
    own: dict[str, Json] = {**settings(), "max_tool_results": 7, "backends": {"b": entry}, "models": {}}
    path.write_text(json.dumps(own))
    async with running_gateway(own) as gateway, opened(gateway.base_url) as viewer:
        gateway.app.gateway_state.source = SettingsSource(path, lambda: load_settings(path))
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_role("button", name="Settings").click()
        dialog = viewer.page.get_by_role("dialog", name="Settings in use")
        row = dialog.get_by_role("row").filter(has_text="max_tool_results").first
        await row.get_by_text("settings.json:1").wait_for()
        assert await row.get_by_text("over 10 (default)").count() == 1
        assert await dialog.get_by_role("row").filter(has_text="max_response_mb").count() == 0
        await dialog.get_by_role("searchbox").fill("x-team")
        await dialog.get_by_role("row").filter(has_text="x-team").get_by_text("(hidden)").wait_for()
        assert SECRET not in await page.whole_text()
        await dialog.get_by_role("searchbox").fill("limits max_response")
        await dialog.get_by_role("row").filter(has_text="max_response_mb").get_by_text("default").wait_for()
        await dialog.get_by_role("button", name="Close").click()
        await dialog.wait_for(state="detached")
        # A file that would be refused is told where it is asked about.
        path.write_text("{]")
        await viewer.page.keyboard.press(",")
        await dialog.get_by_text("The file would be refused now.").wait_for()
