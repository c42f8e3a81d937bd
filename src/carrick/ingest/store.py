"""The inbox: where events are stored, each once per (tenant, event id). SQLite and PostgreSQL implement it.

What a batch writes, it writes in one transaction: the memory of its signature, the events, their entries in the outbox
channel that relays them on. So a crash leaves all of it or nothing. Batches that come together may share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from carrick.ingest.batch import Arrival, Arrivals, Checked

T = TypeVar("T")

Arrived = Callable[[Any, str, Sequence[Arrival]], None]
"""Called in the transaction of a batch, on its connection, with its tenant and its new events; what it raises undoes
the batch."""

Watcher = Callable[[Arrivals], Arrived | None]
"""Looks at the events of a batch before they are stored: what to do with those that are new, None for nothing."""


class Taken(msgspec.Struct, frozen=True):
    """How many events of a batch were new, and how many were there already."""

    accepted: int
    duplicated: int


class Offer(msgspec.Struct, frozen=True):
    """A batch to be taken, and the signature of its request to be remembered, if it has one."""

    batch: Checked
    signature: bytes | None = None


Outcome = Taken | Exception
"""What became of a batch. With an error nothing of it is stored."""


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One event that is remembered: what it was, not what it carried."""

    event_id: str
    event_type: str
    edge_id: str | None
    occurred_at: datetime | None
    received_at: datetime


class Groups(NamedTuple):
    """How batches best go into an inbox together: so many groups at a time, each closed once it has so many events."""

    at_once: int
    events: int


class Inbox(Protocol):
    """The inbox of one database. Safe to use from several threads."""

    groups: Groups

    def close(self) -> None:
        """Give back every connection. The inbox cannot be used afterwards."""

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew when this release cannot work with the database."""

    def take_all(self, offers: Sequence[Offer]) -> Sequence[Outcome]:
        """Store what is new of each batch, durably, and relay it on. What became of each: one that fails fails alone,
        with Replayed when its signature is known. What is raised has undone them all."""

    def once(self, signature: bytes, work: Callable[[Any], T]) -> T:
        """Do other work for a signed request, on a connection, in one transaction with the memory of its signature.

        Raises Replayed when it is known, or what the work raises: then it is not remembered.
        """

    def recent(self, tenant_id: str, limit: int) -> Sequence[Seen]:
        """The tenant's events that came last, the newest first."""

    def prune(self, retention_days: float, *, max_rows: int) -> int:
        """Forget events that came longer ago, at most so many, and old signatures; how many events."""


def whole(offer: Offer) -> Taken:
    """What became of a batch that was all new."""
    return Taken(len(offer.batch.arrivals), offer.batch.repeated)


def take_one(inbox: Inbox, offer: Offer) -> Taken:
    """Take a batch alone. Raises what is wrong with it."""
    (outcome,) = inbox.take_all([offer])
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
