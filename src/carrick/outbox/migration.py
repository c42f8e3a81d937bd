"""Numbered migration files: `0001_tables.sql` and so on, each applied once, in order, on either database."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from carrick.errors import SchemaMissing, SchemaOutdated, SchemaTooNew

FILE_NAME = re.compile(r"(\d{4})_(\w+)\.sql")


INDEX = re.compile(r"^create\s+(?:unique\s+)?index\s+(?P<name>\w+)\s[^;]*;", re.IGNORECASE | re.MULTILINE)


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


class Part(NamedTuple):
    """The migrations of one part of Carrick, numbered by themselves: the engine, the ingest and so on."""

    name: str
    package: str
    folder: str = "migrations"

    @property
    def steps(self) -> tuple[Migration, ...]:
        """Its migrations in order."""
        return migrations(self.package, self.folder)

    def title(self, migration: Migration) -> str:
        """What a user reads about one of them: `engine/0001_tables`."""
        return f"{self.name}/{migration.number:04}_{migration.name}"


def indexes_of(parts: Iterable[Part]) -> dict[str, str]:
    """The indexes that the migrations create, by name: the statement that makes each."""
    found = (match for part in parts for step in part.steps for match in INDEX.finditer(step.sql))
    return {match["name"]: " ".join(match[0].split()) for match in found}


@cache
def migrations(package: str, folder: str) -> tuple[Migration, ...]:
    """The package's migrations in order; their numbers run from 1 without a gap."""
    found = sorted(
        Migration(int(match[1]), match[2], file.read_text(encoding="utf-8"))
        for file in (files(package) / folder).iterdir()
        if (match := FILE_NAME.fullmatch(file.name))
    )
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"migrations of {package} are not numbered 1 to {len(found)}")
    return tuple(found)


def check_version(where: str, found: int | None, known: int) -> None:
    """Raise when the schema number found in a database is not the one this release knows; None means no schema."""
    if found is None or found == 0:
        raise SchemaMissing(where)
    if found < known:
        raise SchemaOutdated(where, found, known)
    if found > known:
        raise SchemaTooNew(where, found, known)
