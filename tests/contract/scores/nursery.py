"""Replicas that die at a chosen step: `python -m tests.contract.scores.nursery` forks one per line of its input.

A job is a JSON object: where the database and the simulator are (and Redis, if there is one), what to submit, and at
which step to die (0: never). The answer is two lines: the replica's process id, and how it ended: `died` or `done`.
A step is a statement or a round trip to the database, or a side of a call to OSM.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import psycopg

from carrick.outbox.sqlite import database as sqlite_database
from carrick.relay.threads import Threads
from carrick.settings import read_settings
from carrick.testing import PostgresClock, SqliteClock
from carrick.wiring import shared_state
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.wall import Wall
from tests.contract.scores.world import Kind, Leaders, World
from tests.osm import Osm

NOWHERE = Path("no .env file")


class Steps:
    """Counts steps, and ends the process at one of them: no last word."""

    def __init__(self, die_at: int) -> None:
        self._die_at = die_at
        self._lock = threading.Lock()
        self.taken = 0

    def __call__(self, *_: object) -> None:
        with self._lock:
            self.taken += 1
            if self.taken == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)


def install(steps: Steps) -> None:
    """Count from now on."""
    connect, wait, request = sqlite_database.connect, psycopg.Connection.wait, aiohttp.ClientSession._request

    def counted_connect(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.set_trace_callback(steps)
        return connection

    def counted_wait(self: Any, *args: Any, **options: Any) -> Any:
        steps()
        answer = wait(self, *args, **options)
        steps()
        return answer

    async def counted_request(self: Any, *args: Any, **options: Any) -> Any:
        steps()
        answer = await request(self, *args, **options)
        steps()
        return answer

    sqlite_database.connect = counted_connect
    psycopg.Connection.wait = counted_wait  # type: ignore[method-assign]
    aiohttp.ClientSession._request = counted_request  # type: ignore[method-assign]


def kind_of(url: str) -> Kind:
    """The database of that address."""
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        return Kind(url, lambda: SqliteTables(path), SqliteClock(path))
    return Kind(url, lambda: PostgresTables(url), PostgresClock(url))


async def live(job: dict[str, Any], steps: Steps) -> None:
    """Submit what there is to submit, then deliver what is due."""
    osm = Osm(job["osm_port"])
    threads = Threads(2)
    state = shared_state(read_settings({"DATABASE_URL": job["url"], "REDIS_URL": job["redis_url"]}, NOWHERE), threads)
    wall = Wall(Shelf(state, kept_seconds=3600, now=lambda: datetime.now(UTC)))
    world = World(osm, kind_of(job["url"]), Leaders(osm), wall)
    world.client.timeout_seconds = 30
    install(steps)
    for submission in job["submit"]:
        points = [tuple(pair) for pair in submission["points"]]
        await world.submit(points, submission["user"], key=submission["key"])
    for _ in range(job.get("rounds", 1)):
        await world.deliver()
    await world.close()
    await state.close()
    threads.close()


def fork(job: dict[str, Any]) -> dict[str, Any]:
    """Let one replica live, and see how it ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        steps = Steps(job.get("die_at", 0))
        try:
            asyncio.run(live(job, steps))
            os.write(writing, str(steps.taken).encode())
        except BaseException as error:  # noqa: BLE001  nobody else tells it
            os.write(writing, f"{type(error).__name__}: {error}"[:2000].encode())
        os._exit(0)
    os.close(writing)
    tell({"pid": child})
    with os.fdopen(reading) as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return {"end": "died"}
    return {"end": "done", "steps": int(said)} if said.isdecimal() else {"end": "failed", "said": said}


def tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    for line in sys.stdin:
        tell(fork(json.loads(line)))


if __name__ == "__main__":
    main()
