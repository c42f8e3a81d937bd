"""When there is something to do in a channel, for a relay that is about to sleep; and who has which duty.

It costs some index steps per tenant, whatever waits. So it looks at 1000 tenants at most, and where rank is not due
time (priorities, groups, principals behind gates) at the first 100 entries of each: what lies behind them may be due
earlier than it says. A worker that starts again under its old name must see the lease of its former life end, so
leases of all owners count.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from carrick.outbox.channel import Channel, Mode
from carrick.outbox.sqlite.database import rows
from carrick.outbox.sqlite.declaring import known_channel
from carrick.outbox.sqlite.looking import group_due
from carrick.outbox.sqlite.moment import FOREVER, PER_SECOND, span
from carrick.outbox.sqlite.picking import as_json

MOST_TENANTS = 1000
LOOK = 100


class Waiting(NamedTuple):
    """What waits in a channel, as far as gates let it."""

    connection: sqlite3.Connection
    channel: Channel
    held_tenants: set[str]
    held_principals: list[str]
    look: int

    def due_times(self) -> Iterator[int]:
        """When each tenant's next entry is due."""
        name = self.channel.name
        for (tenant,) in rows(self.connection, "claim_lanes", channel=name, after=None, most=MOST_TENANTS):
            if tenant not in self.held_tenants:
                yield from self._lane(tenant)

    def _lane(self, tenant: str) -> Iterator[int]:
        found = self._first(tenant, self.look)
        if self.look < LOOK and any(priority > 0 for _, _, priority in found):
            # it ranks before its time, and before others that are due
            found = self._first(tenant, LOOK)
        if self.channel.mode is Mode.STREAM:
            yield from (due for _, due, _ in found)
            return
        yield from (due for group, due, _ in found if group is None)
        for group in {group for group, _, _ in found if group is not None}:
            yield from self._group(tenant, group)

    def _first(self, tenant: str, look: int) -> list[tuple[Any, ...]]:
        return rows(
            self.connection,
            "rest_lane",
            channel=self.channel.name,
            tenant=tenant,
            held_principals=as_json(self.held_principals),
            look=look,
        )

    def _group(self, tenant: str, group: str) -> Iterator[int]:
        """When a group may go: in order with its first entry, coalesced as a whole; nothing while a lease holds it."""
        one = {"channel": self.channel.name, "tenant": tenant, "group_key": group}
        if self.channel.mode is Mode.ORDERED:
            ((held, due),) = rows(self.connection, "rest_head", **one)
        else:
            ((held, *times),) = rows(
                self.connection, "rest_group", held_principals=as_json(self.held_principals), **one
            )
            due = group_due(*times)
        if not held:
            yield due


def due_in(connection: sqlite3.Connection, name: str) -> float | None:
    """Seconds until something is due, a lease ends or a gate's time is up; None when nothing of that is in sight.

    Raises UnknownChannel.
    """
    channel = known_channel(connection, name)
    ((now,),) = rows(connection, "now")
    ((lease_end, gate_end, closed, low),) = rows(connection, "rest_times", channel=name, now=now, forever=FOREVER)
    times = [time for time in (lease_end, gate_end) if time is not None]
    if not closed:
        times += _due_until(_waiting(connection, channel, now, low=bool(low)), now)
    return (min(times) - now) / PER_SECOND if times else None


def _waiting(connection: sqlite3.Connection, channel: Channel, now: int, *, low: bool) -> Waiting:
    gates = rows(connection, "claim_gates", channel=channel.name, now=now)
    scopes = [scope for scope, half_open in gates if not half_open]
    tenants = {scope.removeprefix("tenant:") for scope in scopes if scope.startswith("tenant:")}
    principals = [scope.removeprefix("principal:") for scope in scopes if scope.startswith("principal:")]
    by_due = channel.mode is Mode.STREAM and not principals and not low
    return Waiting(connection, channel, tenants, principals, 1 if by_due else LOOK)


def _due_until(waiting: Waiting, now: int) -> list[int]:
    """Due times up to the first that has come: after that nothing needs to be looked up."""
    times = []
    for due in waiting.due_times():
        times.append(due)
        if due <= now:
            break
    return times


def take_duty(connection: sqlite3.Connection, duty: str, owner: str, seconds: float) -> bool:
    """Whether the duty is the owner's for so long from now: it had it already, or nobody else has."""
    ((now,),) = rows(connection, "now")
    return bool(rows(connection, "take_duty", duty=duty, owner=owner, now=now, until=now + span(seconds)))
