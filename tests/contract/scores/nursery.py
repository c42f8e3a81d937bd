"""Replicas that die at a chosen step: `python -m tests.contract.scores.nursery` forks one per line of its input.

A job is a JSON object: where the database and the simulator are, what to submit, what to `decide` about dead points,
and `at` which step to die (0: never), or with `stops` to stand still. The answer is two lines: the replica's process
id, and how it ended: `died`, or `done` with the names of its steps; one that stands still says `stopped` before.
A step is a statement (SQLite) or a side of a round trip (PostgreSQL), on whichever connection, or a side of a call to
OSM.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
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
from carrick_scoreboard.osm.answers import Patrol
from carrick_scoreboard.patrols.known import SectionScores
from carrick_scoreboard.patrols.shelf import Shelf
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.scores import Update
from carrick_scoreboard.store.sqlite.tables import SqliteTables
from carrick_scoreboard.wall import Wall
from tests.contract.scores.world import Kind, Leaders, World
from tests.osm import EAGLES, EVENING, LIONS, ROBIN, SCOUTS, TERM, Osm

NOWHERE = Path("no .env file")
SHOWN = SectionScores(
    term_id=TERM,
    patrols=(Patrol(str(EAGLES), "Eagles", 0), Patrol(str(LIONS), "Lions", 0)),
    cached_at=EVENING,
    valid_until=EVENING,
)
"""What displays have when a replica begins: the scores there must follow."""


class Steps:
    """Counts steps, and ends the process at one of them, or stops it: no last word."""

    def __init__(self, at: int, fate: signal.Signals) -> None:
        self._at = at
        self._fate = fate
        self._lock = threading.Lock()
        self.taken: list[str] = []

    def __call__(self, name: str) -> None:
        with self._lock:
            self.taken.append(name.partition("\n")[0][:80])
            if len(self.taken) == self._at:
                os.kill(os.getpid(), self._fate)


def install(steps: Steps) -> None:
    """Count from now on. Connections that were opened before would not be seen."""
    connect, wait = sqlite_database.connect, psycopg.Connection.wait

    def counted_connect(*args: Any, **options: Any) -> Any:
        connection = connect(*args, **options)
        connection.set_trace_callback(steps)
        return connection

    def counted_wait(self: Any, *args: Any, **options: Any) -> Any:
        steps("before PostgreSQL")
        answer = wait(self, *args, **options)
        steps("after PostgreSQL")
        return answer

    sqlite_database.connect = counted_connect
    psycopg.Connection.wait = counted_wait  # type: ignore[method-assign]
    count_calls(aiohttp.ClientSession, "_request", steps)


def count_calls(kind: type, method: str, steps: Steps) -> None:
    """Both sides of what is called; its first argument is its name."""
    call = getattr(kind, method)

    async def counted(self: Any, name: str, *args: Any, **options: Any) -> Any:
        steps(f"before {name}")
        answer = await call(self, name, *args, **options)
        steps(f"after {name}")
        return answer

    setattr(kind, method, counted)


def kind_of(url: str) -> Kind:
    """The database of that address."""
    if url.startswith("sqlite:///"):
        path = url.removeprefix("sqlite:///")
        return Kind(url, lambda: SqliteTables(path), SqliteClock(path))
    return Kind(url, lambda: PostgresTables(url), PostgresClock(url))


async def live(job: dict[str, Any], steps: Steps) -> None:
    """Submit what there is to submit, decide what there is to decide, then deliver what is due."""
    install(steps)
    osm, kind = Osm(job["osm_port"]), kind_of(job["url"])
    threads = Threads(2)
    state = shared_state(read_settings({"DATABASE_URL": job["url"]}, NOWHERE), threads)
    shelf = Shelf(state, kept_seconds=3600, now=lambda: datetime.now(UTC))
    await shelf.put_scores(SCOUTS, SHOWN)
    world = World(osm, kind, Leaders(osm), Wall(shelf))
    world.client.timeout_seconds = job.get("timeout", 30)
    for submission in job["submit"]:
        points = [tuple(pair) for pair in submission["points"]]
        await world.submit(points, submission["user"], key=submission["key"])
    if "decide" in job:
        await decide(world, job["decide"])
    for _ in range(job.get("rounds", 1)):
        await world.deliver()
    await world.close()
    await state.close()
    threads.close()


async def decide(world: World, choice: str) -> None:
    """Robin tries all dead points again, or discards them."""
    act: Callable[[Update], object] = world.scores.retry if choice == "retry" else world.scores.discard
    for update in await world.threads.call(world.scores.unfinished, ROBIN):
        if update.state == "dead":
            await world.threads.call(act, update)


def fork(job: dict[str, Any]) -> dict[str, Any]:
    """Let one replica live, and see how it ends."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        steps = Steps(job.get("at", 0), signal.SIGSTOP if job.get("stops") else signal.SIGKILL)
        try:
            asyncio.run(live(job, steps))
            os.write(writing, json.dumps(steps.taken).encode())
        except BaseException as error:  # noqa: BLE001  nobody else tells it
            os.write(writing, json.dumps(f"{type(error).__name__}: {error}"[:2000]).encode())
        os._exit(0)
    os.close(writing)
    tell({"pid": child})
    _, status = os.waitpid(child, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        tell({"end": "stopped"})
        _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        said = answer.read()
    if os.WIFSIGNALED(status):
        return {"end": "died"}
    return {"end": "done" if said.startswith("[") else "failed", "said": json.loads(said)}


def tell(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main() -> None:
    logging.getLogger().addHandler(logging.NullHandler())  # what a replica says on its way is not looked at
    for line in sys.stdin:
        tell(fork(json.loads(line)))


if __name__ == "__main__":
    main()
