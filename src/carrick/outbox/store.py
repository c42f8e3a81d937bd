"""The Store protocol: the engine's operations on one database. SQLite and PostgreSQL implement it.

Every time in it comes from the database. Every write after a claim carries the lease token and changes
nothing when the lease has moved on: zero means "lease lost" (G3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from carrick.entry import (
    Batch,
    ChannelStats,
    ClosedBy,
    Contents,
    DeadCount,
    Found,
    Gate,
    NewEntry,
    Outcome,
    Page,
    Put,
    Rest,
    Sign,
    Standing,
    State,
    TenantWaiting,
)
from carrick.outbox.channel import Channel
from carrick.outbox.waking import Ring

RECEIPT_DAYS = 30
MOST_TENANTS = 200
"""`Store.tenants` looks at so many, the first by name."""
MOST_COUNTED = 200
"""`Store.tenants` counts so many entries of each."""
MOST_SIGNS = 500
MOST_TROUBLED = 10_000
"""`Store.troubled` counts so many."""
MOST_CHARACTERS = 1_000_000
"""`Store.contents` shows at most so much of a payload."""
MOST_DEAD = 100_000
"""`Store.dead` counts so many, the oldest."""
MOST_DISCARDED = 10_000
"""`Store.discard_all` removes so many at once."""


class Watch(Protocol):
    """Listens for puts of other processes. Used from one event loop; a hint, never needed for correctness."""

    async def next(self) -> str | None:
        """Wait until something may have been put; the channel's name, None when it may be any. Raises StoreError."""

    async def claim(
        self, channel: str, owner: str, *, max_rows: int, max_bytes: int, fresh_seconds: float | None
    ) -> Batch | None:
        """As Store.claim, without a thread and so without waiting for one; None where that cannot be done now."""

    async def close(self) -> None:
        """Stop listening."""


class Store(Protocol):
    """One database that holds the outbox. Safe to use from several threads."""

    def close(self) -> None:
        """Give back every connection. The store cannot be used afterwards."""

    def now(self) -> datetime:
        """The database's clock."""

    def check_schema(self) -> None:
        """Raise SchemaMissing, SchemaOutdated or SchemaTooNew when this release cannot work with the database."""

    def declare(self, channel: Channel, *, keeps: Collection[str] = ()) -> None:
        """Create the channel or change its options, but for those that it keeps; idempotent. Raises ChannelConflict."""

    def channels(self) -> dict[str, Channel]:
        """All declared channels by name."""

    def put(self, entry: NewEntry) -> Put:
        """Store one entry durably in a transaction of its own. Raises UnknownChannel, KeyReused, BacklogFull."""

    def put_many(self, entries: Sequence[NewEntry]) -> Sequence[Put]:
        """Store all entries in one transaction of its own, or none of them."""

    def put_once(self, key: str, body_hash: bytes, entries: Sequence[NewEntry]) -> Sequence[UUID]:
        """Put all entries or none, as a request with a key of its own: the same request again answers the same ids.

        Raises RequestReused when the key came with another body. Keys are remembered for RECEIPT_DAYS.
        """

    def claim(
        self,
        channel: str,
        owner: str,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        lease_seconds: int | None = None,
        tenant: str | None = None,
        token: UUID | None = None,
        fresh_seconds: float | None = None,
    ) -> Batch:
        """Take due entries for a time, in delivery order. In coalesce mode `max_rows` counts groups.

        Limits not given are the channel's. At least one entry (or group) is taken whatever its size.
        `fresh_seconds` takes only what ranks within that time, and so passes over an old backlog.
        Behind a gate that failures closed and whose time is up, one entry (or group) goes ahead to try: `Batch.probe`.
        """

    def finish_and_claim(
        self,
        token: UUID,
        outcomes: Mapping[UUID, Outcome] | None,
        channel: str,
        owner: str,
        *,
        max_rows: int | None = None,
        max_bytes: int | None = None,
        lease_seconds: int | None = None,
        fresh_seconds: float | None = None,
    ) -> tuple[dict[UUID, State], Batch]:
        """`finish` (without outcomes: `finish_all`), then `claim`: one round trip, one transaction, both or neither."""

    def renew(self, token: UUID, seconds: int) -> int:
        """Let the lease end `seconds` from now; how many entries are still held under it."""

    def note(self, token: UUID, intent: Any, ids: Collection[UUID] | None = None) -> int:
        """Write down what the delivery is about to do, with these entries (None: all); how many are still held.

        Should the worker die then, those entries of a coalesced group come back together, with the intent.
        """

    def finish(self, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
        """Apply outcomes to entries held under the lease; the new state of those that this call changed.

        Entries of the lease that are not mentioned stay claimed.
        """

    def finish_all(self, token: UUID) -> dict[UUID, State]:
        """All entries still held under the lease are delivered."""

    def release(self, token: UUID) -> int:
        """Give back everything held under the lease, nothing spent; how many entries that were."""

    def release_expired(self, channel: str, *, older_than_seconds: float = 0) -> int:
        """Return entries whose lease ended at least that long ago; how many."""

    def count_expired(self, channel: str) -> int:
        """How many entries leases hold that have ended; the next claim takes them back. Raises UnknownChannel."""

    def close_gate(
        self, channel: str, scope: str, seconds: float | None, reason: str, *, closed_by: ClosedBy = "person"
    ) -> None:
        """Hold `*`, `tenant:x` or `principal:x` for that long, or until opened.

        While a gate is closed, what a person closed is for persons only to change; what the destination asked for, the
        destination may lengthen; what failures closed, anybody may change.
        """

    def open_gate(self, channel: str, scope: str, *, closed_by: ClosedBy | None = None) -> None:
        """Let entries behind the gate go on; with `closed_by` only if that is who closed it.

        Opening an open gate changes nothing.
        """

    def fail_gate(self, channel: str, scope: str, reason: str, *, cap_seconds: float, probe: bool = False) -> float:
        """Count a failure of the destination; close the gate for 1, 2, 4 … seconds up to the cap, with equal jitter.

        Many deliveries fail at once when a destination goes: while the gate is closed, only the failure of the `probe`
        counts; and it shortens nothing that a person or the destination asked for. Answers for how many seconds it is
        closed now.
        """

    def gates(self, channel: str | None = None) -> list[Gate]:
        """Gates that are closed now."""

    def redrive(
        self,
        channel: str,
        *,
        ids: Sequence[UUID] | None = None,
        reason: str | None = None,
        max_rows: int | None = None,
        spread_seconds: float = 60,
        dry_run: bool = False,
    ) -> int:
        """Send dead entries round again, oldest first, attempts back to 0, spread evenly over the seconds.

        `ids` and `reason` (the dlq_reason) narrow the choice. With `dry_run` only counts.
        """

    def discard(self, channel: str, ids: Sequence[UUID]) -> int:
        """Remove these dead entries for good, as retention would; how many. Entries in other states stay."""

    def discard_all(
        self,
        channel: str,
        *,
        reason: str | None = None,
        died_by: datetime | None = None,
        max_rows: int = MOST_DISCARDED,
    ) -> int:
        """Remove dead entries for good, the oldest first, at most MOST_DISCARDED; how many.

        `reason` (the dlq_reason) narrows the choice; what died after `died_by` stays. `dead.discard_all` removes more.
        """

    def dead(self, channel: str, *, reason: str | None = None) -> list[DeadCount]:
        """What the oldest MOST_DEAD dead entries died of, the most frequent first. Raises UnknownChannel."""

    def prune(self, channel: str, *, max_rows: int = 10_000) -> int:
        """Remove delivered and dead entries past their retention, at most `max_rows`; how many."""

    def stats(self) -> list[ChannelStats]:
        """Every channel at a glance, at a cost that does not grow with what waits or is kept.

        Up to 100,000 waiting entries and as many dead ones of each channel are counted; beyond that it estimates, and
        says so.
        """

    def troubled(self, channel: str) -> int:
        """How many waiting entries of the channel were tried in vain, counted up to MOST_TROUBLED.

        What merely waits behind them in a group is not counted, nor what is claimed. Cheap however much else waits.
        """

    def entries(
        self,
        channel: str,
        *,
        state: State | None = None,
        tenant: str | None = None,
        max_rows: int = 100,
        after: str | None = None,
    ) -> Page:
        """Entries of a channel, oldest first, page by page: `after` is the `next` of the page before.

        Raises InvalidInput for a cursor that this did not give. Cheap at any depth and any number of retained entries.
        """

    def find(self, text: str, *, tenant: str | None = None, max_rows: int = 50) -> Found:
        """Entries in any state whose id, key, group or tenant the text is; of one tenant where it is given.

        Cheap at any number of entries: `finding` says how far it looks. Raises InvalidInput.
        """

    def rest(self, channel: str, owner: str, seconds: float) -> Rest:
        """A relay says that it sleeps, for at most so long: until then puts wake it (`Watch`). Not for correctness."""

    def stir(self, channel: str, owner: str) -> None:
        """The relay is awake: puts need not wake it any more."""

    def take_duty(self, duty: str, owner: str, seconds: float) -> bool:
        """Whether this owner has that duty for so long from now: it had it already, or nobody else has."""

    def wake(self, *channels: str) -> None:
        """Something in these channels may be due, and is committed: relays of this process look at once.

        What this store does by its own transactions calls it; who puts in a transaction of the caller's may.
        """

    def waking(self, ring: Ring) -> AbstractContextManager[None]:
        """Within it, `wake` calls that."""

    def watch(self) -> Watch:
        """Tells when something may have been put into channels while relays rest."""

    def standing(self, entry_id: UUID) -> Standing:
        """The facts behind `explain`. Raises EntryNotFound."""

    def contents(self, entry_id: UUID, *, characters: int) -> Contents:
        """What the entry carries, up to so many characters of its payload. Raises EntryNotFound."""

    def tenants(self, channel: str, *, max_rows: int = 20) -> list[TenantWaiting]:
        """The tenants with the most waiting entries, of the first MOST_TENANTS by name; counted up to MOST_COUNTED.

        Cheap at any depth.
        """

    def signs(self) -> list[Sign]:
        """Who works with this database, as far as it knows; also whose time is up. On SQLite rests are not told."""
