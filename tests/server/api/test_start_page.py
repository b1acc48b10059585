"""The start page: a browser gets it, nobody else, and it tells what is needed to begin and no more."""

import re
from typing import Final

import pytest

from gateway.connect.client import client_names, load_client
from gateway.core.conversation import Json
from gateway.server.access.request_checks import is_start_page
from gateway.server.api.inspect.page_routes import PAGE_HEADERS
from gateway.testing.gateway import running_gateway
from tests.server.api.test_middleware import KEY_VARIABLE, well
from tests.server.conftest import Start

# What Chromium 126, Firefox 128 and Safari 17 send when somebody opens an address.
BROWSERS: Final = (
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
    "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "text/html",
)
# Those of httpx, of axios, of Go's client (none), of curl, and one that refuses a page.
PROGRAMS: Final = ("*/*", "application/json, text/plain, */*", "", "text/*", "text/html;q=0, */*", "text/html; q=0.0")
ALIVE: Final = "Ollama is running"


def opening(accept: str) -> dict[str, str]:
    return {"accept": accept}


@pytest.mark.parametrize("accept", BROWSERS)
async def test_a_browser_gets_what_it_takes_to_begin(accept: str, start: Start) -> None:
    gateway, backend = await start(well)
    page = await gateway.client.get("/", headers=opening(accept))
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for model in ("m", "n"):
        assert f"<li><code>{model}</code></li>" in page.text
    for name in client_names():
        address = gateway.base_url + load_client(name).path
        row = f"<td><code>{address}</code></td><td><code>dragoman connect {name} --url {gateway.base_url}</code></td>"
        assert row in page.text
    assert 'href="inspect"' in page.text and 'href="docs"' in page.text
    for link in ("/inspect", "/docs", "/inspect/assets/start.css"):
        assert (await gateway.client.get(link)).status_code == 200
    assert not backend.seen


async def test_the_page_has_the_headers_of_the_inspectors_and_runs_nothing(start: Start) -> None:
    gateway, _ = await start(well)
    page = await gateway.client.get("/", headers=opening(BROWSERS[0]))
    own = {"cache-control": "no-store", "vary": "Accept"}
    assert {name: page.headers[name] for name in (*PAGE_HEADERS, "vary")} == {**PAGE_HEADERS, **own}
    assert re.search(r"<script|\son\w+=|\sstyle=|<style|javascript:", page.text) is None
    assert set(re.findall(r"https?://[^\s/<]+", page.text)) == {gateway.base_url}


@pytest.mark.parametrize("accept", PROGRAMS)
async def test_whoever_probes_gets_what_it_got(accept: str, start: Start) -> None:
    gateway, _ = await start(well)
    answer = await gateway.client.get("/", headers=opening(accept))
    assert (answer.text, answer.headers["content-type"]) == (ALIVE, "text/plain; charset=utf-8")
    assert "vary" not in answer.headers and "content-security-policy" not in answer.headers


async def test_head_gets_what_it_got_of_a_browser_too(start: Start) -> None:
    gateway, _ = await start(well)
    answer = await gateway.client.head("/", headers=opening(BROWSERS[0]))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert answer.headers["content-length"] == str(len(ALIVE))


async def test_with_client_keys_it_says_that_and_nothing_else(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret-key")
    gateway, _ = await start(well, api_keys_env=KEY_VARIABLE)
    for given in ({}, {"authorization": "Bearer wrong"}):
        page = await gateway.client.get("/", headers={**opening(BROWSERS[0]), **given})
        assert page.status_code == 401 and page.headers["www-authenticate"] == "Bearer"
        words = re.sub(r"<[^>]+>", " ", page.text.partition("<body>")[2]).split()
        assert " ".join(words) == "A client key is needed."
        assert not re.search(r"dragoman|inspect|docs|connect|http|<link", page.text, re.IGNORECASE)
    for probe in (await gateway.client.get("/"), await gateway.client.head("/")):
        assert probe.status_code == 401 and "html" not in probe.headers["content-type"]
    key = {"authorization": "Bearer secret-key"}
    assert (await gateway.client.get("/", headers=key)).text == ALIVE
    page = await gateway.client.get("/", headers={**key, **opening(BROWSERS[0])})
    assert page.status_code == 200 and "<li><code>m</code></li>" in page.text


async def test_where_nobody_may_inspect_it_says_what_opens_the_inspector(start: Start) -> None:
    gateway, _ = await start(well, allowed_hosts=["gateway.example"])
    page = (await gateway.client.get("/", headers=opening(BROWSERS[0]))).text
    assert "The inspector is off." in page and "inspector.admin_key_env" not in page
    assert "DRAGOMAN_ADMIN_KEY" in page and 'href="inspect"' not in page and "start.css" not in page


async def test_names_are_text() -> None:
    name = '<img src=x onerror="alert(1)">'
    settings: dict[str, Json] = {
        "backends": {"b": {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9/v1"}},
        "models": {name: {"backend": "b"}},
    }
    async with running_gateway(settings) as gateway:
        page = (await gateway.client.get("/", headers=opening(BROWSERS[0]))).text
    assert "<img" not in page and "&lt;img src=x onerror=&quot;alert(1)&quot;&gt;" in page


async def test_a_list_that_cannot_be_had_is_told_and_a_long_one_is_cut() -> None:
    silent: Json = {"adapter": "openai_chat", "base_url": "http://127.0.0.1:9/v1"}
    async with running_gateway({"backends": {"b": silent}, "models": {"*": {"backend": "b"}}}) as gateway:
        page = await gateway.client.get("/", headers=opening(BROWSERS[0]))
        assert page.status_code == 200 and "They cannot be listed: " in page.text
    models: dict[str, Json] = {f"model-{number}": {"backend": "b"} for number in range(100)}
    async with running_gateway({"backends": {"b": silent}, "models": models}) as gateway:
        page = await gateway.client.get("/", headers=opening(BROWSERS[0]))
    assert "Models (100)" in page.text and "And 40 more" in page.text and page.text.count("<li><code>") == 60


async def test_a_page_of_another_site_and_a_foreign_name_are_refused_as_everywhere(start: Start) -> None:
    gateway, _ = await start(well)
    crossing = {**opening(BROWSERS[0]), "sec-fetch-site": "cross-site"}
    assert (await gateway.client.get("/", headers=crossing)).status_code == 403
    rebound = {**opening(BROWSERS[0]), "host": "stranger.example"}
    assert (await gateway.client.get("/", headers=rebound)).status_code == 421


def test_no_other_path_or_method_has_the_page() -> None:
    head = {b"accept": BROWSERS[0].encode()}
    assert is_start_page("GET", "/", head)
    assert not any(is_start_page(method, "/", head) for method in ("HEAD", "POST", "OPTIONS"))
    assert not any(is_start_page("GET", path, head) for path in ("//", "/v1", "/index.html", ""))
