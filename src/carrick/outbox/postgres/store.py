"""The Store on PostgreSQL: every operation is one call of a function in schema `carrick`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import msgspec

from carrick.entry import Batch, ChannelStats, Entry, Gate, NewEntry, Outcome, OutcomeKind, Put, Standing, State
from carrick.errors import EntryNotFound
from carrick.outbox.channel import MAX_WAIT_SECONDS, Channel, Mode, OnFull
from carrick.outbox.fencing import tells_lost_lease
from carrick.outbox.limits import check_claim, check_finite, check_number, check_scope, check_token
from carrick.outbox.postgres import migrate
from carrick.outbox.postgres.connections import Connections, run
from carrick.outbox.postgres.marks import Mark, Marks
from carrick.outbox.postgres.putting import PACKAGE, put_many_steps, put_steps
from carrick.outbox.statement import query
from carrick.outbox.wording import cleaned, intent_text

ENTRY_FIELDS = len(Entry.__struct_fields__)
TENANT = Entry.__struct_fields__.index("tenant_id")
DUE, EXPIRES = ENTRY_FIELDS, ENTRY_FIELDS + 1  # columns of claim.sql behind the entry's own
MAX_CODE, MAX_MESSAGE = 255, 2000
DELIVERED = frozenset({OutcomeKind.DELIVERED, OutcomeKind.DUPLICATE})


class PostgresStore:
    """The outbox in one PostgreSQL database (13 or later)."""

    def __init__(self, dsn: str) -> None:
        self._connections = Connections(dsn)
        self._marks = Marks()

    def close(self) -> None:
        self._connections.close()

    def now(self) -> datetime:
        moment: datetime = self._value("now")
        return moment

    def check_schema(self) -> None:
        with self._connections.connection() as connection:
            migrate.check_schema(connection)

    def declare(self, channel: Channel) -> None:
        options = msgspec.to_builtins(channel)
        self._rows("declare_channel", name=options.pop("name"), options=json.dumps(options))

    def channels(self) -> dict[str, Channel]:
        return {row[0]: _channel(row) for row in self._rows("channels")}

    def put(self, entry: NewEntry) -> Put:
        with self._connections.connection() as connection:
            return run(connection, put_steps(entry))

    def put_many(self, entries: Sequence[NewEntry]) -> Sequence[Put]:
        with self._connections.connection() as connection, connection.transaction():
            return run(connection, put_many_steps(entries, can_copy=True))

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
    ) -> Batch:
        check_claim(owner, max_rows=max_rows, max_bytes=max_bytes, lease_seconds=lease_seconds)
        token = uuid4() if token is None else check_token(token)
        wanted = {
            "channel": channel,
            "owner": owner,
            "max_rows": max_rows,
            "max_bytes": max_bytes,
            "lease_seconds": lease_seconds,
            "tenant": tenant,
            "token": token,
        }
        marks = self._marks.of(channel)
        rows = self._claim(wanted, marks)
        if marks and not rows:
            rows = self._claim(wanted, [])
        entries = tuple([Entry(*row[:ENTRY_FIELDS]) for row in rows])
        last = {row[TENANT]: (row[DUE], entry) for entry, row in zip(entries, rows, strict=True)}
        self._marks.advance(channel, last, full=max_rows is not None and len(rows) >= max_rows)
        expires = rows[0][EXPIRES] if rows else None
        return Batch(channel=channel, token=token, lease_expires_at=expires, entries=entries)

    def _claim(self, wanted: Mapping[str, Any], marks: Sequence[Mark]) -> list[tuple[Any, ...]]:
        return self._rows(
            "claim",
            **wanted,
            known=[mark.tenant for mark in marks] or None,
            mark_ranks=[mark.rank for mark in marks] or None,
            mark_seqs=[mark.seq for mark in marks] or None,
        )

    @tells_lost_lease
    def renew(self, token: UUID, seconds: int) -> int:
        check_claim("renew", lease_seconds=seconds)
        return int(self._value("renew", token=check_token(token), seconds=seconds))

    @tells_lost_lease
    def note(self, token: UUID, intent: Any) -> int:
        return int(self._value("note", token=check_token(token), intent=intent_text(intent)))

    @tells_lost_lease
    def finish(self, token: UUID, outcomes: Mapping[UUID, Outcome]) -> dict[UUID, State]:
        given = [{"id": str(entry_id), **_outcome(outcome)} for entry_id, outcome in outcomes.items()]
        rows = self._rows("finish", token=check_token(token), outcomes=json.dumps(given))
        if any(outcome.kind not in DELIVERED for outcome in outcomes.values()):
            self._marks.forget()
        return {entry_id: State(state) for entry_id, state in rows}

    @tells_lost_lease
    def finish_all(self, token: UUID) -> dict[UUID, State]:
        rows = self._rows("finish_all", token=check_token(token))
        return dict.fromkeys((row[0] for row in rows), State.DELIVERED)

    @tells_lost_lease
    def release(self, token: UUID) -> int:
        released = int(self._value("release", token=check_token(token)))
        self._marks.forget()
        return released

    def release_expired(self, channel: str, *, older_than_seconds: float = 0) -> int:
        check_finite("older_than_seconds", older_than_seconds)
        self._marks.forget()
        return int(self._value("release_expired", channel=channel, older_than_seconds=older_than_seconds))

    def close_gate(self, channel: str, scope: str, seconds: float | None, reason: str) -> None:
        check_finite("seconds", seconds)
        check_scope(scope)
        self._rows("close_gate", channel=channel, scope=scope, seconds=seconds, reason=cleaned(reason, MAX_MESSAGE))

    def open_gate(self, channel: str, scope: str) -> None:
        check_scope(scope)
        self._rows("open_gate", channel=channel, scope=scope)
        self._marks.forget()

    def gates(self, channel: str | None = None) -> list[Gate]:
        return [
            Gate(channel=name, scope=scope, closed_until=until, reason=reason, consecutive_failures=failures)
            for name, scope, until, reason, failures in self._rows("gates", channel=channel)
        ]

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
        return int(
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

    def prune(self, channel: str, *, max_rows: int = 10_000) -> int:
        return int(self._value("prune", channel=channel, max_rows=max_rows))

    def stats(self) -> list[ChannelStats]:
        fields = ChannelStats.__struct_fields__
        return [ChannelStats(**dict(zip(fields, row, strict=True))) for row in self._rows("stats")]

    def standing(self, entry_id: UUID) -> Standing:
        rows = self._rows("standing", id=check_token(entry_id))
        if not rows:
            raise EntryNotFound(entry_id)
        row = rows[0]
        fields = Standing.__struct_fields__
        known = dict(zip(fields[:22], row[:22], strict=True)) | dict(zip(fields[23:], row[26:], strict=True))
        known["state"] = State(known["state"])
        gate = _gate(row[2], row[22:26])
        return Standing(gate=gate, **known)

    def _rows(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        with self._connections.connection() as connection, connection.cursor(binary=True) as cursor:
            return cursor.execute(query(PACKAGE, name).encode(), params).fetchall()

    def _value(self, name: str, /, **params: Any) -> Any:
        return self._rows(name, **params)[0][0]


def _channel(row: Sequence[Any]) -> Channel:
    options = dict(zip(Channel.__struct_fields__, row, strict=True))
    return Channel(**options | {"mode": Mode(options["mode"]), "on_full": OnFull(options["on_full"])})


def _gate(channel: str, columns: Sequence[Any]) -> Gate | None:
    scope, until, reason, failures = columns
    if scope is None:
        return None
    return Gate(channel=channel, scope=scope, closed_until=until, reason=reason, consecutive_failures=failures)


def _outcome(outcome: Outcome) -> dict[str, Any]:
    given: dict[str, Any] = {"outcome": outcome.kind.value}
    if outcome.after is not None:
        check_number("after", outcome.after)
        given["after"] = min(outcome.after, MAX_WAIT_SECONDS)
    if outcome.code is not None:
        given["code"] = cleaned(outcome.code, MAX_CODE)
    if outcome.message is not None:
        given["message"] = cleaned(outcome.message, MAX_MESSAGE)
    return given
