"""Adds the routes of the inspector's page: its document below /inspect, and its scripts and styles.

They hold no data, so that they ask for no key; what the page asks for does (`InspectorAccess`).
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

import msgspec
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from gateway.server.inspect.access import ASSETS, INSPECT

# What the page is made of; every other file of its folder is not served.
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
PAGE_HEADERS: Final[Mapping[str, str]] = {
    # Text of clients and models is shown by this page: nothing in it may become a script or leave it.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    # Kept, but asked for each time: an upgrade shows at once.
    "cache-control": "no-cache",
}
_DOCUMENT: Final = "index.html"


class Asset(msgspec.Struct, frozen=True):
    """One file of the page."""

    content: bytes
    media_type: str
    etag: str


class Page:
    """The files of a folder by their paths in it, which are read when the first of them is asked for."""

    def __init__(self, folder: Traversable) -> None:
        self._folder = folder
        self._assets: Mapping[str, Asset] | None = None

    def find(self, name: str) -> Asset | None:
        """Returns a file of the page, or None."""
        if self._assets is None:
            self._assets = dict(_read(self._folder, ""))
        return self._assets.get(name)


def _read(folder: Traversable, path: str) -> Iterator[tuple[str, Asset]]:
    for entry in folder.iterdir():
        name = f"{path}{entry.name}"
        suffix = name.rpartition(".")[2]
        if entry.is_dir():
            yield from _read(entry, f"{name}/")
        elif suffix in MEDIA_TYPES:
            content = entry.read_bytes()
            yield name, Asset(content, MEDIA_TYPES[suffix], f'"{sha256(content).hexdigest()[:32]}"')


def add_page_routes(app: FastAPI, folder: Traversable | None = None) -> None:
    """Adds the routes. `folder` holds the page; None: the one of the package."""
    page = Page(files("gateway.inspector") / "page" if folder is None else folder)

    @app.get(INSPECT, include_in_schema=False)
    def document(request: Request) -> Response:
        """The inspector's page."""
        return _asset(page, _DOCUMENT, request)

    @app.get(f"{INSPECT}/", include_in_schema=False)
    async def slash() -> Response:
        """The page's own addresses are relative to the path without the slash."""
        return RedirectResponse(f"..{INSPECT}", 308, PAGE_HEADERS)

    @app.get(f"{ASSETS}{{name:path}}", include_in_schema=False)
    def asset(request: Request, name: str) -> Response:
        """A script, a style sheet or a picture of the page."""
        return _asset(page, name, request)


def _asset(page: Page, name: str, request: Request) -> Response:
    """Returns a file, or that the client has it. Raises HTTPException for one that is not there."""
    found = page.find(name)
    if found is None:
        raise HTTPException(404)
    headers = {**PAGE_HEADERS, "etag": found.etag}
    known = [one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")]
    if found.etag in known:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.media_type, headers=headers)
