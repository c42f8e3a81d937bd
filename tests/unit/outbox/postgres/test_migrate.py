"""Creating and upgrading the PostgreSQL schema."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.synchronize import Barrier
from typing import Any

import psycopg
import pytest

from carrick.errors import InvalidInput, SchemaTooNew
from carrick.outbox.postgres.migrate import COMPAT, ENGINE, migrate, pending, script
from carrick.outbox.transitions import CRASHES_UNTIL_DEAD, TRANSITIONS
from tests.many import many
from tests.pooler import pooled, pooler_names
from tests.postgres_server import drop_database, fresh_database

ALL = [ENGINE.title(migration) for migration in ENGINE.steps]


ENDED = """
insert into carrick.ended (seq, id, channel, state, ended_at, attempt_count) values (1, gen_random_uuid(), 'c', """

OWN_ADVISORY_LOCKS = """
select l.pid from pg_locks l join pg_database d on d.oid = l.database
 where l.locktype = 'advisory' and d.datname = current_database()
"""


@pytest.fixture
def empty_dsn(postgres_version: int) -> Iterator[str]:
    dsn = fresh_database(postgres_version, migrated=False)
    yield dsn
    drop_database(postgres_version, dsn)


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def _start_replica(barrier: Barrier, dsn: str, applied: Any) -> None:
    barrier.wait()
    applied.put(migrate(dsn))


def test_ten_replicas_that_start_at_once_apply_every_file_once(empty_dsn: str) -> None:
    context = many()
    barrier, applied = context.Barrier(10), context.SimpleQueue()
    replicas = [context.Process(target=_start_replica, args=(barrier, empty_dsn, applied)) for _ in range(10)]
    for replica in replicas:
        replica.start()
    answers = [applied.get() for _ in replicas]
    for replica in replicas:
        replica.join()
    assert sorted(title for applied in answers for title in applied) == sorted(ALL)
    assert rows(empty_dsn, "select count(*) from carrick.migration") == [(len(ALL),)]


def test_migrating_again_changes_nothing(empty_dsn: str) -> None:
    assert migrate(empty_dsn) == ALL
    assert migrate(empty_dsn) == []


@pytest.mark.parametrize("pooler", pooler_names())
def test_a_pooler_in_transaction_mode_may_stand_between(empty_dsn: str, pooler: str) -> None:
    with pooled(pooler, empty_dsn) as behind:
        assert migrate(behind) == ALL
        assert rows(empty_dsn, OWN_ADVISORY_LOCKS) == []
        assert migrate(behind) == []


def test_pending_lists_what_is_missing_and_changes_nothing(empty_dsn: str) -> None:
    assert pending(empty_dsn) == ALL
    assert rows(empty_dsn, "select count(*) from pg_namespace where nspname = 'carrick'") == [(0,)]
    migrate(empty_dsn)
    assert pending(empty_dsn) == []
    assert len(pending(empty_dsn, [ENGINE, COMPAT])) == len(COMPAT.steps)


def test_a_newer_schema_is_left_alone(empty_dsn: str) -> None:
    migrate(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute("insert into carrick.migration (part, number, name) values ('engine', 9999, 'future')")
    with pytest.raises(SchemaTooNew, match="upgrade Carrick"):
        migrate(empty_dsn)


def test_a_migration_that_fails_leaves_the_schema_as_it_was(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(
            "create schema app; "
            "create function app.outbox_mark_delivered(uuid, uuid[]) returns text language sql as 'select null::text'"
        )
    with pytest.raises(InvalidInput, match="exists already"):
        migrate(empty_dsn)
    left = pending(empty_dsn)
    assert left == ALL[len(ALL) - len(left) :]
    assert left


def test_the_script_makes_the_same_schema(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        connection.execute(script().encode())
    assert pending(empty_dsn) == []
    assert migrate(empty_dsn) == []


def test_the_outcomes_in_the_database_are_those_in_the_code(postgres_dsn: str) -> None:
    stored = rows(postgres_dsn, "select outcome, next_state, spends_attempt, freezes from carrick.transition")
    assert {row[0]: row[1:] for row in stored} == {str(kind): tuple(t) for kind, t in TRANSITIONS.items()}


def test_the_number_of_crashes_in_the_functions_is_the_one_in_the_code(postgres_dsn: str) -> None:
    source = rows(postgres_dsn, "select prosrc from pg_proc where proname = '_return_expired'")[0][0]
    assert f"crash_count >= {CRASHES_UNTIL_DEAD}" in source


@pytest.mark.parametrize(
    "statement",
    [
        ENDED + "'gone', now(), 1)",
        ENDED + "'dead', now(), 1)",
        "insert into carrick.channel (name, mode) values ('c', 'fast')",
        "insert into carrick.gate (channel, scope, closed_until, reason) values ('c', 'user:x', now(), '')",
        "insert into carrick.transition values ('lost', 'nowhere', true, false)",
    ],
)
def test_the_database_itself_refuses_states_that_do_not_exist(postgres_dsn: str, statement: str) -> None:
    with psycopg.connect(postgres_dsn) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(statement.encode())
