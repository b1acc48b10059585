"""Renders the OpenAPI document as one plain page that lists the routes. The page runs no script and loads no
resource."""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body>
<h1>{title}</h1>
<p>{description}</p>
<p>With every field, as an OpenAPI document: <a href="openapi.json">openapi.json</a></p>
<table>
<tr><th align="left">method</th><th align="left">path</th><th align="left">description</th></tr>
{rows}
</table>
</body>
</html>
"""


def docs_page(document: Mapping[str, Any]) -> str:  # OpenAPI documents are untyped in FastAPI
    """Returns the HTML page."""
    info = document["info"]
    rows = [
        f"<tr><td>{escape(method.upper())}</td><td><code>{escape(path)}</code></td><td>{escape(_says(route))}</td></tr>"
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    title = escape(f"{info['title']} {info['version']}")
    return _PAGE.format(title=title, description=escape(info["description"]), rows="\n".join(rows))


def _says(route: Mapping[str, Any]) -> str:
    """Converts a description to text: the document marks code as Markdown does."""
    return str(route.get("description") or route.get("summary") or "").replace("`", "")
