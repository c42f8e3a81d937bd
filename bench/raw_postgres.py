"""The same work in plain SQL: one table with a state column, claimed with SKIP LOCKED, finished under its token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg

Connection = psycopg.Connection[tuple[Any, ...]]

TABLE = """
drop schema if exists raw cascade;
create schema raw;
create table raw.outbox (
  id uuid primary key default carrick.uuid7(), channel text not null, tenant_id text not null default '',
  event_type text not null, payload json not null, state text not null default 'pending',
  created_at timestamptz not null default now(), next_attempt_at timestamptz not null default now(),
  attempt_count int not null default 0, token uuid, claimed_by text, lease_expires_at timestamptz,
  delivered_at timestamptz);
create index on raw.outbox (channel, created_at) where state = 'pending';
"""

INSERT = "insert into raw.outbox (channel, event_type, payload) values (%s, %s, %s)"
COPY = "copy raw.outbox (channel, event_type, payload) from stdin"

CLAIM = """
with due as (
  select id from raw.outbox where channel = 'bench' and state = 'pending' and next_attempt_at <= now()
   order by created_at limit %s for update skip locked)
update raw.outbox o
   set state = 'claimed', token = %s, claimed_by = 'bench', lease_expires_at = now() + interval '120 seconds'
  from due where o.id = due.id
returning o.id, o.channel, o.tenant_id, o.event_type, o.payload::text, o.created_at, o.attempt_count
"""

FINISH = """
update raw.outbox set state = 'delivered', delivered_at = now(), token = null, attempt_count = attempt_count + 1
 where id = any(%s) and token = %s
"""


def create(connection: Connection) -> None:
    connection.execute(TABLE)


def put_one_by_one(connection: Connection, payload: str, count: int) -> int:
    for _ in range(count):
        connection.execute(INSERT, ("bench", "bench.event", payload))
    return count


def put_in_bulk(connection: Connection, payload: str, count: int, batch: int) -> int:
    for _ in range(count // batch):
        put_all(connection, [payload] * batch)
    return count


def put_all(connection: Connection, payloads: Sequence[str]) -> None:
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for payload in payloads:
            copy.write_row(("bench", "bench.event", payload))


class Row(NamedTuple):
    """What was claimed, with the token that finishes it."""

    token: UUID
    id: UUID
    payload: str


def claim(connection: Connection, batch: int) -> list[Row]:
    token = uuid4()
    return [Row(token, row[0], row[4]) for row in connection.execute(CLAIM, (batch, token)).fetchall()]


def finish(connection: Connection, rows: Sequence[Row]) -> None:
    connection.execute(FINISH, ([row.id for row in rows], rows[0].token))


def drain(connection: Connection, batch: int) -> int:
    """Claim and finish until nothing is left; how many."""
    handled = 0
    while True:
        token = uuid4()
        rows = connection.execute(CLAIM, (batch, token)).fetchall()
        if not rows:
            return handled
        connection.execute(FINISH, ([row[0] for row in rows], token))
        handled += len(rows)
