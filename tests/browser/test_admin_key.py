"""Where an admin key is set, the page asks for it, keeps it in the tab alone, and shows it nowhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from gateway.server.inspect.access import InspectorAccess
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.traffic import sent, settings
from tests.machines.faulty_proxy import faulty_proxy

pytestmark = BROWSER

ADMIN: Final = "admin-key-of-the-test"


@asynccontextmanager
async def keyed_gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    monkeypatch.setenv("DRAGOMAN_ADMIN_KEY", ADMIN)
    async with running_gateway(settings(enabled="on")) as gateway:
        yield gateway


async def _stored(page: InspectorPage) -> str:
    """All that outlives the page in the browser, and its address and history."""
    kept: str = await page.page.evaluate(
        """async () => JSON.stringify([localStorage, sessionStorage, document.cookie, location.href, history.state,
          performance.getEntriesByType("navigation").length, await caches.keys(),
          (await indexedDB.databases()).map(one => one.name)])"""
    )
    return kept


async def test_the_key_of_the_address_opens_and_is_erased(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keyed_gateway(monkeypatch) as gateway, opened(gateway.base_url) as viewer:
        request_id = await sent(gateway, model="demo-chat")
        page = InspectorPage(viewer)
        await viewer.page.goto(f"{gateway.base_url}/inspect#key={ADMIN}&request={request_id}")
        await page.request(request_id).get_by_role("tablist").wait_for()
        assert ADMIN not in viewer.page.url and f"request={request_id}" in viewer.page.url
        assert ADMIN not in await page.whole_text() and ADMIN not in await _stored(page)
        assert not [asked for asked in viewer.asked[1:] if ADMIN in asked]
        # Nor does the way back lead to it.
        await viewer.page.go_back()
        assert ADMIN not in viewer.page.url


async def test_without_it_a_form_asks_and_refuses_a_wrong_one(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    async with keyed_gateway(monkeypatch) as gateway, opened(gateway.base_url) as viewer:
        request_id = await sent(gateway, model="demo-chat")
        page = InspectorPage(viewer)
        await viewer.page.goto(f"{gateway.base_url}/inspect")
        field = viewer.page.get_by_label("Admin key")
        await field.wait_for()
        assert await field.evaluate("one => one === document.activeElement && one.type === 'password'")
        assert request_id not in await page.whole_text()
        await viewer.page.keyboard.type("wrong")
        await viewer.page.keyboard.press("Enter")
        await viewer.page.get_by_text("The gateway refuses this key.").wait_for()
        await field.fill(ADMIN)
        await viewer.page.keyboard.press("Enter")
        await page.row(request_id).wait_for()
        assert ADMIN not in await page.whole_text() and ADMIN not in await _stored(page)
        assert len(viewer.excuse("401")) == 2
        # In the memory of the tab only.
        await viewer.page.reload()
        await viewer.page.get_by_label("Admin key").wait_for()
        assert viewer.excuse("401")


async def test_a_key_that_no_header_can_carry_is_refused_like_a_wrong_one(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with keyed_gateway(monkeypatch) as gateway, opened(gateway.base_url) as viewer:
        await viewer.page.goto(f"{gateway.base_url}/inspect#key=%22%0d%0ax%C3%A4")
        await viewer.page.get_by_label("Admin key").wait_for()
        await viewer.page.get_by_text("The gateway refuses this key.").wait_for()


async def test_a_gateway_that_came_back_with_another_key_asks_for_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        keyed_gateway(monkeypatch) as gateway,
        faulty_proxy(gateway.port) as proxy,
        opened(f"http://127.0.0.1:{proxy.port}") as viewer,
    ):
        page = InspectorPage(viewer)
        await viewer.page.goto(f"{viewer.address}/inspect#key={ADMIN}")
        await viewer.page.locator(".stream.live").wait_for()
        await proxy.set("refuse")
        await viewer.page.locator(".stream.lost").wait_for()
        access = InspectorAccess(gateway.app.gateway_state.settings, {"DRAGOMAN_ADMIN_KEY": "another"})
        monkeypatch.setattr(gateway.app.gateway_state, "access", access)
        await proxy.set("pass")
        await viewer.page.get_by_text("The gateway refuses this key.").wait_for()
        request_id = await sent(gateway, model="demo-chat")
        await viewer.page.get_by_label("Admin key").fill("another")
        await viewer.page.keyboard.press("Enter")
        await page.row(request_id).wait_for()
        assert viewer.excuse("401", "ERR_")


async def test_a_gateway_that_others_reach_has_no_page(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DRAGOMAN_ADMIN_KEY", raising=False)
    async with (
        running_gateway(settings({"allowed_hosts": ["127.0.0.1", "gateway.example"]})) as gateway,
        opened(gateway.base_url) as viewer,
    ):
        answer = await viewer.page.goto(f"{gateway.base_url}/inspect")
        assert answer.status == 404 and "DRAGOMAN_ADMIN_KEY" in await viewer.page.content()
        assert viewer.excuse("404")
