"""The inbox in an SQLite file: batches that come together are one transaction; one that fails is undone alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from carrick.entry import NewEntry
from carrick.errors import KeyReused
from carrick.ingest.auth import REMEMBER_SECONDS
from carrick.ingest.batch import Arrival, Checked
from carrick.ingest.problems import Replayed
from carrick.ingest.relaying import onward
from carrick.ingest.store import Offer, Outcome, Seen, Taken, Watcher
from carrick.outbox.migration import Part
from carrick.outbox.sqlite.database import Database, run
from carrick.outbox.sqlite.database import rows as engine_rows
from carrick.outbox.sqlite.failures import map_errors
from carrick.outbox.sqlite.group_commit import NO_PUT_CAN_BE_KEPT
from carrick.outbox.sqlite.migrate import check_schema
from carrick.outbox.sqlite.moment import moment, moment_or_none, span
from carrick.outbox.sqlite.putting import put_many_steps, put_steps
from carrick.outbox.statement import query

PACKAGE = "carrick.ingest.sqlite"
PART = Part("ingest", PACKAGE)
DAY_SECONDS = 86_400
AT_ONCE = 100
"""Events that one statement stores."""
ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
WIDTH = ROW.count("?")

Work = Callable[[sqlite3.Connection], Taken]
"""What a batch does in the transaction."""


class SqliteInbox:
    """The inbox in one file. `relay_channel`: where new events are put, nowhere when it is empty."""

    def __init__(self, path: str | Path, *, relay_channel: str = "", watcher: Watcher | None = None) -> None:
        self._database = Database(path)
        self._relay_channel = relay_channel
        self._watcher = watcher

    def close(self) -> None:
        self._database.close()

    def check_schema(self) -> None:
        with self._database.read() as connection:
            check_schema(self._database.path, connection, PART)

    def take_all(self, offers: Sequence[Offer]) -> list[Outcome]:
        works = [self._work(offer) for offer in offers]
        with self._database.write() as connection:
            if len(works) == 1:
                return [works[0](connection)]
            return [self._apart(connection, work) for work in works]

    def _apart(self, connection: sqlite3.Connection, work: Work) -> Outcome:
        """What became of one of several batches; undone alone when it has failed. Raises what none could survive."""
        connection.execute("savepoint batch")
        try:
            with map_errors(self._database.path):
                outcome: Outcome = work(connection)
        except NO_PUT_CAN_BE_KEPT:
            raise
        except Exception as error:  # noqa: BLE001  told to the one whose fault it is
            outcome = error
            connection.execute("rollback to batch")
        connection.execute("release batch")
        return outcome

    def _work(self, offer: Offer) -> Work:
        """What a batch does in the transaction; all that can be is prepared before the file is locked."""
        batch = offer.batch
        entries = self._entries(batch)
        arrived = None if self._watcher is None else self._watcher(batch.arrivals)

        def work(connection: sqlite3.Connection) -> Taken:
            if offer.signature is not None and not _rows(connection, "remember_signature", signature=offer.signature):
                raise Replayed
            new = _stored(connection, batch)
            if self._relay_channel:
                _put(connection, [entries[arrival.event_id] for arrival in new])
            if new and arrived is not None:
                arrived(connection, batch.tenant_id, new)
            return Taken(len(new), len(batch.arrivals) - len(new) + batch.repeated)

        return work

    def recent(self, tenant_id: str, limit: int) -> list[Seen]:
        with self._database.read() as connection:
            return [
                Seen(
                    event_id=event_id,
                    event_type=event_type,
                    edge_id=edge_id,
                    occurred_at=moment_or_none(occurred_at),
                    received_at=moment(received_at),
                )
                for event_id, event_type, edge_id, occurred_at, received_at in _rows(
                    connection, "recent", tenant_id=tenant_id, limit=limit
                )
            ]

    def prune(self, retention_days: float, *, max_rows: int) -> int:
        with self._database.write() as connection:
            now = _now(connection)
            _rows(connection, "prune_signatures", before=now - span(REMEMBER_SECONDS))
            before = now - span(retention_days * DAY_SECONDS)
            return connection.execute(query(PACKAGE, "prune"), {"before": before, "max_rows": max_rows}).rowcount

    def _entries(self, batch: Checked) -> dict[str, NewEntry]:
        """What the relay's channel gets for each event; made before the file is locked."""
        if not self._relay_channel:
            return {}
        span_id = os.urandom(8).hex()
        return {arrival.event_id: self._entry(batch, arrival, span_id) for arrival in batch.arrivals}

    def _entry(self, batch: Checked, arrival: Arrival, span_id: str) -> NewEntry:
        more = onward(arrival, batch.edge_id, span_id)
        return NewEntry(
            channel=self._relay_channel,
            event_type=arrival.event_type,
            payload=arrival.payload,
            key=arrival.event_id,
            tenant_id=batch.tenant_id,
            group_key=more.group,
            headers=more.headers,
            traceparent=more.traceparent,
            occurred_at=moment_or_none(arrival.occurred_at),
        )


def _stored(connection: sqlite3.Connection, batch: Checked) -> Sequence[Arrival]:
    """Store the events that are not there yet, and say which. Nobody else can store one meanwhile."""
    values = _values(batch, _now(connection))
    count = 0
    for at in range(0, len(values), AT_ONCE * WIDTH):
        some = values[at : at + AT_ONCE * WIDTH]
        count += connection.execute(_take(len(some) // WIDTH), some).rowcount
    if count == len(batch.arrivals):
        return batch.arrivals
    new = {event_id for (event_id,) in _rows(connection, "newest", count=count)}
    return [arrival for arrival in batch.arrivals if arrival.event_id in new]


@cache
def _take(count: int) -> str:
    """The statement that stores so many events. The driver gives up the interpreter in each call, and waits for it."""
    before, row, after = query(PACKAGE, "take").partition(ROW)
    return before + ", ".join([row] * count) + after


def _values(batch: Checked, received_at: int) -> list[str | int | None]:
    """The rows of the events, one behind the other; put together column by column, which is much faster."""
    arrivals = batch.arrivals
    columns: tuple[Sequence[str | int | None], ...] = (
        [batch.tenant_id] * len(arrivals),
        [arrival.event_id for arrival in arrivals],
        [arrival.event_type for arrival in arrivals],
        [batch.edge_id] * len(arrivals),
        [arrival.trace_id for arrival in arrivals],
        [arrival.occurred_at for arrival in arrivals],
        [received_at] * len(arrivals),
        [None if arrival.extra is None else arrival.extra.decode() for arrival in arrivals],
        [arrival.payload.decode() for arrival in arrivals],
    )
    values: list[str | int | None] = [None] * (WIDTH * len(arrivals))
    for place, column in enumerate(columns):
        values[place::WIDTH] = column
    return values


def _put(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> None:
    """Relay new events on. One whose key the outbox still knows went out before, and does not go again."""
    try:
        run(connection, put_many_steps(entries))
    except KeyReused:
        for entry in _unknown(connection, entries):
            run(connection, put_steps(entry))


def _unknown(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> Iterator[NewEntry]:
    keys = msgspec.json.encode([(entry.channel, entry.tenant_id, entry.key) for entry in entries]).decode()
    known = {place for (place,) in engine_rows(connection, "known_keys", keys=keys)}
    return (entry for place, entry in enumerate(entries) if place not in known)


def _now(connection: sqlite3.Connection) -> int:
    return int(engine_rows(connection, "now")[0][0])


def _rows(connection: sqlite3.Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    return connection.execute(query(PACKAGE, name), params).fetchall()
