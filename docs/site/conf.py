"""Builds the documentation as a web site from the pages of the repository (`make docs`).

The pages stay what they are on a code host: Markdown with links between files, whose names the site replaces by titles.
The sidebar follows the lists of docs/index.md, and llms.txt is made from the same lists.
"""

import posixpath
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "index.md"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = "Dragoman"
version = release = PROJECT["version"]
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**.md"]
myst_heading_anchors = 4
# It would make one dash of the two in front of an option.
smartquotes = False
html_theme = "furo"
html_title = "Dragoman"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": "", "footer_icons": []}
nitpicky = True
# The page is in the repository, and so has no date: gateway/commands/manual.
man_pages = [("docs/cli", "dragoman", PROJECT["description"], "", 1)]
today = " "


class Section(NamedTuple):
    """A section of docs/index.md: its heading, and its pages by path without the suffix, with what each tells."""

    title: str
    pages: list[tuple[str, str]]


BEGIN = Section(
    "Begin", [("README", "how to start the gateway, a first request, and a broken history that is repaired")]
)
# A page that is called otherwise in the sidebar.
TITLES = {"README": "Quick start"}


def sections() -> Iterator[Section]:
    """Yields the sections of docs/index.md."""
    for part in INDEX.read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        listed = re.findall(r"^- \[[^]]+\]\(([^)]+)\): ((?:.|\n(?!-))+)", body, re.M)
        yield Section(title, [(_page(link), " ".join(text.split())) for link, text in listed])


def _page(link: str) -> str:
    path = link.removeprefix("../") if link.startswith("../") else f"docs/{link}"
    return path.removesuffix(".md")


def _add_sidebar(app: Sphinx, name: str, source: list[str]) -> None:
    if name != root_doc:
        return
    for section in [BEGIN, *sections()]:
        pages = "\n".join(
            f"{title} </{page}>" if (title := TITLES.get(page)) else f"/{page}" for page, _ in section.pages
        )
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {section.title}\n\n{pages}\n```\n"


def _point_to_sources(app: Sphinx, tree: nodes.document) -> None:
    """Turns links to files that are no pages into text: the site has no copy of the sources."""
    folder = (ROOT / app.env.docname).parent
    for link in list(tree.findall(nodes.reference)):
        target = link.get("refuri", link.get("reftarget", ""))
        if not re.match(r"\w+:", target) and (folder / target.partition("#")[0]).exists():
            link.replace_self(nodes.literal("", link.astext()))
    for reference in list(tree.findall(addnodes.pending_xref)):
        target = reference["reftarget"]
        if target not in app.env.found_docs and (ROOT / f"{target}.md").exists():
            reference.replace_self(nodes.literal("", reference.astext()))


def _show_titles(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Shows the title of a page where a link shows the name of its file."""
    if app.builder.format != "html":
        return
    for link in tree.findall(nodes.reference):
        if re.fullmatch(r"[\w./-]+\.md", link.astext()) and link.get("internal"):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), link.get("refuri", "").partition("#")[0]))
            link.clear()
            link += nodes.Text(_title(app, path.removesuffix(".html")))


def _unlink_manual(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Turns the links between pages into text: a manual page stands alone."""
    if app.builder.name == "man":
        for link in list(tree.findall(nodes.reference)):
            if link.get("internal"):
                link.replace_self(link.children)


def _write_entrances(app: Sphinx, error: Exception | None) -> None:
    """Writes the page at the root of the site, which leads to the first one, and llms.txt."""
    if error is not None or app.builder.name != "html":
        return
    first = f"{root_doc}.html"
    Path(app.outdir, "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>{project}</title>'
        f'<meta http-equiv="refresh" content="0; url={first}"><a href="{first}">{project}</a>\n',
        encoding="utf-8",
    )
    lines = [f"# {project}", "", f"> {PROJECT['description']}"]
    for section in [BEGIN, *sections()]:
        lines += ["", f"## {section.title}", ""]
        lines += [f"- [{_title(app, page)}]({page}.html): {text}" for page, text in section.pages]
    Path(app.outdir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _title(app: Sphinx, page: str) -> str:
    return TITLES.get(page) or app.env.titles[page].astext()


def setup(app: Sphinx) -> ExtensionMetadata:
    """Registers what the site adds to the pages."""
    app.connect("source-read", _add_sidebar)
    # Before Sphinx copies the files that pages link to.
    app.connect("doctree-read", _point_to_sources, priority=100)
    app.connect("doctree-resolved", _show_titles)
    app.connect("doctree-resolved", _unlink_manual)
    app.connect("build-finished", _write_entrances)
    return {"parallel_read_safe": True}
