"""The figures about leaders' points: what is handed in, what became of it, what waits, whose sign-in is good."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from carrick import wiring as carrick_wiring
from carrick.relay.meter import Meters, NoMeter, Tally
from carrick.relay.threads import Threads
from carrick.testing import SqliteClock
from carrick_scoreboard import wiring
from carrick_scoreboard.metrics import ScoreMeter
from carrick_scoreboard.parts import Parts
from carrick_scoreboard.service import duties
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials
from carrick_scoreboard.store.scores import CHANNEL, Scores
from carrick_scoreboard.store.tables import Tables
from carrick_scoreboard.submitting import Desk, PatrolPoints
from tests.osm import EAGLES, LIONS
from tests.phone import Phone
from tests.service import service
from tests.unit.relay.entries import NOW, batch, entry

SEALED = SealedTokens(b"a", b"r", 9)


class World:
    """A database of its own, and the meter on it."""

    def __init__(self, url: str, tables: Tables) -> None:
        self.outbox = carrick_wiring.open_outbox(url)
        self.outbox.channel(CHANNEL, mode="coalesce")
        self.tables = tables
        self.stored = StoredCredentials(tables)
        self.registry = CollectorRegistry()
        self.meter = ScoreMeter(self.registry, self.outbox.store, self.stored)

    def figures(self) -> dict[tuple[str, ...], float]:
        text = generate_latest(self.registry).decode()
        families = text_string_to_metric_families(text)
        return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


@pytest.fixture
def world(sqlite_path: Path) -> Iterator[World]:
    url = f"sqlite:///{sqlite_path}"
    carrick_wiring.migrate(url)
    with wiring.opened_tables(url) as tables:
        world = World(url, tables)
        yield world
        world.outbox.close()


class Wall:
    async def names(self, _: int) -> dict[str, str]:
        return {}

    async def seen(self, _: int) -> dict[str, int]:
        return {}

    async def tell(self, _: int) -> None:
        pass


def test_what_is_handed_in_counts_once_however_often_it_is_sent(world: World) -> None:
    async def story() -> None:
        threads = Threads(1)
        scores = Scores(world.tables)
        desk = Desk(scores, world.outbox, threads, Wall(), debounce_seconds=60, created=world.meter.created)
        for _ in range(3):
            await desk.submit(7, 1, "key", [PatrolPoints("11", 5), PatrolPoints("12", 1)], "background")
        threads.close()

    asyncio.run(story())
    figures = world.figures()
    assert figures["score_outbox_entries_created_total",] == 2
    assert figures["score_outbox_pending_entries",] == 2


def test_what_became_of_points_is_counted_by_the_relay_for_every_meter(world: World) -> None:
    meter = Meters(NoMeter(), world.meter)
    meter.claimed(CHANNEL, 6, 0.1)
    meter.sent(CHANNEL, 0.3, delivered=True, failed=False)
    meter.finished(CHANNEL, Tally(claimed=6, delivered=3, dead=1, retried=2), batch(entry(1)), NOW)
    meter.lease_lost(CHANNEL, 1)
    figures = world.figures()
    assert figures["score_outbox_entries_processed_total", "completed"] == 3
    assert figures["score_outbox_entries_processed_total", "failed"] == 1
    assert figures["score_outbox_retry_total",] == 2
    assert figures["score_outbox_sync_duration_seconds_bucket", "0.5"] == 1


def test_only_good_sign_ins_are_active(world: World) -> None:
    for user in (1, 2, 3):
        world.stored.save(user, "Ann", "", SEALED)
    world.stored.revoke(2, 1)
    assert world.figures()["user_credentials_active",] == 2


def test_credentials_that_are_forgotten_are_counted(world: World, sqlite_path: Path) -> None:
    world.stored.save(1, "Ann", "", SEALED)
    SqliteClock(sqlite_path).shift(8 * 86_400)

    async def story() -> int:
        threads = Threads(1)
        parts: Any = SimpleNamespace(
            threads=threads,
            stored=world.stored,
            score_meter=world.meter,
            holding=SimpleNamespace(reconcile=None),
            settings=None,
        )
        cleaned = await duties(cast("Parts", parts))["credentials"]()
        threads.close()
        return cleaned

    assert asyncio.run(story()) == 1
    figures = world.figures()
    assert (figures["user_credentials_cleaned_total",], figures["user_credentials_active",]) == (1, 0)


def test_a_database_that_does_not_answer_leaves_the_counts_out(world: World) -> None:
    world.outbox.close()
    figures = world.figures()
    assert ("score_outbox_pending_entries",) not in figures
    assert ("score_outbox_retry_total",) in figures


def test_a_running_scoreboard_counts_the_way_of_points(sqlite_path: Path) -> None:
    async def story() -> None:
        async with service(f"sqlite:///{sqlite_path}") as running, Phone(running.url) as robin:
            await robin.sign_in()
            assert (await robin.give({EAGLES: 5, LIONS: 1}))[0] == 200
            while 'score_outbox_entries_processed_total{status="completed"} 2.0' not in await running.metrics():  # noqa: ASYNC110
                await asyncio.sleep(0.02)  # a server rings no event
            figures = await running.metrics()
        assert "score_outbox_entries_created_total 2.0" in figures
        assert "user_credentials_active 1.0" in figures
        assert f'carrick_entries_total{{channel="{CHANNEL}",outcome="delivered"}} 2.0' in figures

    asyncio.run(story())
