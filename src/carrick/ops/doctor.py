"""What `carrick doctor` makes of the facts: OK, WARN or FAIL, and what to do. Pure but for `examine`, which asks.

FAIL: something does not work until somebody acts. WARN: it works, and will not for long or not as well as it should.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from carrick.errors import CarrickError
from carrick.outbox.health import Health

OLDEST_POSTGRES = 13_00_00
OLDEST_SQLITE = 3_037
LONG_SECONDS = 300.0
"""A transaction that is open longer than this is named."""
MANY_TRANSACTIONS = 100_000
"""How many may have begun since, where nobody can say when it began."""
MANY_DEAD_ROWS = 50_000
LARGE_LOG_BYTES = 64 * 1024 * 1024
CLOCK_SECONDS = 5.0

Status = Literal["OK", "WARN", "FAIL"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the doctor's report. `remedy` is empty where nothing need be done."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


class Check(NamedTuple):
    """One question. A CarrickError that `look` raises is a FAIL, and `remedy` what to do then."""

    name: str
    look: Callable[[], Finding]
    remedy: str = "see the message, and the incident playbook in docs/how-to/operate.md"


def examine(checks: Iterable[Check]) -> list[Finding]:
    """Ask all questions, one after the other; one that fails stops no other."""
    return [_asked(check) for check in checks]


def _asked(check: Check) -> Finding:
    try:
        return check.look()
    except CarrickError as error:
        return failed(check.name, str(error), check.remedy)


def fine(name: str, detail: str) -> Finding:
    return Finding(name=name, status="OK", detail=detail)


def warned(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name=name, status="WARN", detail=detail, remedy=remedy)


def failed(name: str, detail: str, remedy: str) -> Finding:
    return Finding(name=name, status="FAIL", detail=detail, remedy=remedy)


def not_configured(name: str, variable: str) -> Finding:
    return fine(name, f"not configured: {variable} is not set")


def configuration(effective: Mapping[str, str]) -> Finding:
    """Every setting as it is in effect, one a line."""
    return fine("configuration", "\n".join(f"{name}={value}" for name, value in effective.items()))


def database(health: Health, *, is_server: bool) -> Finding:
    """It answers, and is new enough."""
    oldest, needed = (OLDEST_POSTGRES, "PostgreSQL 13") if is_server else (OLDEST_SQLITE, "SQLite 3.37")
    if health.number < oldest:
        return failed("database", f"{health.version} is too old", f"upgrade it to {needed} or later")
    return fine("database", f"{health.version} answers")


def schema(pending: Sequence[str], *, is_new: bool) -> Finding:
    """Every migration of this release is there."""
    if is_new:
        return failed("schema", "there is no schema of Carrick's in this database", "run: carrick migrate")
    if pending:
        return failed("schema", f"migrations are missing: {', '.join(pending)}", "run: carrick migrate")
    return fine("schema", "all migrations of this release are there")


def indexes(found: frozenset[str], wanted: Mapping[str, str]) -> Finding:
    """Every index that the migrations have made is still there and can be used."""
    missing = sorted(wanted.keys() - found)
    if not missing:
        return fine("indexes", f"all {len(wanted)} are there")
    detail = f"missing or broken: {', '.join(missing)}; every claim or put may read whole tables"
    remedy = "drop what is broken of them, then make them again: " + " ".join(wanted[name] for name in missing)
    return warned("indexes", detail, remedy)


def transactions(health: Health) -> Finding:
    """Nobody keeps the database from tidying up."""
    if health.log_bytes is not None:
        return _log(health.log_bytes)
    holder = health.holder
    if holder is None:
        return fine("transactions", "none holds back vacuum")
    since = "for an unknown time" if holder.seconds is None else f"for {holder.seconds:.0f} s"
    detail = f"{holder.who}: open {since}, {holder.transactions} transactions have begun since"
    long = holder.seconds is not None and holder.seconds > LONG_SECONDS
    if not long and not (holder.seconds is None and holder.transactions > MANY_TRANSACTIONS):
        return fine("transactions", f"oldest: {detail}")
    remedy = (
        "end it there; else: select pg_terminate_backend(PID), rollback prepared 'GID' or "
        "select pg_drop_replication_slot('NAME'). Against the next one: idle_in_transaction_session_timeout"
    )
    return warned("transactions", f"vacuum is held back by {detail}", remedy)


def _log(size: int) -> Finding:
    said = f"the WAL file has {size / 1024 / 1024:.1f} MB"
    if size <= LARGE_LOG_BYTES:
        return fine("transactions", said)
    remedy = "find the program that keeps a transaction open on the file (fuser FILE) and end it; then it shrinks"
    return warned("transactions", f"{said}: somebody reads since long, so that it cannot be emptied", remedy)


def files(health: Health) -> Finding:
    """Strangers on this machine cannot read what waits, nor change it."""
    if health.exposed is None:
        return fine("files", "they are the server's")
    if not health.exposed:
        return fine("files", "closed to others on this machine")
    detail = f"everybody on this machine may open {', '.join(health.exposed)}"
    return warned("files", detail, "chmod o= these files; a group that shares them keeps its right")


def dead_rows(health: Health) -> Finding:
    """Vacuum keeps up."""
    found = health.dead_rows
    if found is None:
        return fine("dead_rows", "none")
    detail = f"most in {found.table}: {found.dead} dead beside {found.live} live"
    if found.dead <= max(MANY_DEAD_ROWS, found.live):
        return fine("dead_rows", detail)
    remedy = f"look at `transactions` above first; then: vacuum (analyze) carrick.{found.table}; is autovacuum on?"
    return warned("dead_rows", detail, remedy)


def clock(difference_seconds: float) -> Finding:
    """This machine and the database agree about the time; all times of the outbox are the database's."""
    detail = (
        f"the database's clock is {abs(difference_seconds):.1f} s {'behind' if difference_seconds < 0 else 'ahead'}"
    )
    if abs(difference_seconds) <= CLOCK_SECONDS:
        return fine("clock", detail)
    return warned("clock", detail, "let both machines follow a time server (chrony, systemd-timesyncd)")


def listening(problem: str) -> Finding:
    """What one process puts wakes the relays of the others."""
    if not problem:
        return fine("listening", "notifications of the database arrive")
    remedy = (
        "give relays and services a DATABASE_URL that goes past the pooler, or its session mode; "
        "until then they look every second, and nothing is lost"
    )
    return warned("listening", problem, remedy)


def redis(problem: str | None) -> Finding:
    """Redis can be written to. Without it everything stays correct, on the database alone."""
    if problem is None:
        return fine("redis", "answers and can be written to")
    remedy = "start it, or correct REDIS_URL; meanwhile messages and counters are the database's alone"
    return warned("redis", problem, remedy)


def kafka(servers: str, *, is_reachable: bool) -> Finding:
    """A broker answers."""
    if is_reachable:
        return fine("kafka", f"a broker of {servers} answers")
    remedy = "are the brokers up? KAFKA_BOOTSTRAP_SERVERS, KAFKA_SECURITY_PROTOCOL, firewall; entries wait meanwhile"
    return failed("kafka", f"no broker of {servers} answers", remedy)


class CloudAnswer(NamedTuple):
    """What the cloud said to a batch without events. `status` is None when it said nothing, `error` why."""

    status: int | None
    error: str | None
    clock_difference_seconds: float | None


def cloud(address: str, said: CloudAnswer) -> Finding:
    """The cloud takes our credential. Entries wait while it does not; none is lost."""
    status = said.status
    if status is None:
        remedy = "is the network up? CLOUD_INGESTION_URL, CLOUD_PROXY, CLOUD_CA_FILE; entries wait meanwhile"
        return failed("cloud", f"{address} does not answer ({said.error})", remedy)
    detail = f"{address} answers {status} to a batch without events"
    if status in (401, 403):
        off = said.clock_difference_seconds
        clock = f"; its clock is {off:.0f} s from ours" if off is not None and abs(off) > CLOCK_SECONDS else ""
        remedy = "compare CLOUD_AUTH_MODE and CLOUD_API_KEY or CLOUD_HMAC_SECRET with the cloud's, and the clocks"
        return failed("cloud", f"{detail}: it refuses our credential{clock}", remedy)
    if status in (404, 405, 410) or 300 <= status < 400:
        return failed("cloud", f"{detail}: batches are not taken there", "correct CLOUD_INGESTION_URL")
    if status >= 500 or status == 429:
        return warned("cloud", f"{detail}: it is there and cannot", "ask whoever runs it; entries wait meanwhile")
    return fine("cloud", detail)
