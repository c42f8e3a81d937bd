"""Arrays in PostgreSQL's binary form: what the server reads is what was given."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest
from psycopg.pq import Format

from carrick.ingest.postgres.arrays import bytea_array, int_array, str_array, text_array, time_array, uuid_array

MICROSECONDS = (
    "array(select (extract(epoch from t) * 1000000)::int8 from unnest(given) with ordinality as u(t, n) order by n)"
)


def read_back(dsn: str, kind: str, value: bytes, shown: str = "given") -> list[Any]:
    sql = f"select to_json({shown}) from (select $1::{kind}[] as given) as x"
    with psycopg.connect(dsn) as connection:
        result = connection.pgconn.exec_params(sql.encode(), [value], param_formats=[Format.BINARY])
    found: list[Any] = json.loads(result.get_value(0, 0) or b"0")
    return found


@pytest.mark.parametrize(
    "values", [[], [None], [None, None], ["a"], ["", "é", 'a"{},\\'], ["a", None], ["", None], [None, "x" * 70_000, ""]]
)
def test_texts_are_read_as_they_were_given(values: list[str | None], postgres_dsn: str) -> None:
    encoded = text_array([None if value is None else value.encode() for value in values])
    assert read_back(postgres_dsn, "text", encoded) == values
    assert str_array(values) == encoded


@pytest.mark.parametrize(
    "values", [["ab", "cd"], ["é", "a"], ["x" * 127, "y" * 127], ["x" * 128, "y" * 128], ["", ""], ["x" * 70_000] * 2]
)
def test_texts_of_one_length_are_read_as_they_were_given(values: list[str], postgres_dsn: str) -> None:
    assert read_back(postgres_dsn, "text", str_array(values)) == values


def test_numbers_and_bytes_are_read_as_they_were_given(postgres_dsn: str) -> None:
    assert read_back(postgres_dsn, "int", int_array([1, -2, 2**31 - 1])) == [1, -2, 2**31 - 1]
    assert read_back(postgres_dsn, "bytea", bytea_array([b"\x00\xff", b""])) == ["\\x00ff", "\\x"]
    assert (read_back(postgres_dsn, "int", int_array([])), read_back(postgres_dsn, "bytea", bytea_array([]))) == (
        [],
        [],
    )


@pytest.mark.parametrize("values", [[], [None], [0, 1], [0, None, 1_777_636_800_000_001, -62_000_000_000_000_000]])
def test_times_are_read_to_the_microsecond(values: list[int | None], postgres_dsn: str) -> None:
    assert read_back(postgres_dsn, "timestamptz", time_array(values), MICROSECONDS) == values


def test_uuids_are_read_as_they_were_given(postgres_dsn: str) -> None:
    ids = ["0198f0c21f7e7c419c550a8de0f3b111", "0" * 32]
    assert [one.replace("-", "") for one in read_back(postgres_dsn, "uuid", uuid_array(ids))] == ids
    assert read_back(postgres_dsn, "uuid", uuid_array([])) == []
