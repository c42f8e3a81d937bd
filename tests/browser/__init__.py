"""Tests of the web pages in a real browser."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NODE = Path(sys.prefix) / "bin" / "node"
CONSOLE = ROOT / "src" / "carrick" / "web" / "static" / "console"
PAGES = ROOT / "src" / "carrick_scoreboard" / "static"
DRIVER = ROOT / "web" / "node_modules" / "playwright-core"


def missing() -> str:
    """What these tests cannot do without and do not find; empty when all is there."""
    parts = {"Node": NODE, "the packages of web/": DRIVER, "the built pages": PAGES / "score" / "index.html"}
    parts["the built console"] = CONSOLE / "index.html"
    return ", ".join(name for name, path in parts.items() if not path.exists())
