"""Builds the documentation as a site: pages with navigation and search, links that lead to a page or file of it.

Run it with `make docs`. It writes into `site/`, which may be copied to any web server.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path, PurePosixPath
from string import Template
from typing import NamedTuple

from check import ROOT, documents
from markdown_it import MarkdownIt
from markdown_it.token import Token

from carrick import __version__

THEME = Path(__file__).resolve().parent / "theme"
SECTIONS = {
    "docs/tutorial": "Tutorial",
    "docs/how-to": "How to",
    "docs/reference": "Reference",
    "docs/explanation": "Explanation",
    "docs/architecture": "Architecture",
    "docs/decisions": "Decisions",
}
MAP = "docs/README.md"
"""Its order is that of the navigation; what it does not name comes after."""
FRONT = ("README.md", MAP, "CONTRIBUTING.md", "CHANGELOG.md")


class Page(NamedTuple):
    """A page: its place in the repository, its title, its tokens."""

    source: PurePosixPath
    title: str
    tokens: list[Token]

    @property
    def path(self) -> PurePosixPath:
        """Its place in the site."""
        name = "index" if self.source.name == "README.md" else self.source.stem
        return self.source.with_name(f"{name}.html")


def main(arguments: Sequence[str]) -> int:
    target = Path(arguments[0]) if arguments else ROOT / "site"
    pages = build(ROOT, target)
    sys.stdout.write(f"{len(pages)} pages in {target}/\n")
    return 0


def build(root: Path, target: Path) -> list[Page]:
    """Write the site; what stood there before is gone."""
    reader = MarkdownIt("commonmark").enable("table")
    pages = [_read(reader, root, file) for file in documents(root)]
    known = {str(page.source): page for page in pages}
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(THEME, target / "theme", ignore=shutil.ignore_patterns("page.html"))
    for page in pages:
        for pointed_at in _point_into_the_site(page, known, root):
            (target / pointed_at).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / pointed_at, target / pointed_at)
    template = Template((THEME / "page.html").read_text(encoding="utf-8"))
    for page in pages:
        file = target / page.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_written(template, reader, page, pages), encoding="utf-8")
    index = [{"path": str(page.path), "title": page.title, "text": _words(page)} for page in pages]
    (target / "search.json").write_text(json.dumps(index), encoding="utf-8")
    return pages


def _read(reader: MarkdownIt, root: Path, file: Path) -> Page:
    tokens = reader.parse(file.read_text(encoding="utf-8"))
    heading = next((after for before, after in pairwise(tokens) if before.type == "heading_open"), None)
    title = _plain(heading) if heading else file.stem
    return Page(PurePosixPath(file.relative_to(root).as_posix()), title, tokens)


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or [] if child.type in ("text", "code_inline"))


def _point_into_the_site(page: Page, known: dict[str, Page], root: Path) -> Iterator[PurePosixPath]:
    """Give headings their names and turn links to pages into links of the site; the other files that are pointed at."""
    for before, after in pairwise(page.tokens):
        if before.type == "heading_open":
            before.attrSet("id", re.sub(r"[^\w\- ]", "", after.content.lower()).replace(" ", "-"))
    for token in (child for block in page.tokens for child in block.children or []):
        attribute = {"link_open": "href", "image": "src"}.get(token.type)
        target = str(token.attrGet(attribute) or "") if attribute else ""
        if not attribute or not target or re.match(r"[a-z]+:|#", target):
            continue
        path, separator, anchor = target.partition("#")
        file = PurePosixPath(os.path.normpath(page.source.parent / path))
        if str(file) in known:
            there = os.path.relpath(known[str(file)].path, page.source.parent)
            token.attrSet(attribute, f"{there}{separator}{anchor}")
        elif (root / file).is_file():
            yield file
        else:
            raise SystemExit(f"{page.source}: the link {target} leads to nothing that the site can show")


def _written(template: Template, reader: MarkdownIt, page: Page, pages: Sequence[Page]) -> str:
    root = os.path.relpath(".", page.path.parent)
    content = reader.renderer.render(page.tokens, reader.options, {})
    content = content.replace("<table>", '<div class="wide"><table>').replace("</table>", "</table></div>")
    return template.substitute(
        title=html.escape(page.title),
        version=__version__,
        root=root,
        navigation=_navigation(page, pages, root),
        content=content,
    )


def _navigation(current: Page, pages: Sequence[Page], root: str) -> str:
    by_source = {str(page.source): page for page in pages}
    order = list(_pages_on(by_source[MAP])) if MAP in by_source else []
    parts = [_list([by_source[source] for source in FRONT if source in by_source], current, root)]
    for folder, heading in SECTIONS.items():
        inside = [page for page in pages if str(page.source.parent) == folder]
        inside.sort(key=lambda page: order.index(str(page.path)) if str(page.path) in order else len(order))
        if inside:
            parts.append(f"<h2>{heading}</h2>\n{_list(inside, current, root)}")
    return "\n".join(parts)


def _pages_on(page: Page) -> Iterator[str]:
    """The pages of the site that a page links to, in its order."""
    for token in (child for block in page.tokens for child in block.children or []):
        if token.type == "link_open":
            yield os.path.normpath(page.path.parent / str(token.attrGet("href")).partition("#")[0])


def _list(pages: Sequence[Page], current: Page, root: str) -> str:
    rows = []
    for page in pages:
        here = ' aria-current="page"' if page is current else ""
        rows.append(f'<li><a href="{root}/{page.path}"{here}>{html.escape(page.title)}</a></li>')
    return "<ul>\n" + "\n".join(rows) + "\n</ul>"


def _words(page: Page) -> str:
    """What the search looks in."""
    texts = (token.content for token in page.tokens if token.type in ("inline", "fence"))
    return re.sub(r"\s+", " ", " ".join(texts)).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
