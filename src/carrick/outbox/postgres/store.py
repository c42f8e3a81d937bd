"""The Store on PostgreSQL: every operation is one call of a function in schema `carrick`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from carrick.entry import (
    Attempt,
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
from carrick.errors import EntryNotFound, RequestReused, UnknownChannel
from carrick.outbox import finding
from carrick.outbox.channel import OPTIONS, Channel, Mode, OnFull
from carrick.outbox.fencing import tell_lost_lease, tells_lost_lease
from carrick.outbox.limits import (
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
from carrick.outbox.postgres import listing, migrate
from carrick.outbox.postgres.claiming import (
    Call,
    Claim,
    batch_of,
    finish_call,
    gives_back,
    last_due,
    new_claim,
    states_of,
)
from carrick.outbox.postgres.connections import Connection, Connections, run
from carrick.outbox.postgres.marks import Marks
from carrick.outbox.postgres.putting import PACKAGE, put_many_steps, put_steps
from carrick.outbox.postgres.watching import PostgresWatch
from carrick.outbox.statement import query
from carrick.outbox.store import (
    MOST_CHARACTERS,
    MOST_COUNTED,
    MOST_DEAD,
    MOST_DISCARDED,
    MOST_SIGNS,
    MOST_TENANTS,
    MOST_TROUBLED,
    RECEIPT_DAYS,
)
from carrick.outbox.waking import Waking
from carrick.outbox.wording import cleaned, intent_text

MAX_REASON = 2_000


class PostgresStore(Waking):
    """The outbox in one PostgreSQL database (13 or later)."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self._dsn = dsn
        self._connections = Connections(dsn)
        self._marks = Marks()
        self._batch_rows: dict[str, int] = {}

    def close(self) -> None:
        self._connections.close()

    def now(self) -> datetime:
        moment: datetime = self._value("now")
        return moment

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            migrate.check_schema(connection)

    def declare(self, channel: Channel, *, keeps: Collection[str] = ()) -> None:
        options = {option: getattr(channel, option) for option in OPTIONS if option not in keeps}
        said = ["*"] if channel.said is None else list(channel.said)
        self._rows("declare_channel", name=channel.name, options=json.dumps(options), said=said)
        self._batch_rows[channel.name] = channel.batch_rows

    def channels(self) -> dict[str, Channel]:
        return {row[0]: _channel(row) for row in self._rows("channels")}

    def put(self, entry: NewEntry) -> Put:
        with self._connections.connection() as connection:
            answer = run(connection, put_steps(entry))
        self.wake(entry.channel)
        return answer

    def put_many(self, entries: Sequence[NewEntry]) -> Sequence[Put]:
        with self._connections.connection() as connection, connection.transaction():
            answers = run(connection, put_many_steps(entries, can_bulk=True))
        self.wake(*{entry.channel for entry in entries})
        return answers

    def put_once(self, key: str, body_hash: bytes, entries: Sequence[NewEntry]) -> list[UUID]:
        with self._connections.connection() as connection, connection.transaction():
            request = {"key": key, "body_hash": body_hash}
            if not _asked(connection, "take_receipt", **request):
                ((known_hash, ids),) = _asked(connection, "receipt", key=key)
                if known_hash != body_hash:
                    raise RequestReused(key)
                return list(ids)
            made = [put.id for put in run(connection, put_many_steps(entries, can_bulk=True))]
            _asked(connection, "fill_receipt", key=key, ids=made)
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
        claim = new_claim(
            channel,
            owner,
            max_rows=max_rows,
            max_bytes=max_bytes,
            lease_seconds=lease_seconds,
            tenant=tenant,
            token=token,
            fresh_seconds=fresh_seconds,
        )
        return self._claimed(claim, self._rows("claim", **self._claim_params(claim)))

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
        claim = new_claim(
            channel,
            owner,
            max_rows=max_rows,
            max_bytes=max_bytes,
            lease_seconds=lease_seconds,
            fresh_seconds=fresh_seconds,
        )
        finish = finish_call(token, outcomes)
        if gives_back(outcomes):
            self._marks.forget()
        changed, rows = self._rows_of_both(finish, Call("claim", self._claim_params(claim)))
        if not changed and outcomes != {}:
            tell_lost_lease("finish_and_claim", token)
        return states_of(changed), self._claimed(claim, rows)

    def _claim_params(self, claim: Claim) -> dict[str, Any]:
        marks = self._marks.of(claim.lane)
        return claim._asdict() | {
            "known": [mark.tenant for mark in marks] or None,
            "mark_ranks": [mark.rank for mark in marks] or None,
            "mark_seqs": [mark.seq for mark in marks] or None,
        }

    def _claimed(self, claim: Claim, rows: Sequence[tuple[Any, ...]]) -> Batch:
        batch = batch_of(claim, rows)
        full = bool(batch) and len(batch) >= self._most_rows(claim)
        self._marks.advance(claim.lane, last_due(batch, rows), full=full)
        return batch

    def _most_rows(self, claim: Claim) -> int:
        """How many rows make a full batch. The channel's own limit is read once: it only decides about a hint."""
        if claim.max_rows is not None:
            return claim.max_rows
        if claim.channel not in self._batch_rows:
            self._batch_rows = {name: channel.batch_rows for name, channel in self.channels().items()}
        return self._batch_rows[claim.channel]

    @tells_lost_lease
    def renew(self, token: UUID, seconds: int) -> int:
        check_claim("renew", lease_seconds=seconds)
        return int(self._value("renew", token=check_token(token), seconds=seconds))

    @tells_lost_lease
    def note(self, token: UUID, intent: Any, ids: Collection[UUID] | None = None) -> int:
        about = None if ids is None else [check_token(entry_id) for entry_id in ids]
        return int(self._value("note", token=check_token(token), intent=intent_text(intent), ids=about))

    @tells_lost_lease
    def finish(self, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
        call = finish_call(token, outcomes)
        rows = self._rows(call.name, **call.params)
        if gives_back(outcomes):
            self._marks.forget()
        return states_of(rows)

    @tells_lost_lease
    def finish_all(self, token: UUID) -> dict[UUID, State]:
        call = finish_call(token, None)
        return states_of(self._rows(call.name, **call.params))

    @tells_lost_lease
    def release(self, token: UUID) -> int:
        released = int(self._value("release", token=check_token(token)))
        self._marks.forget()
        return released

    def release_expired(self, channel: str, *, older_than_seconds: float = 0) -> int:
        check_finite("older_than_seconds", older_than_seconds)
        self._marks.forget()
        returned = int(self._value("release_expired", channel=channel, older_than_seconds=older_than_seconds))
        self.wake(channel)
        return returned

    def count_expired(self, channel: str) -> int:
        self._check_channel(channel)
        return int(self._value("count_expired", channel=channel))

    def close_gate(
        self, channel: str, scope: str, seconds: float | None, reason: str, *, closed_by: ClosedBy = "person"
    ) -> None:
        check_finite("seconds", seconds)
        check_scope(scope)
        check_closed_by(closed_by)
        said = cleaned(reason, MAX_REASON)
        self._rows("close_gate", channel=channel, scope=scope, seconds=seconds, reason=said, closed_by=closed_by)

    def open_gate(self, channel: str, scope: str, *, closed_by: ClosedBy | None = None) -> None:
        check_scope(scope)
        if closed_by is not None:
            check_closed_by(closed_by)
        self._rows("open_gate", channel=channel, scope=scope, closed_by=closed_by)
        self._marks.forget()
        self.wake(channel)

    def fail_gate(self, channel: str, scope: str, reason: str, *, cap_seconds: float, probe: bool = False) -> float:
        check_scope(scope)
        check_cap(cap_seconds)
        said = cleaned(reason or "", MAX_REASON)
        return float(
            self._value("fail_gate", channel=channel, scope=scope, reason=said, cap_seconds=cap_seconds, probe=probe)
        )

    def gates(self, channel: str | None = None) -> list[Gate]:
        return [_gate(name, columns) for name, *columns in self._rows("gates", channel=channel)]

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
        check_finite("spread_seconds", spread_seconds)
        self._marks.forget()
        redriven = int(
            self._value(
                "redrive",
                channel=channel,
                ids=None if ids is None else list(ids),
                reason=reason,
                max_rows=max_rows,
                spread_seconds=spread_seconds,
                dry_run=dry_run,
            )
        )
        self.wake(channel)
        return redriven

    def discard(self, channel: str, ids: Sequence[UUID]) -> int:
        return int(self._value("discard", channel=channel, ids=[check_token(entry_id) for entry_id in ids]))

    def discard_all(
        self,
        channel: str,
        *,
        reason: str | None = None,
        died_by: datetime | None = None,
        max_rows: int = MOST_DISCARDED,
    ) -> int:
        check_limit("max_rows", max_rows, MOST_DISCARDED)
        chosen = {"channel": channel, "reason": reason, "died_by": died_by, "max_rows": max_rows}
        for count, _ in self._pinned("discard_all", **chosen):
            return int(count)
        self._check_channel(channel)
        return 0

    def dead(self, channel: str, *, reason: str | None = None) -> list[DeadCount]:
        fields = DeadCount.__struct_fields__
        found = self._rows("dead", channel=channel, reason=reason, most=MOST_DEAD)
        if not found:
            self._check_channel(channel)
        return [DeadCount(**dict(zip(fields, row, strict=True))) for row in found]

    def prune(self, channel: str, *, max_rows: int = 10_000) -> int:
        self._rows("prune_receipts", seconds=RECEIPT_DAYS * 86_400)
        return int(self._value("prune", channel=channel, max_rows=max_rows))

    def stats(self) -> list[ChannelStats]:
        fields = ChannelStats.__struct_fields__
        return [
            ChannelStats(**dict(zip(fields, (*row, tuple(approximate)), strict=True)))
            for *row, approximate in self._rows("stats")
        ]

    def troubled(self, channel: str) -> int:
        ((count,),) = self._pinned("troubled", channel=channel, most=MOST_TROUBLED)
        return int(count)

    def entries(
        self,
        channel: str,
        *,
        state: State | None = None,
        tenant: str | None = None,
        max_rows: int = 100,
        after: str | None = None,
    ) -> Page:
        found = page(
            lambda wanted: listing.look(self._rows, wanted),
            channel,
            state=state,
            tenant=tenant,
            max_rows=max_rows,
            after=after,
        )
        if not found.lines:
            self._check_channel(channel)
        return found

    def _check_channel(self, channel: str) -> None:
        if channel not in (known := self.channels()):
            raise UnknownChannel(channel, list(known))

    def find(self, text: str, *, tenant: str | None = None, max_rows: int = 50) -> Found:
        with self._connections.connection() as connection, connection.transaction():
            _asked(connection, "pin_plan")
            return finding.find(listing.Finder(partial(_asked, connection)), text, tenant, max_rows)

    def rest(self, channel: str, owner: str, seconds: float) -> Rest:
        check_claim(owner)
        check_rest(seconds)
        asked = {"channel": channel, "owner": owner, "seconds": seconds}
        for _ in range(2):  # what the first call wrote is seen by others when the second looks
            wrote, due_in, unseen = self._rows("rest", **asked)[0]
            if not wrote:
                return Rest(due_in=due_in, unseen=unseen)
        return Rest(due_in=0.0, unseen=True)  # somebody else writes under the same name

    def stir(self, channel: str, owner: str) -> None:
        check_claim(owner)
        self._rows("stir", channel=channel, owner=owner)

    def take_duty(self, duty: str, owner: str, seconds: float) -> bool:
        check_name("duty", duty)
        check_claim(owner)
        check_rest(seconds)
        return bool(self._value("take_duty", duty=duty, owner=owner, seconds=seconds))

    def watch(self) -> PostgresWatch:
        return PostgresWatch(self._dsn)

    def standing(self, entry_id: UUID) -> Standing:
        with self._connections.connection() as connection:
            rows = _asked(connection, "standing", id=check_token(entry_id))
            attempts = tuple(Attempt(*row) for row in _asked(connection, "attempts", id=entry_id))
        if not rows:
            raise EntryNotFound(entry_id)
        row = rows[0]
        fields = Standing.__struct_fields__
        known = dict(zip(fields[:22], row[:22], strict=True)) | dict(zip(fields[23:-1], row[27:], strict=True))
        known["state"] = State(known["state"])
        gate = None if row[22] is None else _gate(row[2], row[22:27])
        return Standing(gate=gate, attempts=attempts, **known)

    def contents(self, entry_id: UUID, *, characters: int) -> Contents:
        check_limit("characters", characters, MOST_CHARACTERS)
        found = self._rows("contents", id=check_token(entry_id), characters=characters)
        if not found:
            raise EntryNotFound(entry_id)
        seq, key, payload, *rest = found[0]
        shown = dict(zip(Contents.__struct_fields__[4:], rest, strict=True))
        return Contents(seq=seq, key=key, payload=payload[:characters], cut=len(payload) > characters, **shown)

    def tenants(self, channel: str, *, max_rows: int = 20) -> list[TenantWaiting]:
        check_limit("max_rows", max_rows, MOST_TENANTS)
        limits = {"look": MOST_TENANTS, "most": MOST_COUNTED, "rows": max_rows}
        found = self._pinned("tenants", channel=channel, **limits)
        return [TenantWaiting(tenant_id=tenant_id, waiting=waiting) for tenant_id, waiting in found]

    def signs(self) -> list[Sign]:
        fields = Sign.__struct_fields__
        return [Sign(**dict(zip(fields, row, strict=True))) for row in self._rows("signs", rows=MOST_SIGNS)]

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection:
            return _asked(connection, name, **params)

    def _pinned(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """The rows of a query that needs its plan pinned."""
        with self._connections.connection() as connection, connection.transaction():
            _asked(connection, "pin_plan")
            return _asked(connection, name, **params)

    def _rows_of_both(self, first: Call, second: Call) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """Two statements in one round trip and one transaction: a pipeline is one when nothing in it asks for more."""
        with self._connections.connection() as connection:
            with connection.pipeline():
                cursors = [connection.cursor(binary=True) for _ in range(2)]
                for cursor, call in zip(cursors, (first, second), strict=True):
                    cursor.execute(query(PACKAGE, call.name).encode(), call.params)
            return cursors[0].fetchall(), cursors[1].fetchall()

    def _value(self, name: str, /, **params: Any) -> Any:
        return self._rows(name, **params)[0][0]


def _asked(connection: Connection, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """The rows that queries/<name>.sql answers, none where it answers none."""
    with connection.cursor(binary=True) as cursor:
        cursor.execute(query(PACKAGE, name).encode(), params)
        return [] if cursor.rownumber is None else cursor.fetchall()


def _channel(row: Sequence[Any]) -> Channel:
    options = dict(zip(Channel.__struct_fields__, row, strict=True))
    said = options.pop("said")
    kinds = {"mode": Mode(options["mode"]), "on_full": OnFull(options["on_full"])}
    return Channel(**options | kinds, said=None if said is None else tuple(said))


def _gate(channel: str, columns: Sequence[Any]) -> Gate:
    scope, until, reason, failures, closed_by = columns
    return Gate(
        channel=channel,
        scope=scope,
        closed_until=until,
        reason=reason,
        consecutive_failures=failures,
        closed_by=closed_by,
    )
