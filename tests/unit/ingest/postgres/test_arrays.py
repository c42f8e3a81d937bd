"""Arrays in PostgreSQL's binary form: what the server reads is what was given."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from carrick.ingest.postgres.arrays import TextArray, TimeArray, UuidArray, register


def read_back(dsn: str, kind: str, value: Any) -> list[Any]:
    with psycopg.connect(dsn) as connection:
        register(connection)
        row = connection.execute(f"select %s::{kind}[], pg_typeof(%s)::text".encode(), (value, value)).fetchone()
    assert row is not None
    assert row[1] == kind.replace("timestamptz", "timestamp with time zone") + "[]"
    found: list[Any] = row[0]
    return found


@pytest.mark.parametrize(
    "values", [[], [None], [None, None], ["a"], ["", "é", 'a"{},\\'], ["a", None], ["", None], [None, "x" * 70_000, ""]]
)
def test_texts_are_read_as_they_were_given(values: list[str | None], postgres_dsn: str) -> None:
    encoded = TextArray([None if value is None else value.encode() for value in values])
    assert read_back(postgres_dsn, "text", encoded) == values


@pytest.mark.parametrize("values", [[], [None], [0, None, 1_777_636_800_000_001, -62_000_000_000_000_000]])
def test_times_are_read_to_the_microsecond(values: list[int | None], postgres_dsn: str) -> None:
    found = read_back(postgres_dsn, "timestamptz", TimeArray(values))
    assert [None if when is None else round(when.timestamp() * 1_000_000) for when in found] == values


def test_uuids_are_read_as_they_were_given(postgres_dsn: str) -> None:
    ids = ["0198f0c21f7e7c419c550a8de0f3b111", "0" * 32]
    assert read_back(postgres_dsn, "uuid", UuidArray(ids)) == [UUID(one) for one in ids]
    assert read_back(postgres_dsn, "uuid", UuidArray([])) == []
