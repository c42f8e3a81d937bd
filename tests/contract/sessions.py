"""Short names for what sessions of PostgreSQL do in the interleaving tests."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from carrick.testing.interleaving import Session

CLAIM = "select id from carrick.claim(%s, %s, %s, null, 60, null, %s)"
PUT = "select id, created from carrick.put(%s, 'e', %s::json, key => %s, group_key => %s)"
TOKEN_A, TOKEN_B = UUID(int=0xA), UUID(int=0xB)

Open = Callable[[], Session]
"""Opens one more session to the test's database."""

GROUPED = pytest.mark.parametrize("mode", ["ordered", "coalesce"])


def channel(session: Session, name: str, options: str = "{}") -> None:
    session.run("select carrick.declare_channel(%s, %s)", name, options)


def put(session: Session, name: str, *, payload: str = "1", key: str | None = None, group: str | None = None) -> UUID:
    entry_id: UUID = session.run(PUT, name, payload, key, group)[0][0]
    return entry_id


def claim(session: Session, name: str, token: UUID, rows: int = 100) -> list[UUID]:
    return [row[0] for row in session.run(CLAIM, name, "w", rows, token)]


def deliver(session: Session, token: UUID) -> int:
    return len(session.run("select * from carrick.finish_all(%s)", token))


def states(session: Session, *entry_ids: UUID) -> list[str]:
    found = dict(session.run("select id, state from carrick.entry where id = any(%s)", list(entry_ids)))
    return [found[entry_id] for entry_id in entry_ids]
