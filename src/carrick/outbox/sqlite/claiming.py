"""claim: take due entries for a time; tenants take turns."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from operator import itemgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from carrick.entry import Batch, Entry
from carrick.outbox.channel import Mode
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.expiring import return_expired
from carrick.outbox.sqlite.moment import PER_SECOND, moment, span
from carrick.outbox.sqlite.picking import (
    LANE,
    LOWEST,
    NOTHING,
    RANK,
    SEQ,
    TROUBLED,
    Offer,
    Pick,
    Search,
    as_json,
    pick,
    pick_oldest,
)
from carrick.outbox.sqlite.special import pick_special

log = logging.getLogger("carrick.outbox")

CLOCK_AHEAD = span(60)
"""Clocks are set right by less than this now and then, which holds nothing up."""
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
    fresh_seconds: float | None = None


def claim(connection: sqlite3.Connection, name: str, limits: Limits) -> Batch:
    """Take due entries, in delivery order; leases that have ended are taken back first. Raises UnknownChannel."""
    channel = known_channel(connection, name)
    ((now, ahead, *facts),) = rows(connection, "claim_view", channel=name)
    if ahead > CLOCK_AHEAD:
        log.warning("outbox.clock_was_ahead", extra={"seconds": ahead // PER_SECOND})
        rows(connection, "turn_back", now=now)
        ((now, _, *facts),) = rows(connection, "claim_view", channel=name)
    expired, gated, special, low = facts
    if expired:
        return_expired(connection, channel, now, now)
    gates = rows(connection, "claim_gates", channel=name, now=now) if gated else []
    scopes = [scope for scope, half_open in gates if not half_open]
    probe = any(half_open for _, half_open in gates)
    empty = Batch(channel=name, token=limits.token, lease_expires_at=None, entries=())
    if "*" in scopes:
        return empty
    fresh = limits.fresh_seconds is not None
    search = Search(
        connection=connection,
        channel=channel,
        now=now,
        floor=LOWEST if limits.fresh_seconds is None else now - span(limits.fresh_seconds),
        horizon=now + FURTHEST if low else now,
        rows=1 if probe else limits.max_rows or channel.batch_rows,
        bytes=limits.max_bytes or channel.batch_bytes,
        tenant=limits.tenant,
        held_tenants=[scope.removeprefix("tenant:") for scope in scopes if scope.startswith("tenant:")],
        held_principals=[scope.removeprefix("principal:") for scope in scopes if scope.startswith("principal:")],
    )
    comes_apart = bool(special or expired) and not fresh
    picked = None if gates or comes_apart or limits.tenant is not None else _only(search)
    if picked is None:
        picked = _choose(search, comes_apart=comes_apart)
    return _take(search, limits, picked, probe=probe) if picked.offers else empty


def _only(search: Search) -> Pick | None:
    """The entry that waits, if it is the only one of the channel: then turns, ranks and limits have nothing to decide.

    Whoever is woken by a put at rest finds it so. None when there is a choice.
    """
    waiting = search.ask("claim_only", grouped=search.channel.mode is not Mode.STREAM)
    if len(waiting) != 1:
        return None
    *offer, may_go = waiting[0]
    return Pick([offer] if may_go else [])


def _choose(search: Search, *, comes_apart: bool) -> Pick:
    """What to take: by turns; or of the tenant asked for, or the oldest of all, what comes back apart first."""
    channel = search.channel
    one = channel.one_tenant or channel.mode is Mode.COALESCE
    if search.tenant is None and (channel.fair or one):
        apart = {tenant for (tenant,) in search.ask("claim_apart")} if comes_apart else set()
        return _by_turns(search, apart, 1 if one else search.rows)
    picked = pick_special(search) if comes_apart else NOTHING
    if picked.offers:
        return picked
    lanes = search.lanes(None, -1) if search.tenant is None else [search.tenant]
    free = [lane for lane in lanes if lane not in search.held_tenants]
    return pick_oldest(search, free) if search.tenant is None else pick(search, free)


def _by_turns(search: Search, apart: set[str], most: int) -> Pick:
    """Serve the tenants after the one served last, at most so many at once, until some have something to take (G8).

    A tenant with entries that come back apart is served with those, alone, when it is its turn; others share a batch up
    to that tenant. The turn moves on when tenants remain that this claim could not serve.
    """
    round_ = Round(search)
    while chunk := round_.next(most, apart):
        if chunk[0] in apart:
            apart.discard(chunk[0])
            picked = pick_special(search, chunk[0])
            if not picked.offers:
                round_.put_back(chunk)
                continue
        else:
            free = [lane for lane in chunk if lane not in search.held_tenants]
            picked = pick(search, free)
            if picked.cut and picked.offers and len(chunk) > 1:
                # the first entry of each comes before the second of any: those left out are the last in turn
                served = chunk.index(free[max(offer[LANE] for offer in picked.offers)]) + 1
                round_.put_back(chunk[served:])
                chunk = chunk[:served]
        if picked.offers:
            if round_.remains():
                round_.ended_with(chunk[-1])
            return picked
    return NOTHING


class Round:
    """The tenants of a channel in turn: after the one served last, to the end, and from the beginning to that one.

    Claims of fresh entries take turns among themselves: they would else pass over tenants with a backlog only.
    """

    def __init__(self, search: Search) -> None:
        self._connection = search.connection
        self._turns = {"channel": search.channel.name, "fresh": search.floor > LOWEST}
        turn = rows(search.connection, "claim_turn", **self._turns)
        self._tenants = self._walk(search, turn[0][0] if turn else None)
        self._ahead: list[str] = []

    def next(self, most: int, apart: set[str]) -> list[str]:
        """The next tenants to serve together; one with entries that come back apart stands alone."""
        self._look_ahead(most)
        shared = list(takewhile(lambda lane: lane not in apart, self._ahead[:most]))
        chunk = shared or self._ahead[:1]
        self._ahead = self._ahead[len(chunk) :]
        return chunk

    def put_back(self, lanes: list[str]) -> None:
        """These have not been served after all."""
        self._ahead = lanes + self._ahead

    def remains(self) -> bool:
        """Whether tenants wait that were not served in this round."""
        self._look_ahead(1)
        return bool(self._ahead)

    def ended_with(self, tenant: str) -> None:
        """The next claim of this kind begins behind that tenant."""
        rows(self._connection, "claim_set_turn", tenant=tenant, **self._turns)

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


def _take(search: Search, limits: Limits, picked: Pick, *, probe: bool) -> Batch:
    lease_seconds = limits.lease_seconds or search.channel.lease_seconds
    expires_at = search.now + span(lease_seconds)
    if probe:
        rows(search.connection, "claim_probe", channel=search.channel.name, closed_until=expires_at)
    chosen = as_json(offer[SEQ] for offer in picked.offers)
    troubled = any(offer[TROUBLED] for offer in picked.offers)
    taken: dict[int, Taken] = {row[SEQ]: row for row in rows(search.connection, "claim", picked=chosen)}
    troubles = rows(search.connection, "claim_troubles", picked=chosen) if troubled else []
    told = {}
    if search.held_principals and search.channel.mode is Mode.COALESCE and not picked.frozen:
        told = dict(rows(search.connection, "claim_open_intents", picked=chosen))
    ((batch_id,),) = rows(
        search.connection,
        "claim_lease",
        token=str(limits.token),
        channel=search.channel.name,
        owner=limits.owner,
        now=search.now,
        expires_at=expires_at,
        units=1 if picked.frozen else _units(search.channel.mode, taken),
        troubled=troubled,
    )
    rows(search.connection, "claim_take", batch_id=batch_id, picked=chosen)
    in_order = [taken[offer[SEQ]] for offer in _sorted(search.channel.mode, picked, taken)]
    return Batch(
        channel=search.channel.name,
        token=limits.token,
        lease_expires_at=moment(expires_at),
        entries=_entries(search.channel.name, in_order, {seq: trouble for seq, *trouble in troubles}, told),
        lease_seconds=float(lease_seconds),
        probe=probe,
    )


Taken = tuple[Any, ...]
"""A row of claim.sql; its sequence number stands where that of an offer does."""

ID, TENANT_ID, GROUP_KEY = 0, 2, 4


def _units(mode: Mode, taken: Mapping[int, Taken]) -> int:
    """What counts when a worker dies: entries, or groups where each is one delivery."""
    if mode is not Mode.COALESCE:
        return len(taken)
    return len({row[GROUP_KEY] or row[ID] for row in taken.values()})


def _sorted(mode: Mode, picked: Pick, taken: Mapping[int, Taken]) -> list[Offer]:
    """Streams by rank; groups by their first, inside in order of arrival; a frozen batch as it was put.

    Entries of one millisecond have one rank here, so equals stand in order of arrival everywhere.
    """
    if picked.frozen:
        return sorted(picked.offers, key=itemgetter(SEQ))
    by_rank = sorted(picked.offers, key=itemgetter(RANK, SEQ))
    if mode is Mode.STREAM:
        return by_rank
    heads: dict[tuple[str, str], tuple[int, int]] = {}
    places = []
    for _, seq, _, rank, _ in by_rank:
        row = taken[seq]
        head = heads.setdefault((row[TENANT_ID], row[GROUP_KEY] or row[ID]), (rank, seq))
        places.append((head, seq))
    return [offer for _, offer in sorted(zip(places, by_rank, strict=True), key=itemgetter(0))]


def _entries(
    channel: str, taken: Sequence[Taken], troubles: Mapping[int, Sequence[Any]], told: Mapping[int, str | None]
) -> tuple[Entry, ...]:
    """What was taken. `told`: the open intents of others of their groups."""
    ids = msgspec.convert([row[ID] for row in taken], list[UUID])
    found = []
    for new, row in zip(ids, taken, strict=True):
        attempts, crashes, intent = troubles.get(row[SEQ], (0, 0, None))
        found.append(_entry(channel, new, row, attempts, crashes, intent or told.get(row[SEQ])))
    return tuple(found)


def _entry(channel: str, entry_id: UUID, row: Taken, attempts: int, crashes: int, intent: str | None) -> Entry:
    (_, seq, tenant_id, principal, group_key, event_type, key, payload, headers, size, priority, traceparent,
     occurred_at, created_at) = row  # fmt: skip
    return Entry(
        entry_id,
        seq,
        channel,
        tenant_id,
        principal,
        group_key,
        event_type,
        key,
        payload,
        None if headers is None else msgspec.json.decode(headers),
        size,
        priority,
        traceparent,
        None if occurred_at is None else moment(occurred_at),
        moment(created_at),
        attempts,
        crashes,
        None if intent is None else msgspec.json.decode(intent),
    )
