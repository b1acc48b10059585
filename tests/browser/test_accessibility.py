"""axe finds no violation in any state of the page, in any look of it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Final

import pytest
import pytest_asyncio

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import AXE, BROWSER
from tests.browser.traffic import TRUNCATED, history, sent, settings
from tests.browser.viewer import Look, Viewer

pytestmark = BROWSER

LOOKS: Final = {
    "light": Look(),
    "dark": Look(color_scheme="dark"),
    "forced colours": Look(forced_colors="active"),
    "narrow": Look(width=400, height=800),
}
# Axe counts the rules that it could judge; fewer would mean that it saw no page.
LEAST_PASSES: Final = 15


async def violations(viewer: Viewer) -> list[str]:
    """Returns what axe finds, one line for each element."""
    if await viewer.page.evaluate("() => typeof axe") == "undefined":
        await viewer.page.evaluate(AXE.read_text(encoding="utf-8"))
    found: Any = await viewer.page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    assert len(found["passes"]) >= LEAST_PASSES
    return [f"{one['id']}: {node['html'][:160]}" for one in found["violations"] for node in one["nodes"]]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ids(gateway: RunningGateway) -> AsyncIterator[dict[str, str]]:
    """The ids of requests by what is seen in them."""
    conversation = history("demo-chat")
    follow_up: list[Json] = [
        *conversation,
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And now?"},
    ]
    await sent(gateway, model="demo-chat", messages=conversation)
    yield {
        "failed": await sent(gateway, model="demo-chat", messages=TRUNCATED, stream=True),
        "protobuf": await sent(gateway, model="demo-agent", messages=conversation, stream=True),
        "repaired": await sent(gateway, model="demo-chat", messages=follow_up, stream=True),
    }


async def _list(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await page.open()
    await page.row(ids["repaired"]).wait_for()


def _view(which: str, view: str) -> Callable[[InspectorPage, Mapping[str, str]], Awaitable[None]]:
    async def show(page: InspectorPage, ids: Mapping[str, str]) -> None:
        await page.open(ids[which])
        await page.show(view)

    return show


async def _what_if(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _view("repaired", "What if")(page, ids)
    await page.page.get_by_role("spinbutton", name="Most messages").fill("1")
    await page.page.get_by_role("button", name="Show", exact=True).click()
    await page.page.get_by_role("group", name="Messages by stage").wait_for()


async def _revealed(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await page.open(ids["repaired"])
    if not await page.count(".revealed"):
        await page.reveal()


def _dialog(key: str, name: str) -> Callable[[InspectorPage, Mapping[str, str]], Awaitable[None]]:
    async def show(page: InspectorPage, ids: Mapping[str, str]) -> None:
        await page.open(ids["repaired"])
        await page.page.reload()
        await page.panel()
        await page.page.keyboard.press(key)
        await page.page.get_by_role("dialog", name=name).wait_for()

    return show


async def _why(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _view("repaired", "Messages")(page, ids)
    await page.page.get_by_role("button", name="Why CALLS_UNANSWERED?").first.click()
    await page.page.get_by_text("Providers say").wait_for()


async def _settings(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _dialog(",", "Settings in use")(page, ids)
    await page.page.get_by_role("group", name="Settings", exact=True).wait_for()


async def _doctor(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _dialog("x", "Doctor")(page, ids)
    await page.page.get_by_text("This page asks nothing").wait_for()


async def _refused_filter(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _list(page, ids)
    await page.page.get_by_role("searchbox", name="Filter").fill("nonsense:1")
    await page.page.get_by_role("alert").wait_for()
    assert page.viewer.excuse("400")


async def _sessions(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _list(page, ids)
    await page.page.keyboard.press("g")
    await page.page.locator(".session summary").first.click()
    await page.page.get_by_role("img", name="Timeline").wait_for()


async def _comparing(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _list(page, ids)
    await page.page.reload()
    await page.row(ids["repaired"]).focus()
    await page.page.keyboard.press("m")
    await page.page.get_by_text("with: choose a request.").wait_for()


async def _compared(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await page.page.goto(f"{page.viewer.address}/inspect#request={ids['repaired']}&against={ids['failed']}")
    await page.show("Compared")
    await page.page.get_by_role("button", name="Sent bytes").click()
    await page.page.locator(".hunk").first.wait_for()


async def _found(page: InspectorPage, ids: Mapping[str, str]) -> None:
    await _list(page, ids)
    await page.page.reload()
    await page.page.get_by_role("searchbox", name="Filter").fill("Oslo")
    await page.page.keyboard.press("Escape")
    await page.page.keyboard.press("r")
    await page.page.locator(".rows mark.found").first.wait_for()
    await page.page.locator(".rows mark.found").first.click()
    await page.page.locator(".stages mark.found").first.wait_for()


# What is judged in every look, and what only in one.
STATES: Final = {
    "list": _list,
    "request": _view("repaired", "Messages"),
    "failed": _view("failed", "Answer"),
    "what if": _what_if,
    "sessions": _sessions,
    "comparing": _comparing,
    "compared": _compared,
    "found": _found,
}
FURTHER: Final = {
    "sent": _view("protobuf", "Sent"),
    "answer": _view("repaired", "Answer"),
    "difference": _view("repaired", "Since previous"),
    "revealed": _revealed,
    "refused filter": _refused_filter,
    "why": _why,
    "keys": _dialog("?", "Keys"),
    "copy": _dialog("c", "Copy the request"),
    "settings": _settings,
    "doctor": _doctor,
    "send": _dialog("s", "Send the request again?"),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_nothing_keeps_anybody_out(look: str, gateway: RunningGateway, ids: dict[str, str], opened: Open) -> None:
    found: dict[str, list[str]] = {}
    async with opened(gateway.base_url, LOOKS[look]) as viewer:
        for state, show in ({**STATES, **FURTHER} if look == "light" else STATES).items():
            await show(InspectorPage(viewer), ids)
            found[state] = await violations(viewer)
    assert {state: lines for state, lines in found.items() if lines} == {}


@pytest.mark.parametrize("look", ["light", "dark"])
async def test_nor_does_the_empty_page(look: str, opened: Open) -> None:
    async with running_gateway(settings()) as empty, opened(empty.base_url, LOOKS[look]) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.get_by_text("No requests yet.").wait_for()
        assert await violations(viewer) == []


async def test_the_judge_sees_what_keeps_people_out(opened: Open, gateway: RunningGateway) -> None:
    async with opened(gateway.base_url) as viewer:
        await InspectorPage(viewer).open()
        await viewer.page.evaluate(
            "() => document.body.append(document.createElement('button'), document.createElement('img'))"
        )
        assert {line.partition(":")[0] for line in await violations(viewer)} >= {"button-name", "image-alt"}


async def test_who_wants_no_motion_gets_none(opened: Open, gateway: RunningGateway, ids: dict[str, str]) -> None:
    async with opened(gateway.base_url, Look(reduced_motion="reduce")) as viewer:
        await InspectorPage(viewer).open(ids["repaired"])
        moving = """() => [...document.querySelectorAll("*")].filter(one => {
          const style = getComputedStyle(one);
          const times = `${style.animationDuration},${style.transitionDuration}`.split(",");
          return times.some(time => parseFloat(time) > 0.01);
        }).map(one => one.outerHTML.slice(0, 100))"""
        assert await viewer.page.evaluate(moving) == []


async def test_what_happens_is_said(opened: Open, gateway: RunningGateway, ids: dict[str, str]) -> None:
    async with opened(gateway.base_url) as viewer:
        page = InspectorPage(viewer)
        await page.open(ids["repaired"])
        spoken = viewer.page.get_by_role("status").first
        assert await spoken.get_attribute("aria-live") == "polite"
        for view in ("Sent", "Answer", "Messages"):
            await page.show(view)
            assert await spoken.inner_text() == f"{view} is shown."
        await viewer.page.get_by_role("searchbox", name="Filter").fill("model:demo-agent")
        await viewer.page.get_by_text("1 request found.").wait_for()
