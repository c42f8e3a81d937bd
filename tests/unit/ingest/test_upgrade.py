"""An inbox of an earlier release: its events stay, and are still known."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from carrick import wiring
from carrick.ingest.sqlite.store import PART
from carrick.outbox.sqlite.migrate import migrate, statements
from tests.batches import checked, numbered, take

STORED = """
insert into carrick_inbox (tenant_id, event_id, event_type, received_at, payload)
select 'farm-1', 'e-' || value, 'reading.taken', value, '{"n": 1}' from json_each('[0, 1, 2]')
"""


def test_events_that_were_stored_with_checks_stay_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "inbox.db"
    migrate(path)
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements(PART.steps[0].sql):
            file.execute(statement)
        file.execute(STORED)
        file.execute("insert into carrick_migration (part, number, name) values ('ingest', 1, 'inbox')")
    assert "ingest/0002_unchecked" in wiring.migrate(f"sqlite:///{path}")
    with closing(wiring.open_inbox(f"sqlite:///{path}")) as inbox:
        assert [seen.event_id for seen in inbox.recent("farm-1", 9)] == ["e-2", "e-1", "e-0"]
        taken = take(inbox, checked(*numbered(4)))
    assert (taken.accepted, taken.duplicated) == (1, 3)
