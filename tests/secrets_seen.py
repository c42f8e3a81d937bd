"""Looks for secrets where none may be: logs, metrics, answers, database files, tables.

secrets = Secrets()
secrets.add("device token", token)
secrets.add_osm(state_file)                      # every token and code that the simulator has issued
secrets.assert_unseen({"log": log, **in_folder(folder), **in_postgres(dsn)})
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

SHORTEST = 8
"""What is shorter is found everywhere, by chance."""

Places = Mapping[str, str | bytes]
"""What to look through, by name."""


class Secrets:
    """Secrets by name, and where they are seen."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._values)

    def add(self, name: str, value: str) -> None:
        """One more. The same value may have several names; the first one counts."""
        if len(value) < SHORTEST:
            raise ValueError(f"{name} is shorter than {SHORTEST} characters: it would be found by chance")
        if value not in self._values.values():
            self._values[f"{name} {len(self._values)}"] = value

    def add_osm(self, state: Path) -> None:
        """Every token and code in the state file of a simulator (`--state FILE`, or `simulated(FILE)`)."""
        world = json.loads(state.read_bytes())
        for grant in world["grants"]:
            self.add("OSM access token", grant["access_token"])
            self.add("OSM refresh token", grant["refresh_token"])
        for code in world["codes"]:
            self.add("OSM code", code)

    def seen(self, places: Places) -> list[str]:
        """What is seen where, one sentence each. The secrets themselves are not shown."""
        found = []
        for place, content in places.items():
            text = content.encode(errors="surrogateescape") if isinstance(content, str) else content
            for name, value in self._values.items():
                found += [f"{name} is in {place}, {form}" for form, looks in _forms(value) if looks in text]
        return found

    def assert_unseen(self, places: Places) -> None:
        """Fail when anything is seen, or when there is nothing to look for or to look through."""
        assert self._values, "no secret to look for"
        assert any(places.values()), "nothing to look through"
        assert self.seen(places) == []


def _forms(value: str) -> Iterator[tuple[str, bytes]]:
    """How a secret may look."""
    raw = value.encode()
    yield "as it is", raw
    yield "in base64", base64.b64encode(raw).rstrip(b"=")[:-1]
    yield "in hexadecimal digits", raw.hex().encode()
    if quote(value, safe="") != value:
        yield "in an address", quote(value, safe="").encode()


def in_folder(folder: Path) -> dict[str, bytes]:
    """Every file in the folder and below: databases with what SQLite keeps beside them, logs, whatever was written."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def in_postgres(dsn: str) -> dict[str, bytes]:
    """Every row of every table, bytes as they are."""
    tables = sql.SQL(
        "select schemaname, tablename from pg_tables where schemaname not in ('pg_catalog', 'information_schema')"
    )
    with psycopg.connect(dsn) as connection:
        named = connection.execute(tables).fetchall()
        return {f"table {schema}.{table}": _copied(connection, schema, table) for schema, table in named}


def _copied(connection: psycopg.Connection[tuple[object, ...]], schema: str, table: str) -> bytes:
    statement = sql.SQL("copy {} to stdout (format binary)").format(sql.Identifier(schema, table))
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        return b"".join(bytes(piece) for piece in copy)
