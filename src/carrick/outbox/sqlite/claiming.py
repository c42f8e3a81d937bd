"""claim: take due entries for a time; tenants take turns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple
from uuid import UUID

import msgspec

from carrick.entry import Batch, Entry
from carrick.outbox.channel import Mode
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.expiring import return_expired
from carrick.outbox.sqlite.moment import moment, moment_or_none, span
from carrick.outbox.sqlite.picking import Pick, Search, as_json, pick, pick_oldest
from carrick.outbox.sqlite.special import special_picks

FURTHEST = span(10_000 * 60)
"""How far the lowest priority ranks behind its due time."""


class Limits(NamedTuple):
    """What one claim asks for; None means the channel's own."""

    owner: str
    max_rows: int | None
    max_bytes: int | None
    lease_seconds: int | None
    tenant: str | None
    token: UUID


def claim(connection: sqlite3.Connection, name: str, limits: Limits) -> Batch:
    """Take due entries, in delivery order; leases that have ended are taken back first. Raises UnknownChannel."""
    channel = known_channel(connection, name)
    ((now,),) = rows(connection, "now")
    ((expired, special, low),) = rows(connection, "claim_view", channel=name, now=now)
    if expired:
        return_expired(connection, channel, now, now)
    scopes = [scope for (scope,) in rows(connection, "claim_gates", channel=name, now=now)]
    empty = Batch(channel=name, token=limits.token, lease_expires_at=None, entries=())
    if "*" in scopes:
        return empty
    search = Search(
        connection=connection,
        channel=channel,
        now=now,
        horizon=now + FURTHEST if low else now,
        rows=limits.max_rows or channel.batch_rows,
        bytes=limits.max_bytes or channel.batch_bytes,
        tenant=limits.tenant,
        held_tenants=[scope.removeprefix("tenant:") for scope in scopes if scope.startswith("tenant:")],
        held_principals=[scope.removeprefix("principal:") for scope in scopes if scope.startswith("principal:")],
    )
    picked = _choose(search, comes_apart=bool(special or expired))
    return _take(search, limits, picked) if picked.seqs else empty


def _choose(search: Search, *, comes_apart: bool) -> Pick:
    """What to take: by turns; or of the tenant asked for, or the oldest of all, what comes back apart first."""
    channel = search.channel
    one = channel.one_tenant or channel.mode is Mode.COALESCE
    if search.tenant is None and (channel.fair or one):
        special = dict(special_picks(search, by_tenant=True)) if comes_apart else {}
        return _by_turns(search, special, 1 if one else search.rows)
    if comes_apart:
        for _, picked in special_picks(search, by_tenant=False):
            return picked
    lanes = search.lanes(None, -1) if search.tenant is None else [search.tenant]
    free = [lane for lane in lanes if lane not in search.held_tenants]
    return pick_oldest(search, free) if search.tenant is None else pick(search, free)


def _by_turns(search: Search, special: dict[str, Pick], most: int) -> Pick:
    """Serve the tenants after the one served last, at most so many at once, until some have something to take (G8).

    A tenant with entries that come back apart is served with those, alone, when it is its turn; others share a batch up
    to that tenant. The turn moves on when tenants remain that this claim could not serve.
    """
    round_ = Round(search)
    while chunk := round_.next(most, special):
        free = [lane for lane in chunk if lane not in search.held_tenants]
        picked = special.get(chunk[0]) or pick(search, free)
        if picked.seqs:
            last = chunk[-1] if picked.last is None else free[picked.last]
            if picked.last is not None or round_.remains():
                rows(search.connection, "claim_set_turn", channel=search.channel.name, tenant=last)
            return picked
    return Pick([])


class Round:
    """The tenants of a channel in turn: after the one served last, to the end, and from the beginning to that one."""

    def __init__(self, search: Search) -> None:
        turn = rows(search.connection, "claim_turn", channel=search.channel.name)
        self._tenants = self._walk(search, turn[0][0] if turn else None)
        self._ahead: list[str] = []

    def next(self, most: int, special: Mapping[str, Pick]) -> list[str]:
        """The next tenants to serve together; one with entries that come back apart stands alone."""
        self._look_ahead(most)
        shared = list(takewhile(lambda lane: lane not in special, self._ahead[:most]))
        chunk = shared or self._ahead[:1]
        self._ahead = self._ahead[len(chunk) :]
        return chunk

    def remains(self) -> bool:
        """Whether tenants wait that were not served in this round."""
        self._look_ahead(1)
        return bool(self._ahead)

    def _look_ahead(self, count: int) -> None:
        while len(self._ahead) < count and (tenant := next(self._tenants, None)) is not None:
            self._ahead.append(tenant)

    @staticmethod
    def _walk(search: Search, after: str | None) -> Iterator[str]:
        size = 2 * search.rows + 16
        for start, end in ((after, None), (None, after)) if after is not None else ((None, None),):
            at: str | None = start
            while lanes := search.lanes(at, size):
                at = lanes[-1]
                yield from (lane for lane in lanes if end is None or lane <= end)
                if len(lanes) < size or (end is not None and at > end):
                    break


def _take(search: Search, limits: Limits, picked: Pick) -> Batch:
    expires_at = search.now + span(limits.lease_seconds or search.channel.lease_seconds)
    chosen = as_json(picked.seqs)
    taken = [Taken(*row) for row in rows(search.connection, "claim", picked=chosen)]
    ((batch_id,),) = rows(
        search.connection,
        "claim_lease",
        token=str(limits.token),
        channel=search.channel.name,
        owner=limits.owner,
        now=search.now,
        expires_at=expires_at,
        units=1 if picked.frozen else _units(search.channel.mode, taken),
        troubled=any(row.troubled for row in taken),
    )
    rows(search.connection, "claim_take", batch_id=batch_id, picked=chosen)
    return Batch(
        channel=search.channel.name,
        token=limits.token,
        lease_expires_at=moment(expires_at),
        entries=_entries(_sorted(search.channel.mode, picked, taken)),
    )


class Taken(NamedTuple):
    """A row of claim.sql: an entry's fields in their order, as stored; then what decides its place and its lease."""

    id: str
    seq: int
    channel: str
    tenant_id: str
    principal: str | None
    group_key: str | None
    event_type: str
    key: str | None
    payload: bytes
    headers: str | None
    payload_size_bytes: int
    priority: int
    traceparent: str | None
    occurred_at: int | None
    created_at: int
    attempt_count: int
    crash_count: int
    intent: str | None
    rank: int
    troubled: int


def _units(mode: Mode, taken: Sequence[Taken]) -> int:
    """What counts when a worker dies: entries, or groups where each is one delivery."""
    return len({row.group_key or row.id for row in taken}) if mode is Mode.COALESCE else len(taken)


def _sorted(mode: Mode, picked: Pick, taken: list[Taken]) -> list[Taken]:
    """Streams by rank; groups by the rank of their first, inside in order of arrival; a frozen batch as it was put."""
    if picked.frozen:
        return sorted(taken, key=lambda row: row.seq)
    by_rank = sorted(taken, key=lambda row: (row.rank, row.seq))
    if mode is Mode.STREAM:
        return by_rank
    ranks: dict[tuple[str, str], int] = {}
    for row in by_rank:
        ranks.setdefault((row.tenant_id, row.group_key or row.id), row.rank)
    return sorted(
        by_rank,
        key=lambda row: (
            ranks[row.tenant_id, row.group_key or row.id],
            row.tenant_id,
            row.group_key is None,
            row.group_key or "",
            row.seq,
        ),
    )


def _entries(taken: Sequence[Taken]) -> tuple[Entry, ...]:
    ids = msgspec.convert([row.id for row in taken], list[UUID])
    return tuple([_entry(entry_id, row) for entry_id, row in zip(ids, taken, strict=True)])


def _entry(entry_id: UUID, row: Taken) -> Entry:
    return Entry(
        entry_id,
        row.seq,
        row.channel,
        row.tenant_id,
        row.principal,
        row.group_key,
        row.event_type,
        row.key,
        row.payload,
        None if row.headers is None else msgspec.json.decode(row.headers),
        row.payload_size_bytes,
        row.priority,
        row.traceparent,
        moment_or_none(row.occurred_at),
        moment(row.created_at),
        row.attempt_count,
        row.crash_count,
        None if row.intent is None else msgspec.json.decode(row.intent),
    )
