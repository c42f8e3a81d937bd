"""The inbox on PostgreSQL: a batch is one call of `carrick.ingest_batch`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from carrick.ingest.auth import REMEMBER_SECONDS
from carrick.ingest.batch import Arrival, Checked
from carrick.ingest.postgres.arrays import text_array, time_array, uuid_array
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
        params = [*_columns(batch), signature, *self._onward(batch)]
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

    def _onward(self, batch: Checked) -> Sequence[bytes | None]:
        """What the entries of the relay's channel need beside the events themselves."""
        if not self._relay_channel:
            return [None] * 5
        span_id = os.urandom(8).hex()
        entries = [onward(arrival, batch.edge_id, span_id) for arrival in batch.arrivals]
        return (
            self._relay_channel.encode(),
            uuid_array(new_ids(datetime.now(UTC), len(entries))),
            _texts([entry.group for entry in entries]),
            text_array([entry.headers for entry in entries]),
            _texts([entry.traceparent for entry in entries]),
        )

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection:
            return _asked(connection, name, params)


def _take(connection: Connection, params: Sequence[bytes | None]) -> tuple[int, list[str] | None]:
    """How many events were new, and the ids of those that were, None for all. Raises Replayed.

    Past the driver's cursor, whose way with fourteen parameters costs more than storing ten events.
    """
    formats = [Format.BINARY] * len(params)
    result = connection.pgconn.exec_params(query(PACKAGE, "take").encode(), params, param_formats=formats)
    if result.status != ExecStatus.TUPLES_OK:
        raise _failure(connection, result)
    replayed, stored, new_ids = (result.get_value(0, column) for column in range(3))
    if replayed == b"t":
        raise Replayed
    return int(stored or 0), None if new_ids is None else msgspec.json.decode(new_ids, type=list[str])


def _failure(connection: Connection, result: PGresult) -> psycopg.Error:
    if connection.closed:
        return psycopg.OperationalError(result.get_error_message())
    return psycopg.errors.error_from_result(result)


def _new(batch: Checked, new_ids: list[str] | None) -> Sequence[Arrival]:
    if new_ids is None:
        return batch.arrivals
    known = set(new_ids)
    return [arrival for arrival in batch.arrivals if arrival.event_id in known]


def _asked(connection: Connection, name: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor(binary=True) as cursor:
        cursor.execute(query(PACKAGE, name).encode(), params)
        return cursor.fetchall()


def _columns(batch: Checked) -> Sequence[bytes | None]:
    """Whose events they are, and the events field by field."""
    arrivals = batch.arrivals
    return (
        batch.tenant_id.encode(),
        None if batch.edge_id is None else batch.edge_id.encode(),
        _texts([arrival.event_id for arrival in arrivals]),
        _texts([arrival.event_type for arrival in arrivals]),
        text_array([arrival.payload for arrival in arrivals]),
        time_array([arrival.occurred_at for arrival in arrivals]),
        _texts([arrival.trace_id for arrival in arrivals]),
        text_array([arrival.extra for arrival in arrivals]),
    )


def _texts(values: Sequence[str | None]) -> bytes:
    return text_array([None if value is None else value.encode() for value in values])
