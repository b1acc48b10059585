"""A request is written in the page and sent: its answer is shown as it comes, as text, and nothing else comes of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.faulty import HEAD, Connection, FaultyBackend, faulty_backend
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.browser.conftest import Open
from tests.browser.inspector_page import InspectorPage
from tests.browser.installed import BROWSER
from tests.browser.test_accessibility import LOOKS, violations
from tests.browser.test_hostile_texts import CORPUS, EVERYTHING, NAME, nothing_made, refused, said
from tests.browser.test_keyboard import Keyboard
from tests.browser.traffic import history, sent, settings
from tests.browser.viewer import Look, Viewer
from tests.server.inspect.test_sent_requests import backend_requests
from tests.server.inspect.test_written_requests import delta, finished

if TYPE_CHECKING:
    from playwright.async_api import Locator

pytestmark = BROWSER

PHONE: Final = Look(width=390, height=844)
SECRET: Final = "backend-secret-12345"
KEY: Final = "sk-proj-abcdefghijklmnop1234"


class TryoutPage(InspectorPage):
    """The place to try in a viewer's tab."""

    async def open_tryout(self) -> None:
        await self.open()
        more = self.page.get_by_role("button", name="More", exact=True)
        if await more.is_visible() and await more.get_attribute("aria-expanded") == "false":
            await more.click()
        await self.page.get_by_role("button", name="Try", exact=True).click()
        await self.pane.wait_for()

    @property
    def pane(self) -> "Locator":
        return self.page.get_by_role("region", name="Try a request")

    @property
    def outcome(self) -> "Locator":
        return self.page.get_by_role("region", name="Outcome")

    async def send(self) -> None:
        await self.pane.get_by_role("button", name="Send", exact=True).click()

    async def write_json(self, body: "Json | str", path: str = "") -> None:
        await self.pane.get_by_role("button", name="JSON", exact=True).click()
        await self.pane.get_by_label("Body").fill(body if isinstance(body, str) else json.dumps(body))
        if path:
            await self.pane.get_by_label("Path").fill(path)

    async def done(self, words: str = "Done.") -> None:
        await self.outcome.get_by_text(words, exact=True).wait_for()

    async def sent_id(self) -> str:
        name: str = await self.outcome.get_by_role("button", name="Open the request").inner_text()
        return name.split()[-1]


@asynccontextmanager
async def behind(backend: FaultyBackend, model: str = "m", **more: Json) -> AsyncIterator[RunningGateway]:
    """A gateway that has this backend alone."""
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": backend.base_url, **more}
    async with running_gateway(
        {**settings(send=True), "backends": {"b": entry}, "models": {model: {"backend": "b"}}}
    ) as gateway:
        yield gateway


async def test_a_button_that_is_off_says_which_setting_opens_it(gateway: RunningGateway, opened: Open) -> None:
    await sent(gateway, model="demo-chat")
    before = backend_requests(gateway)
    async with opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        button = page.pane.get_by_role("button", name="Send", exact=True)
        assert await button.get_attribute("aria-disabled") == "true"
        described = await button.get_attribute("aria-describedby")
        assert "inspector.send is false" in await viewer.page.locator(f"#{described}").inner_text()
        await button.click(force=True)
        await page.pane.get_by_label("Text of message 1").press("Control+Enter")
        await page.settled()
        assert await page.outcome.count() == 0 and [one for one in viewer.fetches() if one.startswith("send")] == []
    assert backend_requests(gateway) == before
    async with running_gateway(settings(send=True, reveal=False)) as shut, opened(shut.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open(await sent(shut, model="demo-chat"))
        await viewer.page.get_by_text("Nobody may reveal them: inspector.reveal is false.").wait_for()
        await viewer.page.keyboard.press("s")
        dialog = viewer.page.get_by_role("dialog", name="Send the request again?")
        edit = dialog.get_by_role("button", name="Edit it first")
        assert await edit.get_attribute("aria-disabled") == "true"
        await dialog.get_by_text("inspector.reveal is false").wait_for()
        await edit.click(force=True)
        await page.settled()
        assert await dialog.count() == 1 and not any("received" in one for one in viewer.fetches())
        # What is written here has no client's words.
        await viewer.page.keyboard.press("Escape")
        await viewer.page.keyboard.press("t")
        await page.send()
        await page.done()


async def test_the_answer_is_shown_as_it_comes_and_the_request_is_one_click_away(opened: Open) -> None:
    more = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(HEAD, delta(reasoning_content="I think. "), delta(content="One two "))
        await more.wait()
        await connection.send(delta(content="three."), finished("stop"))

    async with faulty_backend(script) as backend, behind(backend) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.pane.get_by_label("Text of message 1").fill("Count, please.")
        await page.pane.get_by_role("button", name="Add a message").click()
        await page.pane.get_by_label("Role").nth(1).select_option("assistant")
        await page.pane.get_by_label("Text of message 2").fill("To which number?")
        await page.pane.get_by_role("button", name="Remove message 2").click()
        await page.send()
        await page.outcome.get_by_text("One two").wait_for()
        await page.outcome.get_by_text("The answer is coming ...").wait_for()
        request_id = await page.sent_id()
        await page.row(request_id).get_by_text("live").wait_for()
        body = json.loads(backend.seen[0][1])
        assert body["messages"] == [{"role": "user", "content": "Count, please."}] and body["stream"] is True
        # The request is opened while it is served, and what was written is there again behind it.
        await page.outcome.get_by_role("button", name="Open the request").click()
        await page.request(request_id).get_by_role("tablist").wait_for()
        more.set()
        await page.row(request_id).get_by_text("200", exact=True).wait_for()
        await viewer.page.keyboard.press("t")
        await page.done()
        assert await page.pane.get_by_label("Text of message 1").input_value() == "Count, please."
        parts = [await part.inner_text() for part in await page.outcome.locator(".part-said .text").all()]
        assert [part.strip() for part in parts] == ["I think.", "One two three."]
        await page.row(request_id).get_by_text("inspector").wait_for(state="attached")
        # The page's address names the place.
        await viewer.page.reload()
        await page.pane.wait_for()


async def test_it_is_cancelled_and_so_is_the_backend(opened: Open) -> None:
    gone = asyncio.Event()

    async def script(connection: Connection) -> None:
        await connection.send(HEAD, delta(content="One two "))
        await connection.gone()
        gone.set()

    async with faulty_backend(script) as backend, behind(backend) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.send()
        await page.outcome.get_by_text("One two").wait_for()
        assert not gone.is_set()
        await page.pane.get_by_role("button", name="Cancel").click()
        await page.done("Cancelled.")
        async with asyncio.timeout(20):
            await gone.wait()
        await page.row(await page.sent_id()).get_by_text("client left").wait_for()
        assert await viewer.page.evaluate("() => document.activeElement !== document.body")


async def test_a_call_is_shown_and_not_run(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.pane.get_by_label("Model").fill("demo-chat")
        await page.pane.get_by_label("Text of message 1").fill("What is the weather in Rome?")
        await page.pane.get_by_role("button", name="Add a tool").click()
        await page.pane.get_by_label("Stream").uncheck()
        await page.send()
        await page.done()
        call = page.outcome.locator(".part-said.call")
        assert await call.locator(".name").inner_text() == "weather"
        assert json.loads(await call.locator(".text").inner_text()) == {"city": "Rome"}
        await page.outcome.get_by_text("1 call: shown, and not run.").wait_for()
        assert backend_requests(gateway) == 1
        # Tools that are none are said, and not sent.
        await page.pane.get_by_label("Tools").fill("[{]")
        await page.send()
        await page.pane.get_by_role("alert").get_by_text("The tools are not JSON").wait_for()
        assert backend_requests(gateway) == 1


async def test_an_error_has_its_status_its_code_and_its_words(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.pane.get_by_label("Model").fill("nobody")
        await page.send()
        await page.done("It failed.")
        error = page.outcome.get_by_role("group", name="Error")
        await error.get_by_text("404 model_not_found").wait_for()
        assert "nobody" in await error.inner_text() and "What to do:" in await error.inner_text()
        await page.pane.get_by_label("Model").fill("demo-chat")
        await page.pane.get_by_label("Text of message 1").fill("Hello [[demo:truncated after=2]]")
        await page.send()
        await page.done("It failed while the answer came.")
        await error.get_by_text("upstream_stream_truncated").wait_for()
        await page.write_json("{not json")
        await page.send()
        await error.get_by_text("400 invalid_json").wait_for()
        # What the gateway does not send is said by it.
        await page.write_json("{}", "/v1/models")
        await page.send()
        await page.done("It was not sent.")
        await error.get_by_text("400 invalid_value").wait_for()
        assert viewer.excuse("400")
        before = backend_requests(gateway)
        await page.write_json({"pad": "a" * 2**20})
        await page.send()
        await page.pane.get_by_role("alert").get_by_text("the page sends up to 1 MB").wait_for()
        assert backend_requests(gateway) == before


async def test_a_kept_request_is_edited_and_sent(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        body: dict[str, Json] = {
            "model": "demo-chat",
            "max_tokens": 50,
            "messages": [{"role": "user", "content": f"Grüße, {KEY}"}],
        }
        answer = await gateway.client.post("/v1/messages", json=body)
        first = answer.headers["x-request-id"]
        page = TryoutPage(viewer)
        await page.open(first)
        await viewer.page.keyboard.press("s")
        await viewer.page.get_by_role("button", name="Edit it first").click()
        await page.pane.get_by_role("heading", name="Edit and send").wait_for()
        editor = page.pane.get_by_label("Body")
        text = await editor.input_value()
        assert "Grüße, [key:openai:28]" in text and KEY not in await page.whole_text()
        assert await page.pane.get_by_label("Path").input_value() == "/v1/messages"
        await editor.fill(text.replace("Grüße", "Servus"))
        await page.send()
        await page.done()
        request_id = await page.sent_id()
        seen = gateway.app.gateway_state.demo_backends._running["chat"].requests
        assert "Servus, [key:openai:28]" in str(seen[-1])
        await page.outcome.get_by_role("button", name="Open the request").click()
        await page.request(request_id).get_by_role("tablist").wait_for()
        await viewer.page.keyboard.press("d")
        await (await page.panel()).get_by_role("button", name=first).wait_for()
        await page.row(request_id).get_by_text("inspector").wait_for(state="attached")
        # The form is as it was, and nothing of the edited body is lost on the way there and back.
        await viewer.page.keyboard.press("t")
        await page.pane.get_by_role("button", name="Form", exact=True).click()
        assert await page.pane.get_by_label("Text of message 1").input_value() == "Hello"
        await page.pane.get_by_role("button", name="JSON", exact=True).click()
        assert "Servus" in await page.pane.get_by_label("Body").input_value()


async def test_hostile_texts_stay_texts(opened: Open) -> None:
    async def script(connection: Connection) -> None:
        stream = b'"stream":true' in connection.body.replace(b" ", b"")
        await connection.send(*(said() if stream else [refused()]))

    async with faulty_backend(script) as backend, behind(backend, NAME) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        assert await page.pane.get_by_label("Model").input_value() == NAME
        await page.send()
        await page.done()
        await nothing_made(viewer)
        parts = await page.outcome.locator(".part-said .text").evaluate_all("all => all.map(one => one.textContent)")
        assert parts[0] == "".join(CORPUS) and parts[1] == EVERYTHING
        assert json.loads(parts[2]) == {"command": EVERYTHING}
        assert await page.outcome.locator(".part-said.call .name").evaluate("one => one.textContent") == NAME
        assert await page.outcome.locator("a, img, iframe, script").count() == 0
        await page.pane.get_by_label("Stream").uncheck()
        await page.pane.get_by_label("Text of message 1").fill(EVERYTHING)
        await page.send()
        error = page.outcome.get_by_role("group", name="Error")
        await error.wait_for()
        assert EVERYTHING.splitlines()[0] in str(await error.evaluate("one => one.textContent"))
        await nothing_made(viewer)
        # A model that nobody has, and one that no name can be.
        for name in (EVERYTHING, "a\u202eb\u0000c", "m" * 100_000):
            await page.write_json({"model": name, "messages": [{"role": "user", "content": EVERYTHING}]})
            await page.send()
            await page.done("It failed.")
            await nothing_made(viewer)
            await page.pane.get_by_role("button", name="Form", exact=True).click()


async def test_an_answer_of_any_size_is_shown(opened: Open) -> None:
    async def script(connection: Connection) -> None:
        await connection.send(HEAD)
        for _ in range(40):
            await connection.send(delta(content="word " * 10_000))
        await connection.send(finished("stop"))

    async with faulty_backend(script) as backend, behind(backend) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.send()
        await page.done()
        await page.outcome.get_by_text("Cut here.").wait_for()
        assert len(str(await page.outcome.locator(".part-said .text").evaluate("one => one.textContent"))) == 65536


async def test_no_secret_comes_to_the_page(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_BACKEND", SECRET)

    async def script(connection: Connection) -> None:
        if b'"stream":false' in connection.body.replace(b" ", b""):
            body: Json = {"error": {"message": f"Bad key {SECRET} {KEY}", "code": "bad"}}
            text = json.dumps(body).encode()
            await connection.send(b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text))
            return
        await connection.send(HEAD)
        for sign in f"It is {SECRET}, and {KEY}.":
            await connection.send(delta(content=sign))
        await connection.send(finished("stop"))

    async with (
        faulty_backend(script) as backend,
        behind(backend, api_key_env="SECRET_OF_BACKEND") as gateway,
        opened(gateway.base_url) as viewer,
    ):
        page = TryoutPage(viewer)
        await page.open_tryout()
        await page.send()
        await page.done()
        text = await page.whole_text()
        assert "It is [key:" in text
        await page.pane.get_by_label("Stream").uncheck()
        await page.send()
        await page.done("It failed.")
        text += await page.whole_text()
        assert "Bad key" in text and SECRET not in text and KEY not in text


async def test_everything_is_done_by_keyboard(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        first = await sent(gateway, model="demo-chat", messages=history("demo-chat"))
        page = TryoutPage(viewer)
        keyboard = Keyboard(page)
        await page.open()
        await page.row(first).wait_for()
        await keyboard.watch_focus()
        await keyboard.press("t")
        await page.pane.wait_for()
        assert await keyboard.focus("one => one.textContent === 'Try a request'")
        await keyboard.tab_to("Text of message 1")
        await viewer.page.keyboard.type("Hello there, t and s.")
        await keyboard.press("Control+Enter")
        await page.done()
        request_id = await page.sent_id()
        await keyboard.tab_to(f"Open the request {request_id}")
        await keyboard.press("Enter")
        await page.request(request_id).get_by_role("tablist").wait_for()
        assert await keyboard.focus(f"one => one.textContent === {request_id!r}")
        # Send again, edited.
        await keyboard.press("s")
        await keyboard.tab_to("Edit it first")
        await keyboard.press("Enter")
        await page.pane.get_by_role("heading", name="Edit and send").wait_for()
        await keyboard.tab_to("Form")
        await keyboard.press("Enter")
        await keyboard.tab_to("Add a tool")
        await keyboard.press("Enter")
        await keyboard.tab_to("Send")
        await keyboard.press("Enter")
        await page.done()
        # Out of a field, and back to the list.
        await viewer.page.keyboard.press("Escape")
        await viewer.page.keyboard.press("Escape")
        await page.pane.wait_for(state="detached")
        await page.settled()
        assert await keyboard.focus("one => one !== document.body")
        assert await keyboard.losers() == []


async def test_the_focus_is_in_the_list_where_there_is_no_row(opened: Open) -> None:
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url) as viewer:
        page = TryoutPage(viewer)
        await page.open()
        await viewer.page.keyboard.press("t")
        await page.pane.wait_for()
        await viewer.page.keyboard.press("Escape")
        await page.pane.wait_for(state="detached")
        assert await viewer.page.evaluate("() => document.activeElement.matches('.list')")


@pytest.mark.parametrize("look", [*LOOKS, "phone"])
async def test_nothing_keeps_anybody_out(look: str, opened: Open) -> None:
    look_of: Look = PHONE if look == "phone" else LOOKS[look]
    async with running_gateway(settings(send=True)) as gateway, opened(gateway.base_url, look_of) as viewer:
        page = TryoutPage(viewer)
        first = await sent(gateway, model="demo-chat")
        await page.open_tryout()
        found = {"form": await violations(viewer)}
        await page.pane.get_by_role("button", name="Add a tool").click()
        await page.send()
        await page.done()
        found["done"] = await violations(viewer)
        await _fits(viewer)
        await page.write_json("{")
        await page.send()
        await page.done("It failed.")
        found["failed"] = await violations(viewer)
        await _fits(viewer)
        await page.open(first)
        await viewer.page.get_by_role("button", name="Send again").click()
        await viewer.page.get_by_role("button", name="Edit it first").wait_for()
        found["question"] = await violations(viewer)
        await viewer.page.get_by_role("button", name="Edit it first").click()
        await page.pane.get_by_role("heading", name="Edit and send").wait_for()
        found["edit"] = await violations(viewer)
        await _fits(viewer)
        assert {state: lines for state, lines in found.items() if lines} == {}


async def _fits(viewer: Viewer) -> None:
    """Nothing stands beside the window, so that nobody has to scroll sideways."""
    wide: list[float] = await viewer.page.evaluate(
        "() => [document.documentElement.scrollWidth - innerWidth,"
        " ...[...document.querySelectorAll('.tryout button, .tryout input, .tryout textarea')]"
        ".map(one => one.getBoundingClientRect().right - innerWidth)]"
    )
    assert max(wide) <= 0
