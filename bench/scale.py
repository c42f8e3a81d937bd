"""Where one PostgreSQL ends, and what several give: a model with measured costs, stepped through a day.

    python -m bench.scale             the tables of docs/explanation/scale.md
    python -m bench.scale --measure   the bytes that an entry costs, on a real server

Costs are measured on one machine with two cores (docs/decisions/0004-figures.md). That more cores do more in proportion is an
assumption, and so is everything under `Machine`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import NamedTuple

PUT_US = 24.0
"""Core time of an entry that is put in bulk: put_many of 1000, client and server."""
PUT_ALONE_US = 190.0
"""Core time of an entry that is put alone, estimated: 48 µs in the server when warm, twice that cold, as much in the client."""
DRAIN_US = 2e6 / 56_714
"""Core time of an entry that is relayed: two relays keep two cores busy at 56,714 a second."""
WAL_PUT = 604.0
"""Bytes of the write-ahead log for a put, with 200 bytes of payload."""
WAL_DRAIN = 413.0
"""The same for its way out: claim and finish in batches of 1000."""
DISK_WAITING = 512.0
"""Bytes on disk, indexes included, for an entry that waits."""
DISK_KEPT = 482.0
"""The same for one that is delivered and kept."""

BUSY = 0.6
"""The part of the cores that the outbox may have at the busiest hour: the rest is the application's, and vacuum's."""
KEPT_DAYS = 7
TENANTS = 1_000
STEP_SECONDS = 60


class Machine(NamedTuple):
    """A database server. `wal` and `disk` are what it can write in a second and hold for the outbox, in bytes."""

    cores: int
    wal: float
    disk: float


MACHINES = (Machine(2, 100e6, 0.1e12), Machine(8, 200e6, 1e12), Machine(32, 400e6, 4e12))


class Limits(NamedTuple):
    """Entries per second, on average over a day, that each part of a machine bears."""

    cpu: float
    wal: float
    disk: float

    @property
    def first(self) -> str:
        """What ends first."""
        return min(self._fields, key=lambda name: float(getattr(self, name)))

    @property
    def rate(self) -> float:
        return min(self)


def load(second: float) -> float:
    """The arrivals at that second of the day, as a multiple of the average: quiet at night, 1.8 in the afternoon."""
    return 1 - 0.8 * math.cos(2 * math.pi * (second / 86_400 - 1 / 8))


PEAK = max(load(second) for second in range(0, 86_400, STEP_SECONDS))


def limits(machine: Machine, put_us: float = PUT_US) -> Limits:
    """What one database bears."""
    cpu = machine.cores * 1e6 * BUSY / (put_us + DRAIN_US)
    return Limits(
        cpu / PEAK, machine.wal / (WAL_PUT + WAL_DRAIN) / PEAK, machine.disk / (DISK_KEPT * KEPT_DAYS * 86_400)
    )


def shares(databases: int) -> list[float]:
    """The part of all entries on each database: tenant n sends an n-th of what the first one sends."""
    parts = [0.0] * databases
    for tenant in range(1, TENANTS + 1):
        parts[tenant * 2_654_435_761 % 2**32 * databases >> 32] += 1 / tenant
    return [part / sum(parts) for part in parts]


class Outage(NamedTuple):
    """A destination that was away: the most that waited, its bytes, and how long catching up took."""

    waiting: float
    disk: float
    hours: float


def outage(machine: Machine, rate: float, hours: float) -> Outage:
    """A day on which the destination is away from ten in the morning, minute by minute. Puts go first."""
    waiting = most = 0.0
    caught_up = away_until = (10 + hours) * 3_600
    for second in range(0, 3 * 86_400, STEP_SECONDS):
        arrived = rate * load(second) * STEP_SECONDS
        left = machine.cores * 1e6 * BUSY * STEP_SECONDS - arrived * PUT_US
        away = 10 * 3_600 <= second < away_until
        waiting = max(0.0, waiting + arrived - (0.0 if away else max(0.0, left) / DRAIN_US))
        most = max(most, waiting)
        if second >= away_until and waiting > 0:
            caught_up = second + STEP_SECONDS
    return Outage(most, most * DISK_WAITING, (caught_up - away_until) / 3_600)


def report() -> str:
    return "\n".join([*_alone(), "", *_sharded(), "", *_outages()])


def _alone() -> Iterator[str]:
    yield "One database, entries per second on average over a day:"
    yield f"{'cores':>6} {'cpu':>9} {'wal':>9} {'disk':>9} {'put alone':>10}   ends first  WAL at the busiest hour"
    for machine in MACHINES:
        found, alone = limits(machine), limits(machine, PUT_ALONE_US)
        wal = found.rate * PEAK * (WAL_PUT + WAL_DRAIN) / 1e6
        row = f"{machine.cores:>6} {found.cpu:>9,.0f} {found.wal:>9,.0f} {found.disk:>9,.0f} {alone.cpu:>10,.0f}"
        yield f"{row}   {found.first:<10}  {wal:,.0f} MB/s"


def _sharded() -> Iterator[str]:
    machine = MACHINES[1]
    yield f"Several databases of {machine.cores} cores, {TENANTS:,} tenants, each on one of them by a hash of its name (cores alone):"
    yield f"{'databases':>10} {'even share':>11} {'busiest has':>12} {'entries/s':>10} {'of ideal':>9}"
    for databases in (1, 2, 4, 8, 16):
        busiest = max(shares(databases))
        rate = limits(machine).cpu / busiest
        ideal = rate / (limits(machine).cpu * databases)
        yield f"{databases:>10} {1 / databases:>11.3f} {busiest:>12.3f} {rate:>10,.0f} {ideal:>9.2f}"


def _outages() -> Iterator[str]:
    machine = MACHINES[1]
    yield f"A destination away for two hours, one database of {machine.cores} cores:"
    yield f"{'of its limit':>13} {'entries/s':>10} {'waiting':>12} {'on disk':>9} {'catching up':>12}"
    for part in (0.25, 0.5, 0.75, 0.9):
        rate = part * limits(machine).cpu
        found = outage(machine, rate, 2)
        yield f"{part:>13.0%} {rate:>10,.0f} {found.waiting:>12,.0f} {found.disk / 1e9:>6,.1f} GB {found.hours:>10.1f} h"


def measure(entries: int = 200_000) -> str:
    """Bytes per entry on a real PostgreSQL."""
    import psycopg

    from bench.postgres import database, drain, fill

    with database() as url, psycopg.connect(url, autocommit=True) as connection:

        def number(query: str) -> float:
            row = connection.execute(query.encode()).fetchone()
            assert row is not None
            return float(row[0])

        def wal() -> float:
            return number("select pg_current_wal_lsn() - '0/0'::pg_lsn")

        size = "select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = 'carrick' and c.relkind = 'r'"
        empty, before = number(size), wal()
        fill(url, entries)
        put, waiting = wal() - before, number(size) - empty
        before = wal()
        drain(url, 1_000)
        drained = wal() - before
        connection.execute("vacuum full")
        kept = number(size) - empty
    each = (
        f"{name} {value / entries:.0f}"
        for name, value in (
            ("WAL of a put", put),
            ("WAL of its way out", drained),
            ("waiting", waiting),
            ("kept", kept),
        )
    )
    return "bytes per entry: " + ", ".join(each)


if __name__ == "__main__":
    print(measure() if "--measure" in sys.argv[1:] else report())
