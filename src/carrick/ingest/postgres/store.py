"""The inbox on PostgreSQL. Batches that come together are one call of `carrick._ingest_new` while all they hold is new;
else, and alone, each is one of `carrick.ingest_batch`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from carrick.errors import CarrickError, StoreUnavailable
from carrick.ingest.auth import REMEMBER_SECONDS
from carrick.ingest.batch import Arrival, Arrivals, Checked
from carrick.ingest.postgres.arrays import bytea_array, int_array, str_array, text_array, time_array, uuid_array
from carrick.ingest.problems import Replayed
from carrick.ingest.relaying import Onward, onward
from carrick.ingest.store import Arrived, Groups, Offer, Outcome, Seen, Taken, Watcher, whole
from carrick.outbox.ids import new_ids
from carrick.outbox.migration import Part
from carrick.outbox.postgres.connections import Connection, Connections
from carrick.outbox.postgres.migrate import check_schema
from carrick.outbox.statement import query

log = logging.getLogger("carrick.ingest")

T = TypeVar("T")

PACKAGE = "carrick.ingest.postgres"
PART = Part("ingest", PACKAGE)


class PostgresInbox:
    """The inbox in one PostgreSQL database. `relay_channel`: where new events are put, nowhere when it is empty."""

    groups = Groups(at_once=4, events=800)  # while some are written to disk, the server works for others

    def __init__(self, dsn: str, *, relay_channel: str = "", watcher: Watcher | None = None) -> None:
        self._connections = Connections(dsn)
        self._relay_channel = relay_channel
        self._watcher = watcher

    def close(self) -> None:
        self._connections.close()

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            check_schema(connection, PART)

    def take_all(self, offers: Sequence[Offer]) -> list[Outcome]:
        watched = [None if self._watcher is None else self._watcher(offer.batch.arrivals) for offer in offers]
        plain = [offer for offer, arrived in zip(offers, watched, strict=True) if arrived is None]
        are_taken = len(plain) > 1 and self._takes_new(plain)
        return [
            whole(offer) if are_taken and arrived is None else self._outcome(offer, arrived)
            for offer, arrived in zip(offers, watched, strict=True)
        ]

    def _takes_new(self, offers: Sequence[Offer]) -> bool:
        """Store batches of nothing but new events. False when one has others, or a fault: then nothing is stored."""
        ordered = sorted(offers, key=lambda offer: offer.batch.tenant_id)
        params = [*_together(ordered), *self._onward(ordered)]
        try:
            with self._connections.connection() as connection:
                return _called(connection, "take_new", params) == [b"t"]
        except StoreUnavailable:
            raise
        except CarrickError as error:
            log.info("ingest.apart", extra={"batches": len(offers), "said": str(error)})
            return False

    def _outcome(self, offer: Offer, arrived: Arrived | None) -> Outcome:
        try:
            return self._taken(offer, arrived)
        except Exception as error:  # noqa: BLE001  told to the one whose fault it is
            return error

    def _taken(self, offer: Offer, arrived: Arrived | None) -> Taken:
        batch = offer.batch
        params = [*_alone(offer), *self._onward([offer])]
        with self._connections.connection() as connection:
            if arrived is None:
                stored, _ = _take(connection, params)
            else:
                with connection.transaction():
                    stored, new_ids = _take(connection, params)
                    if stored:
                        arrived(connection, batch.tenant_id, _new(batch, new_ids))
        return Taken(stored, len(batch.arrivals) - stored + batch.repeated)

    def once(self, signature: bytes, work: Callable[[Any], T]) -> T:
        with self._connections.connection() as connection, connection.transaction():
            if not _asked(connection, "remember_signature", {"signature": signature}):
                raise Replayed
            return work(connection)

    def recent(self, tenant_id: str, limit: int) -> list[Seen]:
        fields = Seen.__struct_fields__
        rows = self._rows("recent", tenant_id=tenant_id, limit=limit)
        return [Seen(**dict(zip(fields, row, strict=True))) for row in rows]

    def prune(self, retention_days: float, *, max_rows: int) -> int:
        rows = self._rows("prune", days=retention_days, max_rows=max_rows, signature_seconds=REMEMBER_SECONDS)
        return int(rows[0][0])

    def _onward(self, offers: Sequence[Offer]) -> Sequence[bytes | None]:
        """What the entries of the relay's channel need beside the events themselves."""
        if not self._relay_channel:
            return [None] * 5
        entries = [entry for offer in offers for entry in _entries(offer.batch)]
        return (
            self._relay_channel.encode(),
            uuid_array(new_ids(datetime.now(UTC), len(entries))),
            _sparse(str_array, [entry.group for entry in entries]),
            text_array([entry.headers for entry in entries]),
            _sparse(str_array, [entry.traceparent for entry in entries]),
        )

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection:
            return _asked(connection, name, params)


def _entries(batch: Checked) -> list[Onward]:
    span_id = os.urandom(8).hex()
    return [onward(arrival, batch.edge_id, span_id) for arrival in batch.arrivals]


def _take(connection: Connection, params: Sequence[bytes | None]) -> tuple[int, list[str] | None]:
    """How many events were new, and the ids of those that were, None for all. Raises Replayed."""
    replayed, stored, new_ids = _called(connection, "take", params)
    if replayed == b"t":
        raise Replayed
    return int(stored or 0), None if new_ids is None else msgspec.json.decode(new_ids, type=list[str])


def _called(connection: Connection, name: str, params: Sequence[bytes | None]) -> list[bytes | None]:
    """The one row that a query answers. Past the driver's cursor, whose way with fourteen parameters costs more than
    storing ten events."""
    formats = [Format.BINARY] * len(params)
    result = connection.pgconn.exec_params(query(PACKAGE, name).encode(), params, param_formats=formats)
    if result.status != ExecStatus.TUPLES_OK:
        raise _failure(connection, result)
    return [result.get_value(0, column) for column in range(result.nfields)]


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


def _alone(offer: Offer) -> Sequence[bytes | None]:
    """A batch as `ingest_batch` takes it: whose events they are, the events, its signature."""
    batch = offer.batch
    edge = None if batch.edge_id is None else batch.edge_id.encode()
    return (batch.tenant_id.encode(), edge, *_arrays(batch.arrivals), offer.signature)


def _together(offers: Sequence[Offer]) -> Sequence[bytes | None]:
    """Batches, those of a tenant behind each other, as `_ingest_new` takes them: the tenants, where the events of each
    end, the edge of each event, the events, the signatures."""
    tenants: dict[str, int] = {}
    edges: list[str | None] = []
    for offer in offers:
        edges += [offer.batch.edge_id] * len(offer.batch.arrivals)
        tenants[offer.batch.tenant_id] = len(edges)
    columns = zip(*(offer.batch.arrivals.columns for offer in offers), strict=True)
    signatures = [offer.signature for offer in offers if offer.signature is not None]
    return (
        str_array(list(tenants)),
        int_array(list(tenants.values())),
        str_array(edges),
        *_arrays(Arrivals(*(list(chain.from_iterable(column)) for column in columns))),
        bytea_array(signatures),
    )


def _arrays(arrivals: Arrivals) -> Sequence[bytes | None]:
    """The events field by field, in the order in which the functions take them."""
    return (
        str_array(arrivals.event_ids),
        str_array(arrivals.event_types),
        text_array(arrivals.payloads),
        time_array(arrivals.occurred_at),
        _sparse(str_array, arrivals.trace_ids),
        _sparse(text_array, arrivals.extras),
    )


def _sparse(array: Callable[[Sequence[T | None]], bytes], values: Sequence[T | None]) -> bytes | None:
    """What few events have: a null where none of them does, which costs the server less than an array of nulls."""
    return None if values.count(None) == len(values) else array(values)
