"""Carrick's SQL in the placeholder styles of other libraries."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import asyncpg

from carrick.outbox.adapters.placeholders import as_text, colon_binds, lite_colon_binds, lite_pyformat, numbered

POSTGRES = "-- at: noon\nselect %(a)s::int, %(b)s, %(a)s::int, %(c)s::uuid[], '10:30 %%', x::text from t -- %(b)s"
LITE = """-- tenant:x isn't :one
select :a, ':no' || "c:d", strftime('%H:%M', :b), /* :not */ :a from t"""


def test_numbered_placeholders_share_a_number_and_go_as_text_where_cast() -> None:
    sql, slots = numbered(POSTGRES)
    assert sql == (
        "-- at: noon\nselect $1::text::int, $2, $1::text::int, $3::text[]::uuid[], '10:30 %', x::text from t -- $2"
    )
    params = {"a": 1, "b": 2, "c": [UUID(int=3), None]}
    assert [slot.value(params) for slot in slots] == ["1", 2, [str(UUID(int=3)), None]]


def test_a_cast_to_double_precision_is_read_whole() -> None:
    assert numbered("%(a)s::double precision, %(b)s::double precision[]")[0] == (
        "$1::text::double precision, $2::text[]::double precision[]"
    )


def test_a_name_used_with_a_cast_and_without_goes_twice() -> None:
    assert numbered("%(a)s::int + %(a)s")[0] == "$1::text::int + $2"


def test_sqlalchemy_gives_the_postgres_text_back_with_its_own_placeholders() -> None:
    clause, slots = colon_binds(POSTGRES)
    compiled = str(text(clause).compile(dialect=asyncpg.dialect()))  # type: ignore[no-untyped-call]
    assert compiled == numbered(POSTGRES)[0]
    assert [slot.name for slot in slots.values()] == ["a", "b", "c"]


def test_sqlalchemy_gives_the_sqlite_text_back_with_its_own_placeholders() -> None:
    compiled = str(text(lite_colon_binds(LITE)).compile(dialect=sqlite.dialect()))
    assert compiled == LITE.replace("select :a", "select ?").replace(", :b)", ", ?)").replace("/ :a", "/ ?")


def test_django_gives_the_sqlite_text_back_after_formatting() -> None:
    assert lite_pyformat(LITE) % {"a": ":a", "b": ":b"} == LITE


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("x", "x"),
        (b'{"a":1}', '{"a":1}'),
        (True, "true"),
        (1, "1"),
        (0.1, "0.1"),
        (datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2024-01-02T03:04:05.000006+00:00"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ],
)
def test_a_value_as_postgres_reads_it_from_text(value: object, expected: str | None) -> None:
    assert as_text(value) == expected
