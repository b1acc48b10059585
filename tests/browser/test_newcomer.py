"""A newcomer opens the page, sends the first request of the README, and sees what became of it and why."""

import asyncio
import json
import re
from asyncio.subprocess import DEVNULL, PIPE
from typing import Any, Final

from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import settings
from tests.paths import ROOT

pytestmark = BROWSER

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
# The request of the README's chapter about broken histories.
(_BODY,) = re.findall(r"^\$ curl -sS -D - .*?-d '(\{.*\})' \| grep x-dragoman$", README, re.M)
BROKEN: Final[dict[str, Any]] = json.loads(_BODY)


async def _send_broken(gateway: RunningGateway) -> str:
    return (await gateway.client.post("/v1/chat/completions", json=BROKEN)).headers["x-request-id"]


async def test_the_first_request_appears_with_what_was_repaired_and_why(opened: Open) -> None:
    async with running_gateway(settings()) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        await viewer.page.get_by_text("No requests yet.").wait_for()
        request_id = await _send_broken(gateway)
        await page.row(request_id).get_by_text("repair 1").wait_for()
        await page.row(request_id).click()
        await page.request(request_id).get_by_text("1 of 2 messages changed or noticed.").wait_for()
        notice = page.request(request_id).get_by_role("list", name="Notices").get_by_role("listitem")
        said = await notice.inner_text()
        assert "TOOL_ORPHAN" in said and "does not follow an assistant message with tool_calls" in said
        assert "What to do: Put tool messages directly after the assistant message" in said
        await page.reveal()
        first, second = await page.messages()
        assert [cell and cell.mark for cell in first] == ["=", "=", "=", "="]
        assert [cell and cell.mark for cell in second] == ["=", "~", "=", "="]
        assert second[0] is not None and (second[0].role, second[0].texts) == ("tool", ["lost"])
        assert second[1] is not None and second[1].role == "user" and second[1].texts[0].endswith("\nlost")
        panel = await page.show("Sent")
        sent = json.loads(await panel.get_by_role("region", name="Sent bytes as JSON").inner_text())
        assert [message["role"] for message in sent["messages"]] == ["user", "user"]


async def test_the_command_on_the_empty_page_works(opened: Open) -> None:
    async with running_gateway(settings()) as gateway, opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open()
        command = await viewer.page.get_by_role("region", name="Example").inner_text()
        await viewer.page.get_by_role("button", name="Copy the command").click()
        assert await viewer.page.evaluate("() => navigator.clipboard.readText()") == command
        process = await asyncio.create_subprocess_shell(command, stdout=PIPE, stderr=DEVNULL)
        output, _ = await process.communicate()
        assert json.loads(output)["choices"]
        await page.grid.locator("[data-id]").wait_for()
