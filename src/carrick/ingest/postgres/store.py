"""The inbox on PostgreSQL: a batch is one call of `carrick.ingest_batch`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from carrick.ingest.auth import REMEMBER_SECONDS
from carrick.ingest.batch import Arrival, Checked
from carrick.ingest.postgres.arrays import TextArray, TimeArray, UuidArray, register
from carrick.ingest.problems import Replayed
from carrick.ingest.relaying import onward
from carrick.ingest.store import Seen, Taken, Watcher
from carrick.outbox.ids import new_ids
from carrick.outbox.migration import Part
from carrick.outbox.postgres.connections import Connection, Connections
from carrick.outbox.postgres.migrate import check_schema
from carrick.outbox.statement import query

PACKAGE = "carrick.ingest.postgres"
PART = Part("ingest", PACKAGE)


class PostgresInbox:
    """The inbox in one PostgreSQL database. `relay_channel`: where new events are put, nowhere when it is empty."""

    def __init__(self, dsn: str, *, relay_channel: str = "", watcher: Watcher | None = None) -> None:
        self._connections = Connections(dsn)
        self._relay_channel = relay_channel
        self._watcher = watcher

    def close(self) -> None:
        self._connections.close()

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            check_schema(connection, PART)

    def take(self, batch: Checked, signature: bytes | None) -> Taken:
        params = _columns(batch) | self._onward(batch)
        params |= {"tenant_id": batch.tenant_id, "edge_id": batch.edge_id, "signature": signature}
        arrived = None if self._watcher is None else self._watcher(batch.arrivals)
        with self._connections.connection() as connection:
            if arrived is None:
                stored, _ = _take(connection, params)
            else:
                with connection.transaction():
                    stored, new_ids = _take(connection, params)
                    if stored:
                        arrived(connection, batch.tenant_id, _new(batch, new_ids))
        return Taken(stored, len(batch.arrivals) - stored + batch.repeated)

    def recent(self, tenant_id: str, limit: int) -> list[Seen]:
        fields = Seen.__struct_fields__
        rows = self._rows("recent", tenant_id=tenant_id, limit=limit)
        return [Seen(**dict(zip(fields, row, strict=True))) for row in rows]

    def prune(self, retention_days: float, *, max_rows: int) -> int:
        rows = self._rows("prune", days=retention_days, max_rows=max_rows, signature_seconds=REMEMBER_SECONDS)
        return int(rows[0][0])

    def _onward(self, batch: Checked) -> dict[str, Any]:
        """What the entries of the relay's channel need beside the events themselves."""
        if not self._relay_channel:
            return {"channel": None, "id": None, "group_key": None, "headers": None, "traceparent": None}
        span_id = os.urandom(8).hex()
        entries = [onward(arrival, batch.edge_id, span_id) for arrival in batch.arrivals]
        return {
            "channel": self._relay_channel,
            "id": UuidArray(new_ids(datetime.now(UTC), len(entries))),
            "group_key": _texts([entry.group for entry in entries]),
            "headers": TextArray([entry.headers for entry in entries]),
            "traceparent": _texts([entry.traceparent for entry in entries]),
        }

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection:
            return _asked(connection, name, params)


def _take(connection: Connection, params: dict[str, Any]) -> tuple[int, list[str] | None]:
    """How many events were new, and the ids of those that were, None for all. Raises Replayed."""
    ((replayed, stored, new_ids),) = _asked(connection, "take", params)
    if replayed:
        raise Replayed
    return stored, new_ids


def _new(batch: Checked, new_ids: list[str] | None) -> Sequence[Arrival]:
    if new_ids is None:
        return batch.arrivals
    known = set(new_ids)
    return [arrival for arrival in batch.arrivals if arrival.event_id in known]


def _asked(connection: Connection, name: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    register(connection)
    with connection.cursor(binary=True) as cursor:
        cursor.execute(query(PACKAGE, name).encode(), params)
        return cursor.fetchall()


def _columns(batch: Checked) -> dict[str, Any]:
    """The events, field by field."""
    arrivals = batch.arrivals
    return {
        "event_id": _texts([arrival.event_id for arrival in arrivals]),
        "event_type": _texts([arrival.event_type for arrival in arrivals]),
        "payload": TextArray([arrival.payload for arrival in arrivals]),
        "occurred_at": TimeArray([arrival.occurred_at for arrival in arrivals]),
        "trace_id": _texts([arrival.trace_id for arrival in arrivals]),
        "extra": TextArray([arrival.extra for arrival in arrivals]),
    }


def _texts(values: Sequence[str | None]) -> TextArray:
    return TextArray([None if value is None else value.encode() for value in values])
