"""Checks the documentation: every relative link leads somewhere, and every Python and JSON example can be read.

Run it with `make docs`. Exit code 1 and one line per problem, with file and line.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")
HEADING = re.compile(r"#{1,6}\s+(?P<text>.+?)\s*$")
FENCE = re.compile(r"```(?P<language>\w*)")
CODE_SPAN = re.compile(r"`[^`]*`")


class Example(NamedTuple):
    """A fenced block: the line it starts on, its language, its text."""

    line: int
    language: str
    text: str


def main() -> int:
    pages = documents(ROOT)
    problems = [f"{page.relative_to(ROOT)}:{problem}" for page in pages for problem in problems_of(page)]
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    examples = sum(len(examples_in(page.read_text(encoding="utf-8"))) for page in pages)
    sys.stdout.write(f"{len(pages)} pages, {examples} examples, {len(problems)} problems\n")
    return 1 if problems else 0


def documents(root: Path) -> list[Path]:
    """Every page: those at the top of the repository and those under docs/."""
    return sorted([*root.glob("*.md"), *(root / "docs").rglob("*.md")])


def problems_of(page: Path) -> Iterator[str]:
    """What is wrong on a page, each as `line: what`."""
    text = page.read_text(encoding="utf-8")
    for line, target in links_in(text):
        if problem := broken(page, target):
            yield f"{line}: {problem}"
    for example in examples_in(text):
        if problem := unreadable(example):
            yield f"{example.line}: {problem}"


def links_in(text: str) -> list[tuple[int, str]]:
    """Links outside code, with their line numbers."""
    return [
        (number, found["target"])
        for number, line in prose(text)
        for found in LINK.finditer(CODE_SPAN.sub("", line))
        if not re.match(r"[a-z]+:", found["target"])
    ]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines that are not inside a fenced block."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def broken(page: Path, target: str) -> str | None:
    """Why a link leads nowhere, if it does not."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.is_relative_to(ROOT) or not file.exists():
        return f"the link {target} leads nowhere"
    if anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
        return f"the link {target} names a heading that does not exist"
    return None


def anchors(text: str) -> set[str]:
    """The names that headings can be linked by."""
    headings = (HEADING.match(line) for _, line in prose(text))
    return {re.sub(r"[^\w\- ]", "", found["text"].lower()).replace(" ", "-") for found in headings if found}


def examples_in(text: str) -> list[Example]:
    """The fenced blocks of a page."""
    examples: list[Example] = []
    block: Example | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line.lstrip())
        if block is None and fence:
            block = Example(number, fence["language"], "")
        elif block is not None and fence:
            examples.append(block)
            block = None
        elif block is not None:
            block = block._replace(text=f"{block.text}{line}\n")
    return examples


def unreadable(example: Example) -> str | None:
    """Why an example cannot be read, if it cannot."""
    try:
        if example.language == "python":
            compile(example.text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif example.language == "json":
            json.loads(example.text)
    except (SyntaxError, ValueError) as error:
        return f"the {example.language} example cannot be read: {error}"
    return None


if __name__ == "__main__":
    sys.exit(main())
