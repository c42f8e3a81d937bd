"""What is built for others is whole: installed without the checkout it has its commands, SQL, types and pages."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

import carrick

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = PROJECT["tool"]["hatch"]["build"]["hooks"]["custom"]["pages"]
NOT_OURS = {"multidict", "yarl", "rgbmatrix"}
"""aiohttp's own types, which it brings along; and what comes with the hardware, from no index."""
PACKAGES = [Path(package).name for package in PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]


def checkout(folder: Path, *, with_pages: bool) -> Path:
    """A copy of what packages are built from; pages that stand for the built ones, or none."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    (folder / ".gitignore").write_text("static/\n")  # what is built is not in git, and must get in all the same
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "static"))
    for page in PAGES if with_pages else []:
        (folder / page).parent.mkdir(parents=True)
        (folder / page).write_text("<!doctype html>")
    return folder


def build(folder: Path, target: str) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder / "dist")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = (folder / "dist").glob("*.whl" if target == "wheel" else "*.tar.gz")
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source archive as an installer would do it."""
    folder = tmp_path_factory.mktemp("packaging")
    with tarfile.open(build(checkout(folder / "checkout", with_pages=True), "sdist")) as archive:
        safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # not before 3.11.4
        archive.extractall(folder, **safely)
    return build(folder / f"carrick-{carrick.__version__}", "wheel")


def test_a_wheel_without_its_pages_is_not_built(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "checkout", with_pages=False)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "the web pages are not built" in done.stderr
    assert "run: make web" in done.stderr
    assert not list(folder.rglob("*.whl"))


def test_the_wheel_holds_every_file_of_every_package(wheel: Path) -> None:
    files = set(ZipFile(wheel).namelist())
    sources = [
        file for file in (ROOT / "src").rglob("*") if file.is_file() and file.suffix in (".py", ".sql", ".typed")
    ]
    assert {file.relative_to(ROOT / "src").as_posix() for file in sources} <= files
    assert {page.removeprefix("src/") for page in PAGES} <= files
    assert {f"{package}/py.typed" for package in PACKAGES} <= files
    assert {file.partition("/")[0] for file in files} == {*PACKAGES, f"carrick-{carrick.__version__}.dist-info"}


def test_what_the_code_imports_is_a_dependency_or_an_extra() -> None:
    declared = [*PROJECT["project"]["dependencies"], *chain(*PROJECT["project"]["optional-dependencies"].values())]
    names = {re.split(r"[\[>=<;]", requirement)[0] for requirement in declared}
    distributions = packages_distributions()
    for file in (ROOT / "src").rglob("*.py"):
        if {"adapters", "testing"} & set(file.parts):  # libraries that the caller has already, and what tests need
            continue
        for module in imported(file) - sys.stdlib_module_names - set(PACKAGES) - NOT_OURS:
            found = {canonicalize_name(name) for name in distributions[module]}
            assert names & found, f"{file} imports {module}"


def imported(file: Path) -> set[str]:
    """The first parts of what a file imports."""
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level]
    return {name.partition(".")[0] for name in names}


def test_an_installed_wheel_runs_without_the_checkout(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    bin_folder = tmp_path / "venv" / "bin"
    install = [
        "--python",
        str(bin_folder / "python"),
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--no-compile",
        str(wheel),
    ]
    subprocess.run([sys.executable, "-m", "pip", *install], check=True)
    # The dependencies of this environment, not its Carrick: .pth files of a folder that a .pth file names are not read.
    (installed,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    (installed / "dependencies.pth").write_text(sysconfig.get_path("platlib"))
    environment = {key: value for key, value in os.environ.items() if key in ("LANG", "LC_ALL", "HOME")}

    def run(*command: str) -> str:
        done = subprocess.run(
            [str(bin_folder / command[0]), *command[1:]],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    where = "import carrick, carrick_scoreboard as s; print(carrick.__file__, s.__file__)"
    assert run("python", "-c", where).count(str(installed)) == 2
    assert run("carrick", "--version").strip() == PROJECT["project"]["version"]
    assert json.loads(run("carrick", "migrate", "--json"))["applied"]
    for command in ("carrick-device", "carrick-osmsim"):
        assert command in run(command, "--help")
    assert PROJECT["project"]["scripts"].keys() == {"carrick", "carrick-device", "carrick-osmsim"}
