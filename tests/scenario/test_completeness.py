"""No part of the suite goes missing in silence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import completeness

ROOT = Path(__file__).resolve().parents[2]

WHOLE = "def test_one(): pass\n"
WITH_A_SKIP = "import pytest\n@pytest.mark.skip\ndef test_left_out(): pass\ndef test_one(): pass\n"
LONG = """import pytest
@pytest.mark.chaos
def test_long(): print("5 deaths, 0 lost")
def test_one(): print("noise")
"""
SKIPPED_FILE = "import pytest\npytest.importorskip('no_such_package')\n"


def run(folder: Path, text: str, *options: str, ci: bool) -> subprocess.CompletedProcess[str]:
    """Run a suite of one file with the plugin."""
    (folder / "test_sample.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = chaos\n")
    environ = {name: value for name, value in os.environ.items() if name not in ("CI", "PYTEST_ADDOPTS")}
    environ |= {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": "true"} if ci else {})
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "tests.completeness", *options]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_whole_suite_passes_under_ci_and_says_that_it_is_whole(workers: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, WHOLE, *workers, ci=True)
    assert done.returncode == 0, done.stdout
    assert "what did not run" in done.stdout


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
def test_a_skipped_test_is_named_and_fails_the_run_under_ci(workers: list[str], tmp_path: Path) -> None:
    done = run(tmp_path, WITH_A_SKIP, *workers, ci=True)
    assert done.returncode == 1
    assert "skipped: test_sample.py::test_left_out" in done.stdout


def test_a_skipped_test_is_only_named_elsewhere(tmp_path: Path) -> None:
    done = run(tmp_path, WITH_A_SKIP, ci=False)
    assert done.returncode == 0
    assert "skipped: test_sample.py::test_left_out" in done.stdout


def test_what_a_long_version_of_a_fault_test_has_tried_is_shown_although_it_passed(tmp_path: Path) -> None:
    done = run(tmp_path, LONG, ci=False)
    assert "test_sample.py::test_long (0 s): 5 deaths, 0 lost" in done.stdout
    assert "noise" not in done.stdout


def test_a_file_that_is_skipped_as_a_whole_fails_the_run_under_ci(tmp_path: Path) -> None:
    done = run(tmp_path, WHOLE + SKIPPED_FILE, ci=True)
    assert done.returncode != 0
    assert "skipped: test_sample.py" in done.stdout


def test_a_part_whose_package_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(completeness.PARTS, "no_such_package", "the part")
    assert "the part (package no_such_package)" in completeness.missing_parts()


def test_packaged_servers_are_not_missing_when_a_server_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completeness, "find_spec", lambda _: None)
    monkeypatch.setenv("DATABASE_URL", "postgresql://localhost/x")
    assert not any("18 and 16" in part for part in completeness.missing_parts())
    monkeypatch.delenv("DATABASE_URL")
    assert any("18 and 16" in part for part in completeness.missing_parts())
