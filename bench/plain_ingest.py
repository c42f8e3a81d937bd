"""What the ingest is measured by: routes of the same server that only parse a body, and ones that store it plainly.

`python -m bench.plain_ingest` serves them. The plain ones do what the least of an ingest must: each event once, durable
before the answer. No limits, no signatures, no faults of single events, no relaying.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import psycopg
from aiohttp import web

from carrick.ingest.batch import Batch
from carrick.ingest.body import MAX_BODY_BYTES, unfolded

PORT = 18082
CONNECTIONS = 8

POSTGRES_TABLE = """
create table if not exists plain_inbox (
  tenant_id text not null, event_id text not null, event_type text not null, edge_id text, occurred_at timestamptz,
  received_at timestamptz not null default now(), payload json not null, primary key (tenant_id, event_id));
create index if not exists plain_inbox_received on plain_inbox (tenant_id, received_at);
"""
POSTGRES_INSERT = """
insert into plain_inbox (tenant_id, event_id, event_type, edge_id, occurred_at, payload)
select %s, e.event_id, e.event_type, %s, e.occurred_at, e.payload
  from unnest(%s::text[], %s::text[], %s::timestamptz[], %s::json[]) as e(event_id, event_type, occurred_at, payload)
    on conflict do nothing
"""
SQLITE_TABLE = """
pragma journal_mode = wal;
pragma synchronous = full;
create table if not exists plain_inbox (
  tenant_id text not null, event_id text not null, event_type text not null, edge_id text, occurred_at text,
  received_at text not null default current_timestamp, payload text not null, primary key (tenant_id, event_id));
create index if not exists plain_inbox_received on plain_inbox (tenant_id, received_at);
"""
SQLITE_INSERT = """
insert into plain_inbox (tenant_id, event_id, event_type, edge_id, occurred_at, payload) values (?, ?, ?, ?, ?, ?)
    on conflict do nothing
"""

Take = Callable[[bytes], Awaitable[int]]
"""Takes a body; how many events."""

_typed = msgspec.json.Decoder(Batch)


async def typed(body: bytes) -> int:
    """Decodes into types and leaves the payloads alone, as the ingest does."""
    return len(_typed.decode(body).events)


async def parsed(body: bytes) -> int:
    """Makes Python values of everything, as a framework does."""
    return len(json.loads(body)["events"])


class PlainPostgres:
    """One statement per batch, on one of a few connections."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._idle: list[psycopg.AsyncConnection] = []
        self._places = asyncio.Semaphore(CONNECTIONS)

    async def take(self, body: bytes) -> int:
        batch = json.loads(body)
        events = batch["events"]
        columns = [[event[name] for event in events] for name in ("event_id", "event_type", "occurred_at")]
        payloads = [json.dumps(event["payload"]) for event in events]
        async with self._places:
            connection = self._idle.pop() if self._idle else await psycopg.AsyncConnection.connect(self._dsn)
            async with connection.transaction():
                await connection.execute(POSTGRES_INSERT, [batch["tenant_id"], batch["edge_id"], *columns, payloads])
            self._idle.append(connection)
        return len(events)


class PlainSqlite:
    """One transaction per batch, in a thread."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.executescript(SQLITE_TABLE)
        self._turn = asyncio.Lock()

    async def take(self, body: bytes) -> int:
        batch = json.loads(body)
        rows = [
            (
                batch["tenant_id"],
                event["event_id"],
                event["event_type"],
                batch["edge_id"],
                event["occurred_at"],
                json.dumps(event["payload"]),
            )
            for event in batch["events"]
        ]
        async with self._turn:
            await asyncio.to_thread(self._store, rows)
        return len(rows)

    def _store(self, rows: list[tuple[Any, ...]]) -> None:
        with self._connection:
            self._connection.executemany(SQLITE_INSERT, rows)


async def serve() -> None:
    """All of them on one port, by name."""
    dsn = os.environ["PLAIN_POSTGRES"]
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute(POSTGRES_TABLE)
    app = web.Application(client_max_size=MAX_BODY_BYTES)
    takes: dict[str, Take] = {
        "typed": typed,
        "parsed": parsed,
        "postgresql": PlainPostgres(dsn).take,
        "sqlite": PlainSqlite(os.environ["PLAIN_SQLITE"]).take,
    }
    for name, take in takes.items():
        app.router.add_post(f"/{name}", _route(take))
    runner = web.AppRunner(app, access_log=None, auto_decompress=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", PORT).start()
    await asyncio.Event().wait()


def _route(take: Take) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        count = await take(unfolded(await request.read(), request.headers.get("content-encoding", "identity")))
        said = {"accepted": count, "duplicated": 0, "rejected": 0, "errors": []}
        return web.Response(body=msgspec.json.encode(said), content_type="application/json")

    return answer


if __name__ == "__main__":
    asyncio.run(serve())
