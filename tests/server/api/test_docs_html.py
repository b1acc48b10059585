"""Tests the documentation page: all routes, no script, no content from another host."""

import re

from gateway.server.api.docs_html import docs_page
from tests.server.api.test_middleware import well
from tests.server.conftest import Start

FOREIGN = re.compile(r"""(?:https?:)?//[^\s"'<]|<(?:script|link|img|iframe|object|embed|style|form)\b""", re.I)


async def test_the_page_lists_every_route_and_names_no_other_host(start: Start) -> None:
    gateway, _ = await start(well)
    document = (await gateway.client.get("/openapi.json")).json()
    page = await gateway.client.get("/docs")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["content-security-policy"].startswith("default-src 'none';")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert FOREIGN.findall(page.text) == []
    assert re.findall(r"<code>(.+?)</code>", page.text) == [
        path for path, methods in document["paths"].items() for _ in methods
    ]
    assert "/v1/chat/completions" in document["paths"]


async def test_no_other_route_answers_with_a_page(start: Start) -> None:
    gateway, _ = await start(well)
    for path in (
        "/",
        "/docs/oauth2-redirect",
        "/redoc",
        "/v1/models",
        "/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
    ):
        answer = await gateway.client.get(path)
        assert "html" not in answer.headers["content-type"], path


def test_what_a_route_says_is_text() -> None:
    info = {"title": "<b>", "version": "1", "description": "a & b"}
    page = docs_page({"info": info, "paths": {"/<x>": {"get": {"description": "`<script>`alert(1)</script>"}}}})
    assert "<script>" not in page and "<b>" not in page and "&lt;x&gt;" in page and "`" not in page
