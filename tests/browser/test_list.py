"""The list says at a glance what was asked, by whom, and what became of it; what is searched for is marked; any two
requests are compared."""

import json
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.test_hostile_texts import CORPUS, EVERYTHING, NAME, nothing_made
from tests.browser.traffic import TRUNCATED, settings
from tests.browser.viewer import Look
from tests.recording.redact.canaries import CANARIES, core_of

pytestmark = BROWSER

CODEX: Final = "codex_cli_rs/0.169.0 (Ubuntu 26.04; x86_64)"
TASK: Final = "Repair the parser of dates"
PHONE: Final = Look(width=390, height=844)


def calling(name: str) -> list[Json]:
    call: Json = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
    ]


async def ask(gateway: RunningGateway, messages: Any, agent: str = CODEX, **fields: Json) -> str:
    body = {"model": "demo-chat", "messages": messages, **fields}
    answer = await gateway.client.post("/v1/chat/completions", json=body, headers={"user-agent": agent})
    return answer.headers["x-request-id"]


async def test_a_row_says_what_was_asked_by_whom_and_what_became_of_it(opened: Open) -> None:
    own = settings()
    priced: Json = {"backend": "demo-chat", "price": {"input": 3, "output": 15}}
    own["models"] = {**own["models"], "demo-chat": priced}  # type: ignore[dict-item]
    async with running_gateway(own) as gateway:
        first = await ask(gateway, [{"role": "user", "content": TASK}])
        second = await ask(gateway, [{"role": "user", "content": TASK}, *calling("shell")])
        broken = await ask(gateway, TRUNCATED, "curl/8.5.0", stream=True)
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(first).wait_for()
            # Replaced, until they are revealed; the names of tools and programs are no words.
            hidden = await page.row(second).inner_text()
            assert "parser" not in hidden and "↳ shell" in hidden and "Codex" in hidden
            await viewer.page.get_by_role("button", name="Reveal").click()
            await page.row(second).get_by_text(TASK).wait_for()
            said = await page.row(first).inner_text()
            assert "USD" in said and "answered" in said and "↳" not in said
            said = await page.row(broken).inner_text()
            assert "curl" in said and "200 failed" in said and "answer broke off" in said
            totals = viewer.page.get_by_role("region", name="Totals")
            said = " ".join((await totals.inner_text()).split())
            assert "3 requests" in said and "1 failed" in said and "USD" in said
            assert "demo-chat 1 of 3 failed: answer broke off" in said
            await totals.get_by_role("button", name="1 failed", exact=True).click()
            await page.row(first).wait_for(state="detached")
            await viewer.page.get_by_text("1 of 3", exact=True).wait_for()


async def test_a_filter_that_is_refused_is_asked_once(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, [{"role": "user", "content": TASK}])
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(request_id).wait_for()
            box = viewer.page.get_by_role("searchbox", name="Filter")
            for grouped in (False, True):
                async with viewer.page.expect_response(lambda answer: answer.status == 400):
                    await box.fill(f"nonsense:{int(grouped)}")
                await viewer.page.get_by_role("alert").wait_for()
                # What asks for its part of the new filter asks for it now; the list of sessions waits for 0.6 s.
                async with viewer.page.expect_response("**/totals*"):
                    await box.fill(f"model:demo-chat {'stream:no' * grouped}")
                await viewer.page.get_by_role("button", name="Sessions").click()
            asked = [path for path in viewer.fetches() if "nonsense" in path]
            assert len(asked) == len(viewer.excuse("400")) == 2, asked


async def test_what_was_revealed_stays_so_in_this_tab(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, [{"role": "user", "content": TASK}])
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(request_id).wait_for()
            await viewer.page.keyboard.press("r")
            await page.row(request_id).get_by_text(TASK).wait_for()
            await viewer.page.reload()
            await page.row(request_id).get_by_text(TASK).wait_for()
            await page.row(request_id).click()
            await page.request(request_id).get_by_text("Words are shown").wait_for()
            assert (await page.messages())[0][0].texts == [TASK]  # type: ignore[union-attr]
            # A request that comes meanwhile has its words, too.
            other = await ask(gateway, [{"role": "user", "content": "Another parser"}])
            await page.row(other).get_by_text("Another parser").wait_for()
            await viewer.page.get_by_role("button", name="Reveal").click()
            await page.row(request_id).get_by_text(TASK).wait_for(state="detached")
            await page.row(other).get_by_text("Another parser").wait_for(state="detached")
            await viewer.page.reload()
            await page.row(request_id).wait_for()
            assert TASK not in await page.whole_text()
        # Another tab begins anew.
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(request_id).wait_for()
            assert TASK not in await page.whole_text()


async def test_what_is_searched_for_is_marked_and_never_folded(opened: Open) -> None:
    messages: list[Json] = [
        {"role": ("user", "assistant")[at % 2], "content": f"Message {at}. " + "and more words " * 100}
        for at in range(61)
    ]
    messages[30] = {"role": "user", "content": "x " * 2000 + "the (Needle) [in] it"}
    async with running_gateway(settings()) as gateway:
        request_id = await ask(gateway, messages)
        other = await ask(gateway, [{"role": "user", "content": "A (NEEDLE) alone"}])
        third = await ask(gateway, [{"role": "user", "content": "Nothing"}])
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(third).wait_for()
            await viewer.page.keyboard.press("r")
            await viewer.page.get_by_role("searchbox", name="Filter").fill('"(needle)"')
            await page.row(third).wait_for(state="detached")
            await page.row(other).locator("mark.found", has_text="(NEEDLE)").wait_for()
            await page.row(request_id).click()
            panel = await page.panel()
            await panel.locator("mark.found", has_text="(Needle)").first.wait_for()
            await page.show("Sent")
            await viewer.page.get_by_role("region", name="Sent bytes as JSON").locator("mark.found").first.wait_for()
            await viewer.page.get_by_role("searchbox", name="Filter").fill("")
            await page.row(third).wait_for()
            assert await page.count("mark.found") == 0


async def test_any_two_requests_are_compared(opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        first = await ask(gateway, [{"role": "user", "content": "Weather in Rome?"}])
        second = await ask(gateway, [{"role": "user", "content": "Something else?"}], model="demo-chat")
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await viewer.page.keyboard.press("r")
            # By the mouse: the later one first, which makes no difference.
            await page.row(second).click()
            await viewer.page.get_by_role("button", name="Compare").click()
            await viewer.page.get_by_text("with: choose a request.").wait_for()
            await page.row(first).click()
            await page.request(second).get_by_text(f"Against {first}").wait_for()
            panel = await page.panel()
            assert await panel.locator("del").all_inner_texts() and "Rome" in await panel.inner_text()
            await panel.get_by_role("button", name="Sent bytes").click()
            await panel.get_by_text("1 line added, 1 removed.").wait_for()
            assert "Rome" in await panel.locator("del").inner_text()
            assert "Something" in await panel.locator("ins").inner_text()
            assert await viewer.page.get_by_role("tab", name="Compared").get_attribute("aria-selected") == "true"
            # By the keys: the one that is at hand is marked, Escape forgets it.
            await viewer.page.keyboard.press("Escape")
            await page.row(first).focus()
            await viewer.page.keyboard.press("m")
            await viewer.page.get_by_text("with: choose a request.").wait_for()
            await viewer.page.keyboard.press("Escape")
            await viewer.page.get_by_text("with: choose a request.").wait_for(state="detached")
            await viewer.page.keyboard.press("m")
            await viewer.page.keyboard.press("k")
            await viewer.page.keyboard.press("m")
            await page.request(second).get_by_text(f"Against {first}").wait_for()


@pytest.mark.parametrize("request_is_open", [False, True])
async def test_on_a_phone_the_controls_leave_room(request_is_open: bool, opened: Open) -> None:
    async with running_gateway(settings()) as gateway:
        ids = [await ask(gateway, [{"role": "user", "content": f"{TASK} {at}"}]) for at in range(30)]
        async with opened(gateway.base_url, PHONE) as viewer:
            page = InspectorPage(viewer)
            await page.open(ids[0] if request_is_open else "")
            await (page.request(ids[0]).get_by_role("tablist") if request_is_open else page.row(ids[-1])).wait_for()
            begin = ".request-body" if request_is_open else ".grid .rows"
            top = await viewer.page.locator(begin).evaluate("one => one.getBoundingClientRect().top")
            assert top < 0.25 * PHONE.height
            wide = "() => document.scrollingElement.scrollWidth"
            assert await viewer.page.evaluate(wide) <= PHONE.width
            settings_button = viewer.page.get_by_role("button", name="Settings")
            assert not await settings_button.is_visible()
            await viewer.page.get_by_role("button", name="More").click()
            assert await settings_button.is_visible()


async def test_hostile_texts_in_the_list_stay_texts(opened: Open) -> None:
    hostile: list[Json] = [{"role": "user", "content": text} for text in (*CORPUS, EVERYTHING)]
    async with running_gateway(settings()) as gateway:
        ids = [
            await ask(gateway, [message, *calling(NAME)], text)
            for message, text in zip(hostile, ["x"] * 99, strict=False)
        ]
        agents = ("<img data-made src=x onerror=alert(1)>", "curl/<img data-made src=x>")
        ids += [await ask(gateway, [{"role": "user", "content": "x"}], agent) for agent in agents]
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(ids[-1]).wait_for()
            for keys in ("r", "g"):
                await viewer.page.keyboard.press(keys)
                await page.settled()
                await nothing_made(viewer)
            sessions = viewer.page.get_by_role("region", name="Sessions")
            await sessions.locator("summary").first.wait_for()
            for summary in await sessions.locator("summary").all():
                await summary.click()
            await page.settled()
            await nothing_made(viewer)
            await viewer.page.keyboard.press("g")
            for word in ("<img", "data-made", "\\", "(", "onerror="):
                await viewer.page.get_by_role("searchbox", name="Filter").fill(
                    json.dumps(word) if word != "\\" else word
                )
                await viewer.page.locator("mark.found").first.wait_for()
                await nothing_made(viewer)


async def test_no_part_of_the_list_has_a_secret(opened: Open) -> None:
    cores = {core_of(canary) for canary in CANARIES.values()}
    async with running_gateway(settings()) as gateway:
        for secret in CANARIES.values():
            messages = [{"role": "user", "content": f"Use {secret}"}, *calling(secret.split("\n")[0])]
            last = await ask(gateway, messages, secret.split("\n")[0])
        first = await ask(gateway, [{"role": "user", "content": "Use " + " and ".join(CANARIES.values())}])
        async with opened(gateway.base_url) as viewer:
            page = InspectorPage(viewer)
            await page.open()
            await page.row(first).wait_for()
            await viewer.page.keyboard.press("r")
            await page.row(first).get_by_text("Use ").wait_for()
            texts = [await page.whole_text()]
            await viewer.page.keyboard.press("g")
            sessions = viewer.page.get_by_role("region", name="Sessions")
            await sessions.locator("summary").first.wait_for()
            for summary in await sessions.locator("summary").all():
                await summary.click()
            await page.settled()
            texts.append(await page.whole_text())
            await viewer.page.goto(f"{gateway.base_url}/inspect#request={first}&against={last}")
            await viewer.page.reload()
            await page.show("Compared")
            await viewer.page.get_by_role("button", name="Sent bytes").click()
            await viewer.page.locator(".hunk").first.wait_for()
            texts.append(await page.whole_text())
            assert "Use " in texts[0]
            assert {core for core in cores for text in texts if core in text} == set()
