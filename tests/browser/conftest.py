"""Starts one browser for all tests, and one gateway for a module."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import pytest
import pytest_asyncio

from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.installed import CHROMIUM, FLAGS
from tests.browser.traffic import settings
from tests.browser.viewer import PATIENCE, PLAIN, Look, Viewer, viewing

if TYPE_CHECKING:
    from playwright.async_api import Browser


class Open(Protocol):
    """Opens a tab for the gateway at an address."""

    def __call__(self, address: str, look: Look = ...) -> AbstractAsyncContextManager[Viewer]: ...


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator["Browser"]:
    from playwright.async_api import async_playwright, expect  # installed for these tests alone

    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        await started.close()


@pytest.fixture
def opened(browser: "Browser") -> Open:
    return lambda address, look=PLAIN: viewing(browser, address, look)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def gateway() -> AsyncIterator[RunningGateway]:
    async with running_gateway(settings()) as started:
        yield started
