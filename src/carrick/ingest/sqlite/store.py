"""The inbox in an SQLite file: batches that come together are one transaction, and mostly one statement or two.

One that fails, or holds what is known already, is taken apart from the others: what became of it is its own affair.
"""

from __future__ import annotations

import logging
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from carrick.entry import NewEntry
from carrick.errors import KeyReused
from carrick.ingest.auth import REMEMBER_SECONDS
from carrick.ingest.batch import Arrival, Checked
from carrick.ingest.problems import Replayed
from carrick.ingest.relaying import onward
from carrick.ingest.store import Arrived, Groups, Offer, Outcome, Seen, Taken, Watcher, whole
from carrick.outbox.migration import Part
from carrick.outbox.sqlite.database import Database, run
from carrick.outbox.sqlite.database import rows as engine_rows
from carrick.outbox.sqlite.failures import map_errors
from carrick.outbox.sqlite.group_commit import NO_PUT_CAN_BE_KEPT
from carrick.outbox.sqlite.migrate import check_schema
from carrick.outbox.sqlite.moment import moment, moment_or_none, span
from carrick.outbox.sqlite.putting import put_many_steps, put_steps
from carrick.outbox.statement import query

log = logging.getLogger("carrick.ingest")

T = TypeVar("T")
R = TypeVar("R")

PACKAGE = "carrick.ingest.sqlite"
PART = Part("ingest", PACKAGE)
DAY_SECONDS = 86_400
AT_ONCE = (2000, 500, 100)
"""Events that one statement stores; what is left over has one of its own. The driver gives up the interpreter in each
call, and beside a busy event loop waits long to get it back: so calls should be few, of statements that it knows."""
ROW = re.compile(r"\(\?1,.*\)")
"""What is repeated for each event in the statement that stores them."""

Values = list[str | int | None]
"""What events have each for itself, one event behind the other."""


class _Alike(NamedTuple):
    """What events must have in common to be stored by one statement. `fields`: how many values each has for itself."""

    tenant_id: str
    edge_id: str | None
    query: str
    fields: int


class _Ready(NamedTuple):
    """A batch with all that could be prepared before the file is locked."""

    offer: Offer
    alike: _Alike
    values: Values
    entries: dict[str, NewEntry]
    """What the relay's channel gets for each event."""
    arrived: Arrived | None


class _NotNew(Exception):
    """Some events of several batches are known already."""


class SqliteInbox:
    """The inbox in one file. `relay_channel`: where new events are put, nowhere when it is empty."""

    groups = Groups(at_once=2, events=10_000)  # one writes, the next is made ready; the larger, the fewer commits

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
        batches = [self._ready(offer) for offer in offers]
        with self._database.write() as connection:
            if len(batches) == 1:
                return [self._taken(connection, batches[0])]
            if all(batch.arrived is None for batch in batches) and self._takes_new(connection, batches):
                return [whole(batch.offer) for batch in batches]
            return [self._apart(connection, self._taken, batch) for batch in batches]

    def _takes_new(self, connection: sqlite3.Connection, batches: Sequence[_Ready]) -> bool:
        """Store batches of nothing but new events. False when one has others, or a fault: then nothing is stored."""
        outcome = self._apart(connection, self._all_new, batches)
        if isinstance(outcome, Exception) and not isinstance(outcome, _NotNew | Replayed):
            log.info("ingest.apart", extra={"batches": len(batches), "said": str(outcome)})
        return outcome is True

    def _apart(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection, T], R], given: T
    ) -> R | Exception:
        """What the work answers, or how it has failed; then it is undone alone. Raises what nothing could survive."""
        connection.execute("savepoint apart")
        try:
            with map_errors(self._database.path):
                outcome: R | Exception = work(connection, given)
        except NO_PUT_CAN_BE_KEPT:
            raise
        except Exception as error:  # noqa: BLE001  told to the one whose fault it is
            outcome = error
            connection.execute("rollback to apart")
        connection.execute("release apart")
        return outcome

    def _all_new(self, connection: sqlite3.Connection, batches: Sequence[_Ready]) -> bool:
        """Store batches of nothing but new events, as most are. Raises _NotNew, or what is wrong with one of them."""
        for batch in batches:
            _remember(connection, batch.offer.signature)
        together: dict[_Alike, Values] = {}
        for batch in batches:
            together.setdefault(batch.alike, []).extend(batch.values)
        now = _now(connection)
        for alike, values in together.items():
            if _store(connection, alike, values, now) < len(values) // alike.fields:
                raise _NotNew
        if self._relay_channel:
            entries = [entry for batch in batches for entry in batch.entries.values()]
            run(connection, put_many_steps(entries, can_bulk=True))
        return True

    def _taken(self, connection: sqlite3.Connection, batch: _Ready) -> Taken:
        _remember(connection, batch.offer.signature)
        new = _stored(connection, batch)
        if self._relay_channel:
            _put(connection, [batch.entries[arrival.event_id] for arrival in new])
        checked = batch.offer.batch
        if new and batch.arrived is not None:
            batch.arrived(connection, checked.tenant_id, new)
        return Taken(len(new), len(checked.arrivals) - len(new) + checked.repeated)

    def _ready(self, offer: Offer) -> _Ready:
        batch = offer.batch
        arrived = None if self._watcher is None else self._watcher(batch.arrivals)
        return _Ready(offer, *_rows_of(batch), self._entries(batch), arrived)

    def once(self, signature: bytes, work: Callable[[Any], R]) -> R:
        with self._database.write() as connection:
            _remember(connection, signature)
            return work(connection)

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
            params = {"before": before, "max_rows": max_rows}
            removed = connection.execute(query(PACKAGE, "prune"), params).rowcount
            _rows(connection, "prune_intakes", before=before)
            return removed

    def _entries(self, batch: Checked) -> dict[str, NewEntry]:
        """What the relay's channel gets for each event."""
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


def _remember(connection: sqlite3.Connection, signature: bytes | None) -> None:
    """Remember the signature, if there is one. Raises Replayed."""
    if signature is not None and not _rows(connection, "remember_signature", signature=signature):
        raise Replayed


def _stored(connection: sqlite3.Connection, batch: _Ready) -> Sequence[Arrival]:
    """Store the events that are not there yet, and say which. Nobody else can store one meanwhile."""
    arrivals = batch.offer.batch.arrivals
    count = _store(connection, batch.alike, batch.values, _now(connection))
    if count == len(arrivals):
        return arrivals
    new = {event_id for (event_id,) in _rows(connection, "newest", count=count)}
    return [arrival for arrival in arrivals if arrival.event_id in new]


def _store(connection: sqlite3.Connection, alike: _Alike, values: Values, now: int) -> int:
    """Store the events that are not there yet, in as few calls as can be, and note that they came at once; how many."""
    stored = at = 0
    while events := (len(values) - at) // alike.fields:
        count = next((size for size in AT_ONCE if size <= events), events)
        end = at + count * alike.fields
        params = [alike.tenant_id, alike.edge_id, now, *values[at:end]]
        stored += connection.execute(_statement(alike.query, count), params).rowcount
        at = end
    if stored:
        _rows(connection, "note_intake", tenant_id=alike.tenant_id, received_at=now, stored=stored)
    return stored


@cache
def _statement(name: str, count: int) -> str:
    """The statement that stores so many events."""
    return ROW.sub(lambda row: ", ".join([row[0]] * count), query(PACKAGE, name))


def _rows_of(batch: Checked) -> tuple[_Alike, Values]:
    """The events of a batch as they are stored; put together column by column, which is much faster. The driver takes
    longer to bind a null than a text: where no event has a trace or further fields, nothing is bound for them."""
    arrivals = batch.arrivals
    columns: list[Sequence[str | int | None]] = [
        arrivals.event_ids,
        arrivals.event_types,
        arrivals.occurred_at,
        [payload.decode() for payload in arrivals.payloads],
    ]
    is_plain = {*arrivals.trace_ids, *arrivals.extras} <= {None}
    if not is_plain:
        columns += [arrivals.trace_ids, [None if extra is None else extra.decode() for extra in arrivals.extras]]
    values: Values = [None] * (len(columns) * len(arrivals))
    for place, column in enumerate(columns):
        values[place :: len(columns)] = column
    return _Alike(batch.tenant_id, batch.edge_id, "take_plain" if is_plain else "take", len(columns)), values


def _put(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> None:
    """Relay new events on. One whose key the outbox still knows went out before, and does not go again."""
    try:
        run(connection, put_many_steps(entries, can_bulk=True))
    except KeyReused:
        for entry in _unknown(connection, entries):
            run(connection, put_steps(entry))


def _unknown(connection: sqlite3.Connection, entries: Sequence[NewEntry]) -> Iterator[NewEntry]:
    keys = msgspec.json.encode([(entry.channel, entry.tenant_id, entry.key) for entry in entries]).decode()
    known = {place for (place,) in _rows(connection, "known_keys", keys=keys)}
    return (entry for place, entry in enumerate(entries) if place not in known)


def _now(connection: sqlite3.Connection) -> int:
    return int(engine_rows(connection, "now")[0][0])


def _rows(connection: sqlite3.Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    return connection.execute(query(PACKAGE, name), params).fetchall()
