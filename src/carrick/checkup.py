"""The doctor's questions about everything that is configured: which parts to ask, and how to reach them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TypeVar

from carrick import wiring
from carrick.errors import CarrickError, NothingHeard, SchemaMissing, StoreUnavailable
from carrick.ops import doctor
from carrick.ops.configuration import address, effective
from carrick.ops.doctor import Check, CloudAnswer, Finding
from carrick.outbox import opening
from carrick.outbox.health import Health
from carrick.outbox.migration import indexes_of
from carrick.settings import Settings

T = TypeVar("T")

REACH_REMEDY = "is the database up? DATABASE_URL, its password, firewall, and for a file its folder and permissions"
NEWER_REMEDY = "this database was migrated by a newer release: use that one"


def examine(settings: Settings) -> list[Finding]:
    """All findings about the engine, the forwarder, the ingest and the drain. Changes nothing anywhere."""
    first = doctor.examine([Check("configuration", lambda: doctor.configuration(effective(settings)))])
    return [*first, *_database(settings.database_url), *doctor.examine(_destinations(settings))]


def _database(url: str) -> list[Finding]:
    """What cannot be asked is not: without an answer or without the schema the rest would fail for the same reason."""
    try:
        health, is_server = _health(url)
    except SchemaMissing:
        return [doctor.schema([], is_new=True)]
    except CarrickError as error:
        return [doctor.failed("database", str(error), REACH_REMEDY)]
    reached = doctor.database(health, is_server=is_server)
    (schema,) = doctor.examine([Check("schema", lambda: _schema(url), NEWER_REMEDY)])
    further = [] if schema.status == "FAIL" else doctor.examine(_inside(url, health))
    return [reached, schema, *further]


def _health(url: str) -> tuple[Health, bool]:
    """How the database is, and whether it is a server. Raises a CarrickError."""
    database = opening.named_database(url)
    if database.backend == "sqlite":
        from carrick.outbox.sqlite import health as sqlite

        return sqlite.look(database.target), False
    with opening.psycopg_needed():
        from carrick.outbox.postgres import health as postgres
    return postgres.look(database.target), True


def _schema(url: str) -> Finding:
    pending = wiring.pending_migrations(url)
    return doctor.schema(pending, is_new=len(pending) == sum(len(part.steps) for part in wiring.parts_of(url)))


def _inside(url: str, health: Health) -> list[Check]:
    return [
        Check("indexes", lambda: doctor.indexes(health.indexes, indexes_of(wiring.parts_of(url)))),
        Check("files", lambda: doctor.files(health)),
        Check("transactions", lambda: doctor.transactions(health)),
        Check("dead_rows", lambda: doctor.dead_rows(health)),
        Check("clock", lambda: doctor.clock(_clock_difference(url))),
        Check("listening", lambda: doctor.listening(_why_deaf(url))),
    ]


def _clock_difference(url: str) -> float:
    """The database's clock minus this machine's, in seconds; the way there and back counts half."""
    with wiring.opened_store(url) as store:
        before = datetime.now(UTC)
        theirs = store.now()
        after = datetime.now(UTC)
    return (theirs - before - (after - before) / 2).total_seconds()


def _why_deaf(url: str) -> str:
    """Why nothing that others put would be heard; empty where it would. A file is looked at instead."""
    database = opening.named_database(url)
    if database.backend == "sqlite":
        return ""
    from carrick.outbox.postgres import hearing

    try:
        asyncio.run(hearing.check(database.target))
    except NothingHeard as error:
        return str(error)
    return ""


def _destinations(settings: Settings) -> list[Check]:
    return [
        Check("redis", lambda: _redis(settings)),
        Check("kafka", lambda: _kafka(settings)),
        Check("cloud", lambda: _cloud(settings)),
    ]


def _redis(settings: Settings) -> Finding:
    server = wiring.redis_server(settings)
    if server is None:
        return doctor.not_configured("redis", "REDIS_URL")

    async def asked() -> None:
        async with aclosing(server):
            await server.probe()

    try:
        asyncio.run(asked())
    except StoreUnavailable as error:
        return doctor.redis(str(error))
    return doctor.redis(None)


def _kafka(settings: Settings) -> Finding:
    servers = settings.kafka.bootstrap_servers
    if not servers:
        return doctor.not_configured("kafka", "KAFKA_BOOTSTRAP_SERVERS")
    from carrick.sinks.kafka import KafkaSink

    kafka = settings.kafka
    sink = KafkaSink(servers, client_id=kafka.client_id, config=wiring.kafka_config(kafka))
    return doctor.kafka(servers, is_reachable=_closing(sink.reachable, sink.close))


def _cloud(settings: Settings) -> Finding:
    from carrick.forward.handshake import clock_difference
    from carrick.sinks.http import HttpSink

    if not settings.cloud.url:
        return doctor.not_configured("cloud", "CLOUD_INGESTION_URL")
    sink = HttpSink(settings.cloud, edge_id=settings.edge_id)
    greeting = _closing(sink.knock, sink.close)
    off = clock_difference(greeting.date, datetime.now(UTC))
    return doctor.cloud(address(settings.cloud.url), CloudAnswer(greeting.status, greeting.error, off))


def _closing(ask: Callable[[], Awaitable[T]], close: Callable[[], Awaitable[None]]) -> T:
    """The answer of a sink, which is closed then."""

    async def asked() -> T:
        try:
            return await ask()
        finally:
            await close()

    return asyncio.run(asked())
