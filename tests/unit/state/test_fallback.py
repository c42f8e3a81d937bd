"""Redis dies, comes back, is reached by some and not by others: no replica ever reads what was written over."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from carrick.errors import StoreUnavailable
from carrick.state.epoch import LEASE_SECONDS, SETTLE_SECONDS, Epoch
from carrick.state.redis import RedisPlace, RedisServer
from carrick.testing import PostgresClock
from carrick.testing.state_contract import run
from tests.redis_server import RedisProcess
from tests.replicas import Time, Wire, replica

NOWHERE = "unix:///no/such/socket"
LONG = 3600


class Hold:
    """Answers of Redis to reads arrive when the test lets them, or fail then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: StoreUnavailable | None = None) -> None:
        self.answered, self.let_go = asyncio.Event(), asyncio.Event()
        read = RedisPlace.get_many

        async def held(place: RedisPlace, keys: Sequence[str]) -> dict[str, bytes]:
            found = await read(place, keys)
            self.answered.set()
            await self.let_go.wait()
            if error is not None:
                raise error
            return found

        monkeypatch.setattr(RedisPlace, "get_many", held)


@pytest.fixture
def socket_path() -> Iterator[Path]:
    """Where a wire may be: the names of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="carrick-wire-") as folder:
        yield Path(folder) / "socket"


def test_work_goes_on_when_redis_is_killed_and_what_it_held_has_vanished(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            assert await state.recover()
            await state.set("k", b"old", ttl=LONG)
            server.kill()
            assert await state.get("k") is None
            await state.set("k", b"new", ttl=LONG)
            assert await state.get("k") == b"new"
            assert (await state.look()).degraded
            assert "Redis" in state.health.problem
            assert state.health.errors == 1

    run(story())


def test_a_value_from_before_the_outage_never_comes_back(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.recover()
            await state.set("k", b"before", ttl=LONG)
            server.kill()
            await state.set("k", b"during", ttl=LONG)
            server.start()
            time.shift(LONG / 100)
            assert await state.recover()
            with server.client() as client:
                assert client.get(next(client.scan_iter(match="k#*"))) == b"before"  # it is still in Redis
            assert await state.get("k") is None
            await state.set("k", b"after", ttl=LONG)
            server.kill()
            assert await state.get("k") is None  # neither is the first outage's

    run(story())


def test_the_same_holds_on_postgresql(postgres_dsn: str, server: RedisProcess) -> None:
    time = Time(PostgresClock(postgres_dsn))

    async def story() -> None:
        async with (
            replica(postgres_dsn, RedisServer(server.url), time) as one,
            replica(postgres_dsn, RedisServer(server.url), time) as other,
        ):
            await one.recover()
            await one.set("k", b"before", ttl=LONG)
            assert await other.get("k") == b"before"
            server.kill()
            await one.set("k", b"during", ttl=LONG)
            assert await other.get("k") == b"during"
            server.start()
            time.shift(60)
            assert await other.recover()
            assert await one.get("k") is None
            await other.set("k", b"after", ttl=LONG)
            assert await one.get("k") == b"after"
            server.kill()
            assert await other.get("k") is None

    run(story())


def test_a_restart_that_nobody_saw_brings_no_older_value_back(path: Path, time: Time) -> None:
    server = RedisProcess(keep="when told")

    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as state,
            replica(path, RedisServer(server.url), time) as late,
        ):
            await state.recover()
            await state.set("k", b"1", ttl=LONG)
            with server.client() as client:
                client.save()
            await state.set("k", b"2", ttl=LONG)
            await late.look()  # it is in the same epoch, and has no connection that could break
            server.restart()
            assert await late.get("k") is None
            assert await state.get("k") is None
            assert state.health.degraded

    try:
        run(story())
    finally:
        server.close()


def test_a_replica_that_still_reaches_redis_reads_what_another_wrote_in_the_database(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as there,
            replica(path, RedisServer(NOWHERE), time) as cut_off,
        ):
            await there.recover()
            await there.set("k", b"1", ttl=LONG)
            await cut_off.set("k", b"2", ttl=LONG)
            assert await there.get("k") == b"2"

    run(story())


def test_an_answer_of_redis_that_was_overtaken_on_its_way_does_not_count(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        held = Hold(monkeypatch)
        async with (
            replica(path, RedisServer(server.url), time) as slow,
            replica(path, RedisServer(NOWHERE), time) as cut_off,
        ):
            await slow.recover()
            await slow.set("k", b"1", ttl=LONG)
            reading = asyncio.create_task(slow.get("k"))
            await held.answered.wait()  # Redis has said 1
            await cut_off.set("k", b"2", ttl=LONG)
            held.let_go.set()
            assert await reading == b"2"

    run(story())


def test_an_epoch_that_was_read_too_long_ago_does_not_count_however_late_the_database_said_it(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, let_go = threading.Event(), threading.Event()

    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as first,
            replica(path, RedisServer(server.url), time) as slow,
            replica(path, RedisServer(NOWHERE), time) as cut_off,
        ):
            await first.recover()
            await first.set("k", b"1", ttl=LONG)
            current = slow._tables.current

            def held() -> Epoch:
                epoch = current()
                read.set()
                assert let_go.wait(20)
                return epoch

            monkeypatch.setattr(slow._tables, "current", held)
            reading = asyncio.create_task(slow.get("k"))
            await asyncio.to_thread(read.wait)
            await cut_off.set("k", b"2", ttl=LONG)
            let_go.set()
            assert await reading == b"2"

    run(story())


def test_a_failure_that_is_told_after_the_switch_changes_nothing(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        held = Hold(monkeypatch, StoreUnavailable("Redis cannot be used"))
        async with replica(path, RedisServer(server.url), time) as slow, replica(path, None, time) as without:
            await slow.recover()
            reading = asyncio.create_task(slow.get("k"))
            await held.answered.wait()
            await without.set("k", b"1", ttl=LONG)
            before = without._tables.current().number
            held.let_go.set()
            assert await reading == b"1"
            assert without._tables.current().number == before

    run(story())


def test_an_answer_that_took_longer_than_the_lease_counts_if_the_epoch_still_stands(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        held = Hold(monkeypatch)
        async with replica(path, RedisServer(server.url), time) as slow:
            await slow.recover()
            await slow.set("k", b"1", ttl=LONG)
            reading = asyncio.create_task(slow.get("k"))
            await held.answered.wait()
            time.shift(10 * LEASE_SECONDS)
            held.let_go.set()
            assert await reading == b"1"
            assert not slow.health.degraded

    run(story())


def test_a_replica_that_comes_to_the_database_early_waits_until_nobody_believes_redis(
    path: Path, time: Time, server: RedisProcess
) -> None:
    slept: list[float] = []

    async def noted(seconds: float) -> None:
        slept.append(seconds)
        await time.sleep(seconds)

    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as there, replica(path, None, time) as late:
            await there.recover()
            await there.set("k", b"1", ttl=LONG)
            late._switch._sleep = noted
            epoch = late._tables.current()
            late._tables.raise_from(epoch.number, "next", None, 0)  # somebody else has left Redis just now
            assert await there.get("k") == b"1"  # within its lease
            await late.set("k", b"2", ttl=LONG)
            assert sum(slept) > LEASE_SECONDS
            assert await there.get("k") == b"2"

    run(story())


def test_a_replica_on_the_database_notices_that_the_others_are_back_on_redis(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with (
            replica(path, RedisServer(server.url), time) as first,
            replica(path, RedisServer(server.url), time) as second,
        ):
            await first.set("k", b"1", ttl=LONG)
            assert await first.get("k") == b"1"
            assert await second.recover()
            await second.set("k", b"2", ttl=LONG)
            assert await first.get("k") == b"2"
            assert [item.value for item in await first.scan("k")] == [b"2"]

    run(story())


def test_an_increment_whose_answer_was_lost_is_not_counted_twice(
    path: Path, time: Time, server: RedisProcess, socket_path: Path
) -> None:
    async def story() -> None:
        wire = Wire(server.socket, socket_path)
        async with wire, replica(path, RedisServer(wire.url), time) as state:
            await state.recover()
            wire.swallow = b"INCRBY"
            assert await state.increment("hits", ttl=LONG) == 1
            with server.client() as client:
                assert client.get(next(client.scan_iter(match="hits#*"))) == b"1"  # Redis has counted it, too
            assert await state.increment("hits", ttl=LONG) == 2

    run(story())


def test_a_redis_that_takes_connections_and_says_nothing_is_left(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url, timeout=0.2), time) as state:
            await state.recover()
            await state.set("k", b"1", ttl=LONG)
            server.freeze()
            await state.set("k", b"2", ttl=LONG)
            server.thaw()
            assert await state.get("k") == b"2"

    run(story())


def test_fifty_tasks_that_meet_a_dead_redis_raise_one_epoch(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.recover()
            before = state._tables.current().number
            server.kill()
            sums = await asyncio.gather(*(state.increment("hits", ttl=LONG) for _ in range(50)))
            assert sorted(sums) == list(range(1, 51))
            assert state._tables.current().number == before + 1

    run(story())


def test_a_process_without_redis_takes_the_others_to_the_database(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as with_redis, replica(path, None, time) as without:
            await with_redis.recover()
            await with_redis.set("k", b"1", ttl=LONG)
            await without.set("k", b"2", ttl=LONG)
            assert await with_redis.get("k") == b"2"
            assert with_redis.health.degraded
            assert not without.health.degraded

    run(story())


def test_another_database_on_the_same_redis_sees_nothing_of_the_first(
    path: Path, time: Time, server: RedisProcess, tmp_path: Path
) -> None:
    from carrick.wiring import migrate

    migrate(f"sqlite:///{tmp_path / 'new.db'}")

    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as old:
            await old.recover()
            await old.set("k", b"1", ttl=LONG)
        async with replica(tmp_path / "new.db", RedisServer(server.url)) as new:
            assert await new.recover()
            assert await new.get("k") is None

    run(story())


def test_redis_is_not_gone_back_to_while_answers_of_the_epoch_before_may_count(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrick.state.epoch.FIRST_HOLD_OFF_SECONDS", 0.0)

    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.recover()
            epoch = state._tables.current()
            state._tables.raise_from(epoch.number, "next", None, 0)
            time.shift(LEASE_SECONDS)
            assert not await state.recover()
            time.shift(SETTLE_SECONDS)
            assert await state.recover()

    run(story())


def test_redis_is_left_alone_for_longer_after_each_failure_and_forgiven_after_a_steady_time(
    path: Path, time: Time, server: RedisProcess
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            assert await state.recover()
            waited = []
            for steady in (0, 0, 0, LONG):
                time.shift(steady)
                server.kill()
                await state.get("k")
                server.start()
                waits = 0
                while not await state.recover():
                    time.shift(1)
                    waits += 1
                waited.append(waits)
            first, second, third, forgiven = waited
            assert first < second < third
            assert forgiven < first + 1

    run(story())


def test_a_redis_that_is_still_away_changes_nothing(path: Path, time: Time) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(NOWHERE), time) as state:
            await state.set("k", b"1", ttl=LONG)
            assert not await state.recover()
            assert await state.get("k") == b"1"
            assert state.health.degraded
            assert state.health.errors == 1

    run(story())


def test_a_redis_that_cannot_be_written_to_is_not_gone_back_to(path: Path, time: Time, server: RedisProcess) -> None:
    async def story() -> None:
        with server.client() as client:
            client.config_set("maxmemory", "1")
            async with replica(path, RedisServer(server.url), time) as state:
                assert not await state.recover()
                client.config_set("maxmemory", "0")
                assert await state.recover()

    run(story())


def test_every_switch_is_logged(path: Path, time: Time, server: RedisProcess, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.recover()
            server.kill()
            await state.get("k")
            server.start()
            time.shift(60)
            await state.recover()

    with caplog.at_level(logging.INFO, "carrick.state"):
        run(story())
    said = [record.message for record in caplog.records]
    assert said == ["state.on_database", "state.on_redis", "state.redis_failed", "state.on_database", "state.on_redis"]


def test_a_failure_of_the_database_is_told_even_if_redis_answers(
    path: Path, time: Time, server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with replica(path, RedisServer(server.url), time) as state:
            await state.recover()
            await state.set("k", b"1", ttl=LONG)

            def away() -> Epoch:
                raise StoreUnavailable("the database does not answer")

            monkeypatch.setattr(state._tables, "current", away)
            assert await state.get("k") == b"1"  # within the lease
            time.now += LEASE_SECONDS
            with pytest.raises(StoreUnavailable):
                await state.get("k")

    run(story())
