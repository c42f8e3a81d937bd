"""The search for secrets finds them in every form and place: otherwise finding none would mean nothing."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.osm import ROBIN, simulated
from tests.secrets_seen import Secrets, in_folder, in_postgres

TOKEN = "osm-a-0123456789/+abcdef"


@pytest.fixture
def secrets() -> Secrets:
    secrets = Secrets()
    secrets.add("token", TOKEN)
    return secrets


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (f'{{"token": "{TOKEN}"}}', "as it is"),
        (TOKEN.encode(), "as it is"),
        (base64.b64encode(TOKEN.encode()), "in base64"),
        (TOKEN.encode().hex(), "in hexadecimal digits"),
        ("?code=osm-a-0123456789%2F%2Babcdef", "in an address"),
    ],
)
def test_a_secret_is_found_in_every_form_and_not_shown(secrets: Secrets, content: str | bytes, form: str) -> None:
    assert secrets.seen({"log": content, "another log": "nothing"}) == [f"token 0 is in log, {form}"]
    with pytest.raises(AssertionError):
        secrets.assert_unseen({"log": content})


def test_nothing_is_found_where_nothing_is(secrets: Secrets) -> None:
    secrets.assert_unseen({"log": "osm-a-0123456789 and others", "empty": ""})


def test_a_search_for_nothing_or_through_nothing_fails(secrets: Secrets) -> None:
    with pytest.raises(AssertionError, match="no secret"):
        Secrets().assert_unseen({"log": "x"})
    with pytest.raises(AssertionError, match="nothing to look through"):
        secrets.assert_unseen({"log": ""})
    with pytest.raises(ValueError, match="by chance"):
        secrets.add("pin", "1234")


def test_a_secret_is_found_in_what_sqlite_has_not_written_back_yet(secrets: Secrets, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "some.db")) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table t (x blob)")
        connection.execute("insert into t values (?)", (TOKEN.encode(),))
        connection.commit()
        assert secrets.seen(in_folder(tmp_path)) == ["token 0 is in some.db-wal, as it is"]


def test_a_secret_is_found_in_any_kind_of_column_of_postgresql(secrets: Secrets, newest_postgres_dsn: str) -> None:
    with psycopg.connect(newest_postgres_dsn) as connection:
        connection.execute("create table t (a text, b bytea, c jsonb)")
        for row in ((TOKEN, None, None), (None, TOKEN.encode(), None), (None, None, f'["{TOKEN}"]')):
            connection.execute("truncate t")
            connection.execute("insert into t values (%s, %s, %s)", row)
            connection.commit()
            assert secrets.seen(in_postgres(newest_postgres_dsn)) == ["token 0 is in table public.t, as it is"]


def test_the_tokens_of_the_simulator_are_known(tmp_path: Path) -> None:
    async def issued() -> str:
        async with simulated(tmp_path / "osm.json") as osm:
            return await osm.token(ROBIN)

    token = asyncio.run(issued())
    secrets = Secrets()
    secrets.add_osm(tmp_path / "osm.json")
    assert len(secrets) == 2
    assert secrets.seen({"log": token}) == ["OSM access token 0 is in log, as it is"]
