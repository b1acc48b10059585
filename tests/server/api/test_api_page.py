"""The page of the API lists exactly the existing routes and headers."""

import re
from typing import Final

import pytest
from starlette.routing import Route

from gateway.registry import load_dialect
from gateway.server.access.request_checks import OPEN_PATHS, SINGLE
from gateway.server.api.app import create_app
from gateway.server.inspect.access import is_page
from gateway.settings import Settings
from tests.paths import ROOT
from tests.server.api.test_endpoint import well
from tests.server.conftest import Start

PAGE: Final = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ROUTES: Final = re.findall(r"^\| `([A-Z]+) (\S+)` \| (yes|no) \|", PAGE, re.M)


def listed(section: str) -> set[str]:
    """The headers in the first column of a section's table."""
    rows = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    return {name for cell in re.findall(r"^\| (`.+?`) \|", rows, re.M) for name in re.findall(r"`([^`]+)`", cell)}


def test_the_page_lists_every_route() -> None:
    app = create_app(Settings()).load_routes()
    served = {
        (method, re.sub(r":path\}", "}", route.path))
        for route in app.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    short = {(method, path) for method, path in served if ("/v1" + path) in {path for _, path in served}}
    assert {(method, path) for method, path, _ in ROUTES} == served - short


def test_the_page_names_the_short_routes() -> None:
    app = create_app(Settings()).load_routes()
    paths = {re.sub(r":path\}", "}", route.path) for route in app.routes if isinstance(route, Route)}
    short = {path for path in paths if f"/v1{path}" in paths}
    sentence = PAGE.partition("| `GET /__demo/requests`")[2].partition("do the same")[0]
    assert set(re.findall(r"`(/[^`]+)`", sentence)) - {"/__demo/requests"} == short


def test_the_page_names_the_paths_of_head() -> None:
    routes = [route for route in create_app(Settings()).load_routes().routes if isinstance(route, Route)]
    sentence = PAGE.partition("`HEAD` is not offered")[2].partition(".\n")[0]
    assert set(re.findall(r"`(/[^`]+|/)`", sentence)) == {
        route.path for route in routes if "HEAD" in (route.methods or ())
    }


def test_the_page_says_which_routes_need_a_key() -> None:
    assert {path for _, path, key in ROUTES if key == "no" and not is_page(path)} == OPEN_PATHS
    assert {key for _, path, key in ROUTES if is_page(path)} == {"no"}


def test_the_page_lists_the_headers_that_may_occur_once() -> None:
    sentence = PAGE.partition("`traceparent` | model")[2].partition(" may occur once")[0].rpartition("\n\n")[2]
    single = SINGLE | {place.name for place in load_dialect().key_places}
    assert set(re.findall(r"`([^`]+)`", sentence)) == {name.decode() for name in single}
    assert {name.decode() for name in single} - {"content-encoding", "content-length"} <= listed("Request headers")


FRAMING: Final = {"connection", "content-length", "transfer-encoding", "date", "allow"}


@pytest.mark.parametrize("stream", [False, True])
async def test_the_page_lists_every_header_of_a_response(start: Start, stream: bool) -> None:
    gateway, _ = await start(well)
    body = {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "Hello"}]}
    answers = [
        await gateway.client.post("/v1/chat/completions", json=body),
        await gateway.client.post("/v1/chat/completions", json={**body, "model": "other"}),
        await gateway.client.post("/v1/chat/completions", content=b"x"),
        await gateway.client.get("/v1/models"),
        await gateway.client.get("/nowhere"),
    ]
    assert [answer.status_code for answer in answers] == [200, 404, 415, 200, 404]
    assert {name for answer in answers for name in answer.headers} - FRAMING <= listed("Response headers")
