"""The scoreboard's SQL files: the same names and the same parameters on both databases, a comment each, all in use."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

import carrick_scoreboard.store

PARAMETER = {"sqlite": re.compile(r"(?<![\w:]):(\w+)"), "postgres": re.compile(r"%\((\w+)\)s")}


def texts(backend: str) -> dict[str, str]:
    folder = files(f"carrick_scoreboard.store.{backend}") / "queries"
    return {file.name.removesuffix(".sql"): file.read_text(encoding="utf-8") for file in folder.iterdir()}


def parameters(backend: str, name: str) -> set[str]:
    statement = re.sub(r"--[^\n]*", "", texts(backend)[name])
    return set(PARAMETER[backend].findall(statement))


def test_the_folders_hold_the_same_queries() -> None:
    assert texts("sqlite").keys() == texts("postgres").keys()


def test_every_query_takes_the_same_parameters_on_both_databases() -> None:
    differing = [name for name in texts("sqlite") if parameters("sqlite", name) != parameters("postgres", name)]
    assert differing == []


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_every_query_opens_with_a_comment_and_is_used(backend: str) -> None:
    store = Path(carrick_scoreboard.store.__file__).parent
    source = "".join(file.read_text(encoding="utf-8") for file in store.glob("*.py"))
    for name, text in texts(backend).items():
        assert text.startswith("-- "), name
        assert f'"{name}"' in source, name
