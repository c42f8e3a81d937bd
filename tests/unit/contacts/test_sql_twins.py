"""The two databases' query folders: the same names for the same operations, and a reason where one has more."""

from __future__ import annotations

from importlib.resources import files

import pytest

SQLITE_ALONE = {
    "resolve_add",
    "resolve_bury",
    "resolve_conflict",
    "resolve_create",
    "resolve_find",
    "resolve_move",
    "resolve_set",
}
"""The steps of a resolve: on PostgreSQL they stand in 0002_resolve.sql."""

POSTGRES_ALONE = {
    "resolve": "SQLite's is the steps resolve_*",
    "resolve_many": "SQLite has one writer: it resolves one after the other",
    "lock_many": "SQLite has one writer: it holds all there is",
    "tell": "SQLite puts through the engine's own statements",
    "be_tenant": "SQLite has no row-level security",
}


def names(backend: str) -> set[str]:
    folder = files(f"carrick.contacts.{backend}") / "queries"
    return {file.name.removesuffix(".sql") for file in folder.iterdir() if file.name.endswith(".sql")}


def test_the_folders_differ_only_for_a_listed_reason() -> None:
    sqlite, postgres = names("sqlite"), names("postgres")
    assert sqlite - postgres == SQLITE_ALONE
    assert postgres - sqlite == POSTGRES_ALONE.keys()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_every_query_opens_with_a_comment_that_says_what_it_does(backend: str) -> None:
    folder = files(f"carrick.contacts.{backend}") / "queries"
    assert [file.name for file in folder.iterdir() if not file.read_text().startswith("-- ")] == []
