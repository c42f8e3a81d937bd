"""The Store on SQLite: every operation is one transaction on the file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec

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
from carrick.errors import InvalidInput, RequestReused
from carrick.outbox import finding
from carrick.outbox.channel import MAX_LEASE_SECONDS, MAX_WAIT_SECONDS, Channel
from carrick.outbox.fencing import tell_lost_lease, tells_lost_lease
from carrick.outbox.limits import (
    LONGEST_GATE_SECONDS,
    check_cap,
    check_claim,
    check_closed_by,
    check_finite,
    check_limit,
    check_name,
    check_rest,
    check_scope,
    check_token,
)
from carrick.outbox.paging import page
from carrick.outbox.sqlite import (
    claiming,
    declaring,
    expiring,
    finishing,
    gating,
    listing,
    looking,
    migrate,
    resting,
    retention,
)
from carrick.outbox.sqlite.database import Database, rows, run
from carrick.outbox.sqlite.group_commit import GroupCommit
from carrick.outbox.sqlite.moment import microseconds, moment, span
from carrick.outbox.sqlite.putting import put_many_steps
from carrick.outbox.sqlite.watching import SqliteWatch
from carrick.outbox.store import (
    MOST_CHARACTERS,
    MOST_COUNTED,
    MOST_DEAD,
    MOST_DISCARDED,
    MOST_SIGNS,
    MOST_TENANTS,
    MOST_TROUBLED,
)
from carrick.outbox.waking import Waking
from carrick.outbox.wording import intent_text

MOST_REDRIVEN = 2**31 - 1
MOST_PRUNED = 1_000_000


class SqliteStore(Waking):
    """The outbox in one SQLite file (WAL mode, durable commits). Other processes may use the file at the same time."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self._database = Database(path)
        self._puts = GroupCommit(self._database)

    def close(self) -> None:
        self._database.close()

    def now(self) -> datetime:
        with self._database.read() as connection:
            return moment(rows(connection, "now")[0][0])

    def check_schema(self) -> None:
        with self._database.read() as connection:
            migrate.check_schema(self._database.path, connection)

    def declare(self, channel: Channel, *, keeps: Collection[str] = ()) -> None:
        with self._database.write() as connection:
            declaring.declare(connection, channel, keeps)

    def channels(self) -> dict[str, Channel]:
        with self._database.read() as connection:
            return declaring.channels(connection)

    def put(self, entry: NewEntry) -> Put:
        answer = self._puts.put(entry)
        self.wake(entry.channel)
        return answer

    def put_many(self, entries: Sequence[NewEntry]) -> Sequence[Put]:
        with self._database.write() as connection:
            answers = run(connection, put_many_steps(entries, can_bulk=True))
        self.wake(*{entry.channel for entry in entries})
        return answers

    def watch(self) -> SqliteWatch:
        return SqliteWatch(self._database.path)

    def put_once(self, key: str, body_hash: bytes, entries: Sequence[NewEntry]) -> list[UUID]:
        with self._database.write() as connection:
            for known_hash, ids in rows(connection, "receipt", key=key):
                if known_hash != body_hash:
                    raise RequestReused(key)
                return msgspec.json.decode(ids, type=list[UUID])
            made = [put.id for put in run(connection, put_many_steps(entries, can_bulk=True))]
            ids = msgspec.json.encode(made).decode()
            rows(connection, "fill_receipt", key=key, body_hash=body_hash, ids=ids)
        self.wake(*{entry.channel for entry in entries})
        return made

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
        check_claim(
            owner, max_rows=max_rows, max_bytes=max_bytes, lease_seconds=lease_seconds, fresh_seconds=fresh_seconds
        )
        held_by = uuid4() if token is None else check_token(token)
        limits = claiming.Limits(owner, max_rows, max_bytes, lease_seconds, tenant, held_by, fresh_seconds)
        with self._database.write() as connection:
            return claiming.claim(connection, channel, limits)

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
        check_claim(
            owner, max_rows=max_rows, max_bytes=max_bytes, lease_seconds=lease_seconds, fresh_seconds=fresh_seconds
        )
        lease = check_token(token)
        finishing.check_outcomes(outcomes or {})
        limits = claiming.Limits(owner, max_rows, max_bytes, lease_seconds, None, uuid4(), fresh_seconds)
        with self._database.write() as connection:
            if outcomes is None:
                changed = finishing.finish_all(connection, lease)
            else:
                changed = finishing.finish(connection, lease, outcomes)
            batch = claiming.claim(connection, channel, limits)
        if not changed and outcomes != {}:
            tell_lost_lease("finish_and_claim", token)
        return changed, batch

    @tells_lost_lease
    def renew(self, token: UUID, seconds: int) -> int:
        check_limit("seconds", seconds, MAX_LEASE_SECONDS)
        lease = check_token(token)
        with self._database.write() as connection:
            return finishing.renew(connection, lease, seconds)

    @tells_lost_lease
    def note(self, token: UUID, intent: Any, ids: Collection[UUID] | None = None) -> int:
        lease, text = check_token(token), intent_text(intent)
        about = None if ids is None else [check_token(entry_id) for entry_id in ids]
        with self._database.write() as connection:
            return finishing.note(connection, lease, text, about)

    @tells_lost_lease
    def finish(self, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
        lease = check_token(token)
        finishing.check_outcomes(outcomes)
        with self._database.write() as connection:
            return finishing.finish(connection, lease, outcomes)

    @tells_lost_lease
    def finish_all(self, token: UUID) -> dict[UUID, State]:
        lease = check_token(token)
        with self._database.write() as connection:
            return finishing.finish_all(connection, lease)

    @tells_lost_lease
    def release(self, token: UUID) -> int:
        lease = check_token(token)
        with self._database.write() as connection:
            return finishing.release(connection, lease)

    def release_expired(self, channel: str, *, older_than_seconds: float = 0) -> int:
        check_finite("older_than_seconds", older_than_seconds)
        with self._database.write() as connection:
            known = declaring.known_channel(connection, channel)
            now = rows(connection, "now")[0][0]
            before = now - span(min(older_than_seconds, LONGEST_GATE_SECONDS))
            returned = expiring.return_expired(connection, known, now, before)
        self.wake(channel)
        return returned

    def count_expired(self, channel: str) -> int:
        with self._database.read() as connection:
            declaring.known_channel(connection, channel)
            ((count,),) = rows(connection, "count_expired", channel=channel)
            return int(count)

    def close_gate(
        self, channel: str, scope: str, seconds: float | None, reason: str, *, closed_by: ClosedBy = "person"
    ) -> None:
        check_finite("seconds", seconds)
        check_scope(scope)
        check_closed_by(closed_by)
        if seconds is not None and seconds > LONGEST_GATE_SECONDS:
            raise InvalidInput("seconds", f"{seconds} is out of range", "0 or more, or None until opened")
        with self._database.write() as connection:
            gating.close_gate(connection, channel, scope, seconds, reason, closed_by)

    def open_gate(self, channel: str, scope: str, *, closed_by: ClosedBy | None = None) -> None:
        check_scope(scope)
        if closed_by is not None:
            check_closed_by(closed_by)
        with self._database.write() as connection:
            gating.open_gate(connection, channel, scope, closed_by)
        self.wake(channel)

    def fail_gate(self, channel: str, scope: str, reason: str, *, cap_seconds: float, probe: bool = False) -> float:
        check_scope(scope)
        check_cap(cap_seconds)
        with self._database.write() as connection:
            return gating.fail_gate(connection, channel, scope, reason, cap_seconds, probe=probe)

    def gates(self, channel: str | None = None) -> list[Gate]:
        with self._database.read() as connection:
            return looking.gates(connection, channel)

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
        check_limit("max_rows", max_rows, MOST_REDRIVEN)
        check_finite("spread_seconds", spread_seconds)
        if spread_seconds > MAX_WAIT_SECONDS:
            raise InvalidInput("spread_seconds", f"{spread_seconds} is out of range", f"0 to {MAX_WAIT_SECONDS:.0f}")
        wanted = None if ids is None else [check_token(entry_id) for entry_id in ids]
        with self._database.read() if dry_run else self._database.write() as connection:
            seqs = retention.dead_entries(connection, channel, wanted, reason, max_rows)
            if not dry_run:
                retention.redrive(connection, channel, seqs, spread_seconds)
        self.wake(channel)
        return len(seqs)

    def discard(self, channel: str, ids: Sequence[UUID]) -> int:
        wanted = [check_token(entry_id) for entry_id in ids]
        with self._database.write() as connection:
            return retention.discard(connection, channel, wanted)

    def discard_all(
        self,
        channel: str,
        *,
        reason: str | None = None,
        died_by: datetime | None = None,
        max_rows: int = MOST_DISCARDED,
    ) -> int:
        check_limit("max_rows", max_rows, MOST_DISCARDED)
        last = None if died_by is None else microseconds(died_by)
        with self._database.write() as connection:
            return retention.discard_all(connection, channel, reason, last, max_rows)

    def dead(self, channel: str, *, reason: str | None = None) -> list[DeadCount]:
        with self._database.read() as connection:
            declaring.known_channel(connection, channel)
            return looking.dead(connection, channel, reason, MOST_DEAD)

    def prune(self, channel: str, *, max_rows: int = 10_000) -> int:
        check_limit("max_rows", max_rows, MOST_PRUNED)
        with self._database.write() as connection:
            return retention.prune(connection, channel, max_rows)

    def stats(self) -> list[ChannelStats]:
        with self._database.read() as connection:
            return looking.stats(connection)

    def troubled(self, channel: str) -> int:
        with self._database.read() as connection:
            return looking.troubled(connection, channel, MOST_TROUBLED)

    def entries(
        self,
        channel: str,
        *,
        state: State | None = None,
        tenant: str | None = None,
        max_rows: int = 100,
        after: str | None = None,
    ) -> Page:
        with self._database.read() as connection:
            declaring.known_channel(connection, channel)
            return page(
                lambda wanted: listing.look(connection, wanted),
                channel,
                state=state,
                tenant=tenant,
                max_rows=max_rows,
                after=after,
            )

    def find(self, text: str, *, tenant: str | None = None, max_rows: int = 50) -> Found:
        with self._database.read() as connection:
            return finding.find(listing.Finder(connection), text, tenant, max_rows)

    def rest(self, channel: str, owner: str, seconds: float) -> Rest:
        """Nobody needs to know that a relay rests: the file's data version wakes it (`watch`)."""
        check_claim(owner)
        check_rest(seconds)
        with self._database.read() as connection:
            return Rest(due_in=resting.due_in(connection, channel), unseen=False)

    def stir(self, channel: str, owner: str) -> None:
        """Nothing to do: nobody was told that it rests."""
        check_claim(owner)

    def take_duty(self, duty: str, owner: str, seconds: float) -> bool:
        check_name("duty", duty)
        check_claim(owner)
        check_rest(seconds)
        with self._database.write() as connection:
            return resting.take_duty(connection, duty, owner, seconds)

    def standing(self, entry_id: UUID) -> Standing:
        wanted = check_token(entry_id)
        with self._database.read() as connection:
            return looking.standing(connection, wanted)

    def contents(self, entry_id: UUID, *, characters: int) -> Contents:
        check_limit("characters", characters, MOST_CHARACTERS)
        wanted = check_token(entry_id)
        with self._database.read() as connection:
            return looking.contents(connection, wanted, characters)

    def tenants(self, channel: str, *, max_rows: int = 20) -> list[TenantWaiting]:
        check_limit("max_rows", max_rows, MOST_TENANTS)
        with self._database.read() as connection:
            return looking.tenants(connection, channel, look=MOST_TENANTS, most=MOST_COUNTED, rows=max_rows)

    def signs(self) -> list[Sign]:
        with self._database.read() as connection:
            return looking.signs(connection, MOST_SIGNS)
