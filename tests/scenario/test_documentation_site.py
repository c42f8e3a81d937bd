"""`make docs`: the site is whole, and the pages that come from the code are what the code says today."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE: dict[str, Callable[[], str]] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["PAGES"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "docs" / "pages.py"), str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@dataclass
class Seen(HTMLParser):
    """Where a page points, and which names it has."""

    targets: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.targets.append(value)
            elif name == "id" and value:
                self.names.add(value)


def seen(page: Path) -> Seen:
    found = Seen()
    found.feed(page.read_text(encoding="utf-8"))
    return found


def dead_ends(site: Path) -> Iterator[str]:
    for page in site.rglob("*.html"):
        for target in seen(page).targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not file.is_file() or (parts.fragment and parts.fragment not in seen(file).names):
                yield f"{page.relative_to(site)}: {target}"


def test_every_link_of_the_site_leads_to_a_place_in_it(site: Path) -> None:
    assert list(dead_ends(site)) == []


def test_every_page_is_in_the_site_and_in_the_navigation_of_the_others(site: Path) -> None:
    sources = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    assert len(list(site.rglob("*.html"))) == len(sources)
    front = {target.removeprefix("./") for target in seen(site / "index.html").targets}
    assert {page.relative_to(site).as_posix() for page in site.rglob("*.html")} <= front


def test_the_search_knows_every_page_by_its_words(site: Path) -> None:
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    assert {page["path"] for page in index} == {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    (guarantees,) = [page for page in index if page["path"].endswith("guarantees.html")]
    assert "at least once" in guarantees["text"]


@pytest.mark.parametrize("page", MADE)
def test_a_page_that_comes_from_the_code_is_what_the_code_says(page: str) -> None:
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert written == MADE[page](), "run: make docs"
