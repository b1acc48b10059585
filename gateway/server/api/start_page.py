"""Adds the start page: what a browser gets at `/`, where clients of Ollama ask whether it runs.

The page is chosen by the Accept header alone (RFC 9110, section 12.5.1): whoever does not name `text/html` gets the
answer of the dialect, byte for byte. It runs no script and has the headers of the inspector's page, whose folder holds
its style sheet.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from gateway.connect.client import Client, client_names, load_client
from gateway.core.errors import GatewayError, InvalidRequest
from gateway.server.access.request_checks import is_start_page
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.page_routes import PAGE_HEADERS
from gateway.server.inspect.access import INSPECT, inspector_off
from gateway.server.upstream.transport import gateway_version

# One address has two answers, and neither is for keeping: the models change.
HEADERS: Final[Mapping[str, str]] = {**PAGE_HEADERS, "cache-control": "no-store", "vary": "Accept"}
# Files of the inspector's page, which are served where that page is.
_STYLE: Final = f"""\
<link rel="icon" href="{INSPECT[1:]}/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="{INSPECT[1:]}/assets/start.css">
"""
_MOST_MODELS: Final = 60
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
{style}</head>
<body>
<main>
{content}
</main>
</body>
</html>
"""
_LOCKED: Final = "<h1>A client key is needed.</h1>"


class StartPageRoute(BaseRoute):
    """The route of the start page, which leaves every other request for `/` to the dialects. It checks the client's
    key itself, so that a person reads the refusal on a page; that page says nothing else."""

    def __init__(self, gateway_state: GatewayState) -> None:
        self._state = gateway_state

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Returns whether the route serves a request."""
        found = scope["type"] == "http" and is_start_page(scope["method"], scope["path"], scope["context"].headers)
        return (Match.FULL if found else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        await (await self._answer(scope))(scope, receive, send)

    async def _answer(self, scope: Scope) -> Response:
        state, context = self._state, scope["context"]
        try:
            context.key = state.keys.check(scope["head"], scope["served"].dialect.key_places)
        except InvalidRequest as error:
            context.code = error.code
            page = _PAGE.format(title="A client key is needed", style="", content=_LOCKED)
            return Response(page, error.status, {**HEADERS, **error.headers}, "text/html")
        opened = state.inspector is not None and state.access.is_open(state.settings, bool(state.keys))
        content = "\n".join(
            [
                f"<h1>Dragoman {escape(gateway_version())}</h1>",
                "<p>A gateway between clients of language models and their backends. It runs.</p>",
                *_links("" if opened else inspector_off(state.settings).message),
                *await _models(state, context.key),
                *_clients(str(Request(scope).base_url).rstrip("/")),
            ]
        )
        page = _PAGE.format(title="Dragoman", style=_STYLE if opened else "", content=content)
        return Response(page, headers=HEADERS, media_type="text/html")


def _links(closed: str) -> Iterator[str]:
    """Yields the pages of the gateway. `closed` says why there is no inspector; empty: there is one."""
    yield "<ul>"
    if closed:
        yield f"<li>{escape(closed)}</li>"
    else:
        yield f'<li><a href="{INSPECT[1:]}">{INSPECT}</a>: every request, and what was changed in it</li>'
    yield '<li><a href="docs">/docs</a>: every route</li>'
    yield "</ul>"


async def _models(state: GatewayState, key: str) -> Sequence[str]:
    """Returns the models that a client may ask for. Where a backend does not list its own, the page says so."""
    try:
        found = await state.model_lists.names(state.backends)
    except GatewayError as error:
        return ["<h2>Models</h2>", f"<p>They cannot be listed: {escape(error.message)}</p>"]
    names = list(filter(partial(state.admission.allows, key), found.names))
    lines = [f"<h2>Models ({len(names)})</h2>"]
    if names:
        lines += ['<ul class="models">', *_items(names[:_MOST_MODELS]), "</ul>"]
    else:
        lines.append("<p>None: the settings name no model.</p>")
    if len(names) > _MOST_MODELS:
        lines.append(f"<p>And {len(names) - _MOST_MODELS} more: <code>GET /v1/models</code> lists all.</p>")
    if found.missing:
        lines.append(f"<p>Those of a backend are missing: {escape(found.missing)}</p>")
    return lines


def _items(names: Iterable[str]) -> Iterator[str]:
    return (f"<li><code>{escape(name)}</code></li>" for name in names)


def _clients(url: str) -> Iterator[str]:
    """Yields a row for each client that `dragoman connect` knows."""
    yield "<h2>Clients</h2>"
    yield "<p>A command prints what the client needs; with <code>--write</code> it writes the client's files.</p>"
    yield "<table>"
    yield "<thead><tr><th>client</th><th>address</th><th>command</th></tr></thead>"
    yield "<tbody>"
    for name in client_names():
        client = load_client(name)
        command = f"dragoman connect {name} --url {shlex.quote(url)}"
        cells = (escape(_title(client)), f"<code>{escape(url + client.path)}</code>", f"<code>{escape(command)}</code>")
        yield f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
    yield "</tbody>"
    yield "</table>"


def _title(client: Client) -> str:
    return f"{client.title}, which needs a public HTTPS address" if client.public else client.title
