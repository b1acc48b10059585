"""The built site has every page, and no part of it comes from another host."""

import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from gateway.cli import COMMANDS
from tests.paths import ROOT

BUILT = Path(os.environ.get("SITE", "build"))
SITE = BUILT / "docs"
# What a browser loads by itself, unlike the target of a link.
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif("SITE" not in os.environ, reason="make docs builds the site"),
]


class _Loaded(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADING.get(tag, ""))
        if address is not None:
            self.found.append(address)


def test_every_page_of_the_repository_is_on_the_site() -> None:
    pages = {page.relative_to(ROOT).with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert len(pages) > 40
    assert {page for page in pages if not (SITE / page).is_file()} == set()


def test_no_page_loads_anything_from_another_host() -> None:
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 40
    loaded = {address for page in pages for address in _Loaded(page).found}
    assert any(address.endswith(".css") or ".css?" in address for address in loaded)
    assert [address for address in loaded if re.match(r"(?:\w+:)?//", address)] == []


def test_no_style_loads_anything_from_another_host() -> None:
    styles = list(SITE.rglob("*.css"))
    assert styles
    for style in styles:
        assert re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", style.read_text(encoding="utf-8")) == [], style


def test_no_link_shows_the_name_of_a_file() -> None:
    """The repository's pages name files; the site has pages with titles."""
    shown = re.findall(
        r'<a class="reference internal"[^>]*>(?:<\w+[^>]*>)*([^<]+)<', (SITE / "docs" / "index.html").read_text()
    )
    assert len(shown) > 60
    assert [text for text in shown if text.endswith(".md")] == []


def test_an_option_has_two_dashes() -> None:
    page = (SITE / "docs" / "cli.html").read_text(encoding="utf-8")
    assert "the last --write" in page and "–write" not in page


def test_the_list_for_language_models_names_pages_that_exist() -> None:
    listed = re.findall(r"^- \[.+\]\((.+)\): .+", (SITE / "llms.txt").read_text(encoding="utf-8"), re.M)
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert listed[0] == "README.html" and len(listed) == 1 + len(re.findall(r"^- \[", index, re.M))
    assert [page for page in listed if not (SITE / page).is_file()] == []


def test_the_root_leads_to_the_first_page() -> None:
    (target,) = re.findall(r'href="([^"]+)"', (SITE / "index.html").read_text(encoding="utf-8"))
    assert (SITE / target).is_file()


def test_the_manual_that_is_shipped_is_this_one_and_has_every_command() -> None:
    manual = (BUILT / "man" / "dragoman.1").read_text(encoding="utf-8").replace("\\-", "-")
    shipped = (ROOT / "gateway" / "commands" / "manual" / "dragoman.1").read_text(encoding="utf-8")
    assert shipped.replace("\\-", "-") == manual, "make golden writes it anew"
    for name in COMMANDS:
        assert re.search(rf"^\.SH dragoman {name}\b|^\.SH DRAGOMAN {name.upper()}\b", manual, re.M), name
