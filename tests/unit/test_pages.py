"""The web pages where no browser is needed: their rules, and what is pinned to build them."""

from __future__ import annotations

import json
import subprocess

from tests.browser import NODE, ROOT

WEB = ROOT / "web"


def test_the_rules_of_the_pages_hold() -> None:
    done = subprocess.run([NODE, "--test", "--test-reporter=tap"], cwd=WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "# fail 0" in done.stdout
    assert "# tests 0" not in done.stdout


def test_every_pinned_package_of_the_pages_has_a_hash_and_no_address() -> None:
    text = (WEB / "package-lock.json").read_text()
    packages = {name: one for name, one in json.loads(text)["packages"].items() if name}
    assert [name for name, one in packages.items() if "integrity" not in one] == []
    assert '"resolved"' not in text
    assert "registry." not in text


def test_every_platform_finds_its_parts_in_the_lock() -> None:
    packages = json.loads((WEB / "package-lock.json").read_text())["packages"]
    wanted = {name for one in packages.values() for name in one.get("optionalDependencies", {})}
    assert [name for name in sorted(wanted) if f"node_modules/{name}" not in packages] == []


def test_only_one_file_of_the_pages_knows_the_database_of_the_browser() -> None:
    sources = [path for folder in ("score", "board", "console", "shared") for path in (WEB / folder).rglob("*.ts*")]
    knowing = [path.name for path in sources if any(word in path.read_text() for word in ('"idb"', "indexedDB", "IDB"))]
    assert knowing == ["store.ts"]
