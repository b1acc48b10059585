"""A web page of another origin, another port of this machine among them, reads nothing and changes nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from gateway.testing.gateway import RunningGateway
from tests.browser.conftest import Open
from tests.browser.installed import BROWSER, REBOUND

pytestmark = BROWSER

# Without a picture of its own a browser would ask for one.
PAGE: Final = b'<!doctype html><link rel="icon" href="data:,"><p>A page of a stranger</p>'
# What a hostile page tries, each of which gives a text: what it got.
TRIES: Final = """async address => {
  const tried = async (path, options) => {
    try {
      const answer = await fetch(address + path, options);
      return answer.type === "opaque" ? "opaque" : answer.status + " " + await answer.text();
    } catch (error) { return error.name; }
  };
  const loaded = (tag, attributes) => new Promise(resolve => {
    const element = Object.assign(document.createElement(tag), attributes);
    element.onload = () => resolve("loaded");
    element.onerror = () => resolve("refused");
    document.body.append(element);
  });
  return {
    list: await tried("/inspect/api/requests"),
    stream: await tried("/inspect/api/stream"),
    forget: await tried("/inspect/api/requests", {method: "DELETE"}),
    key: await tried("/inspect/api/requests", {headers: {authorization: "Bearer x"}}),
    simple: await tried("/inspect/api/explain", {method: "POST", mode: "no-cors", body: "{}"}),
    script: await loaded("script", {src: address + "/inspect/api/requests"}),
    image: await loaded("img", {src: address + "/inspect/api/requests"}),
  };
}"""


@asynccontextmanager
async def hostile_site() -> AsyncIterator[str]:
    """Serves an empty page at another port, and yields its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n" + PAGE)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _refused(gateway: RunningGateway, viewer: Any) -> None:
    """What the page of this viewer tries at the gateway comes to nothing, and changes nothing."""
    kept = (await gateway.client.get("/inspect/api/requests")).json()["requests"]
    assert kept
    got = await viewer.page.evaluate(TRIES, gateway.base_url)
    assert got.pop("simple") in ("opaque", "TypeError")
    assert got == dict.fromkeys(("list", "stream", "forget", "key"), "TypeError") | dict.fromkeys(
        ("script", "image"), "refused"
    )
    assert (await gateway.client.get("/inspect/api/requests")).json()["requests"] == kept
    # The browser says so in its console, and the requests went to the gateway, which is another host for this page.
    assert viewer.excuse("CORS", "Failed to load resource", "MIME type")
    assert {url.partition("/inspect")[0] for url in viewer.foreign()} == {gateway.base_url}
    viewer.asked.clear()


async def test_a_page_of_another_port_reads_and_changes_nothing(gateway: RunningGateway, opened: Open) -> None:
    await gateway.chat(model="demo-chat")
    async with hostile_site() as address, opened(address) as viewer:
        await viewer.page.goto(address)
        await _refused(gateway, viewer)


async def test_a_name_that_leads_here_opens_nothing(gateway: RunningGateway, opened: Open) -> None:
    await gateway.chat(model="demo-chat")
    rebound = f"http://{REBOUND}:{gateway.port}"
    async with opened(rebound) as viewer:
        answer = await viewer.page.goto(f"{rebound}/inspect/api/requests")
        assert answer.status == 421 and "demo-chat" not in await viewer.page.content()
        assert viewer.excuse("421")


@pytest.mark.parametrize("path", ["/inspect", "/inspect/api/requests"])
async def test_no_page_of_another_port_frames_the_inspector(path: str, gateway: RunningGateway, opened: Open) -> None:
    await gateway.chat(model="demo-chat")
    async with hostile_site() as address, opened(address) as viewer:
        await viewer.page.goto(address)
        await viewer.page.evaluate(
            """address => new Promise(resolve => {
              const frame = Object.assign(document.createElement("iframe"), {src: address, onload: resolve});
              document.body.append(frame);
            })""",
            gateway.base_url + path,
        )
        shown = [await frame.content() for frame in viewer.page.frames[1:]]
        assert len(shown) == 1 and "demo-chat" not in shown[0] and "Dragoman" not in shown[0]
        viewer.excuse("403", "404", "frame", "Failed to load resource")
        viewer.asked.clear()
