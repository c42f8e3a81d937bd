"""The relay on every store: claim, deliver, finish, through everything that goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from carrick.entry import Entry, Outcome, State
from carrick.errors import StoreUnavailable
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.migrate import migrate
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.relay import breaker
from carrick.relay.janitor import tidy_once
from carrick.relay.relay import Relay, RelaySettings
from carrick.relay.threads import Threads
from carrick.relay.wake import Bells
from carrick.sinks.sink import Refused, Report, Results, Unavailable
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.samples import DAY, claim, declare, ids, put, put_run, sample, states
from tests.contract.scripted_sink import ScriptedSink, delivered, down

SETTINGS = RelaySettings(owner="relay-1", in_flight=2, poll_seconds=600)
PATIENCE_SECONDS = 60


def test_of(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story; one that hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await story()

    asyncio.run(bounded())


test_of.__test__ = False  # type: ignore[attr-defined]


@asynccontextmanager
async def running(
    store: Store, sink: ScriptedSink, channel: Channel, settings: RelaySettings = SETTINGS
) -> AsyncIterator[Relay]:
    """A relay at work inside, with bells; it is stopped afterwards."""
    bells = Bells(store)
    relay = Relay(store, sink, channel, settings, bell=bells.of(channel.name))
    listening = asyncio.create_task(bells.listen())
    work = asyncio.create_task(relay.run())
    try:
        yield relay
    finally:
        relay.stop()
        await work
        listening.cancel()
        await asyncio.wait([listening])


async def until(condition: Callable[[], bool]) -> None:
    """Return when the database says that it is so."""
    while not await asyncio.to_thread(condition):  # noqa: ASYNC110  a database rings no event
        await asyncio.sleep(0.005)


def all_in(store: Store, entry_ids: Sequence[UUID], state: State) -> Callable[[], bool]:
    return lambda: set(states(store, entry_ids)) == {state}


class RelayContract:
    """What every relay does, whatever its database."""

    def test_everything_is_delivered_once_and_in_order(self, store: Store) -> None:
        channel = declare(store, batch_rows=10)
        waiting = put_run(store, 95)

        async def story() -> None:
            sink = ScriptedSink()
            tally = await Relay(store, sink, channel, SETTINGS).once()
            assert sorted(sink.seen) == sorted(waiting)
            assert (tally.claimed, tally.delivered) == (95, 95)

        test_of(story)
        assert set(states(store, waiting)) == {State.DELIVERED}

    def test_an_entry_put_while_the_relay_rests_wakes_it(self, store: Store, others: Store) -> None:
        channel = declare(store)

        async def story() -> None:
            sink = ScriptedSink()
            async with running(store, sink, channel):
                for who in (store, others, store):
                    before = len(sink.seen)
                    entry_id = await asyncio.to_thread(put, who)
                    await sink.until(lambda before=before: len(sink.seen) > before)  # type: ignore[misc]
                    await until(all_in(store, [entry_id], State.DELIVERED))

        test_of(story)

    def test_an_entry_that_is_due_later_wakes_it_by_itself(self, store: Store) -> None:
        channel = declare(store)

        async def story() -> None:
            sink = ScriptedSink()
            async with running(store, sink, channel):
                await asyncio.to_thread(put, store, delay_seconds=0.2)
                await sink.until(lambda: len(sink.seen) == 1)

        test_of(story)

    def test_a_lease_that_moved_on_leaves_the_entries_to_whoever_has_them(
        self, store: Store, clock: Clock, others: Store
    ) -> None:
        channel = declare(store)
        waiting = put_run(store, 3)

        async def story() -> None:
            go_on = asyncio.Event()

            async def slow(entries: Sequence[Entry]) -> Report:
                await go_on.wait()
                return delivered(entries)

            sink = ScriptedSink(slow)
            relay = Relay(store, sink, channel, SETTINGS)
            work = asyncio.create_task(relay.once())
            await sink.until(lambda: len(sink.calls) == 1)
            await asyncio.to_thread(clock.shift, 1000)
            taken = await asyncio.to_thread(lambda: [claim(others, owner="other", max_rows=1) for _ in range(3)])
            assert {entry.id for batch in taken for entry in batch} == set(waiting)
            sink.answer = delivered
            go_on.set()
            tally = await work
            assert (tally.delivered, tally.lost) == (0, 3)
            for batch in taken:
                await asyncio.to_thread(others.finish_all, batch.token)

        test_of(story)
        assert set(states(store, waiting)) == {State.DELIVERED}

    def test_a_destination_that_is_down_costs_no_attempt_and_closes_the_gate(self, store: Store) -> None:
        channel = declare(store)
        waiting = put_run(store, 5)

        async def story() -> None:
            tally = await Relay(store, ScriptedSink(down), channel, SETTINGS).once()
            assert tally.released == 5

        test_of(story)
        (gate,) = store.gates("things")
        assert (gate.scope, gate.consecutive_failures) == ("*", 1)
        assert "connect_refused" in gate.reason
        assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [0] * 5
        assert set(states(store, waiting)) == {State.PENDING}

    def test_after_the_gates_time_one_entry_tries_and_then_all_go(self, store: Store, clock: Clock) -> None:
        channel = declare(store)
        waiting = put_run(store, 5)

        async def story() -> None:
            sink = ScriptedSink(down)
            relay = Relay(store, sink, channel, SETTINGS)
            await relay.once()
            await asyncio.to_thread(clock.shift, 10)
            sink.calls.clear()
            sink.answer = delivered
            tally = await Relay(store, sink, channel, SETTINGS).once()
            assert [len(call) for call in sink.calls] == [1, 4]
            assert tally.delivered == 5

        test_of(story)
        assert not store.gates("things")
        assert set(states(store, waiting)) == {State.DELIVERED}

    def test_a_probe_in_vain_closes_the_gate_for_longer(self, store: Store, clock: Clock) -> None:
        channel = declare(store)
        put_run(store, 5)

        async def story() -> None:
            sink = ScriptedSink(down)
            for _ in range(6):
                await Relay(store, sink, channel, SETTINGS).once()
                await asyncio.to_thread(clock.shift, 1000)
            assert [len(call) for call in sink.calls] == [5, 1, 1, 1, 1, 1]
            sink.answer = lambda _: Unavailable(code="http_503", message="later", seconds=2000)
            await Relay(store, sink, channel, SETTINGS).once()

        test_of(story)
        (gate,) = store.gates("things")
        assert gate.consecutive_failures == 6
        assert gate.reason == "http_503: later"

    def test_a_returning_network_is_noticed_before_the_backoff_is_over(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        channel = declare(store)
        waiting = put_run(store, 5)
        store.close_gate("things", "*", 0, "warm-up")
        for _ in range(12):
            store.fail_gate("things", "*", "connect_refused: long outage", cap_seconds=3600, probe=True)
        store.close_gate("things", "*", 0, "connect_refused: long outage")
        monkeypatch.setattr(breaker, "KNOCK_SECONDS", 0.01)

        async def story() -> None:
            sink = ScriptedSink(down)
            sink.up = False
            async with running(store, sink, channel):
                await sink.until(lambda: len(sink.calls) == 1)
                await until(lambda: bool(store.gates("things")))
                sink.answer = delivered
                sink.up = True
                await until(all_in(store, waiting, State.DELIVERED))

        test_of(story)
        assert not store.gates("things")

    def test_a_destination_that_asks_for_time_gets_it(self, store: Store, clock: Clock) -> None:
        channel = declare(store)
        waiting = put_run(store, 2)

        async def story() -> None:
            sink = ScriptedSink(lambda _: Unavailable(code="http_429", message="slow down", seconds=30))
            await Relay(store, sink, channel, SETTINGS).once()
            sink.answer = delivered
            await asyncio.to_thread(clock.shift, 29)
            assert (await Relay(store, sink, channel, SETTINGS).once()).claimed == 0
            await asyncio.to_thread(clock.shift, 2)
            assert (await Relay(store, sink, channel, SETTINGS).once()).delivered == 2
            assert [len(call) for call in sink.calls] == [2, 2]

        test_of(story)
        assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [1, 1]

    @pytest.mark.parametrize(
        "report",
        [
            Unavailable(code="http_503", message="later", seconds=1),
            Unavailable(code="connect_refused", message="nobody"),
            Results(outcomes={}),
        ],
        ids=["asked for time", "down", "answered"],
    )
    def test_a_gate_that_a_person_closed_meanwhile_stays_closed(
        self, store: Store, clock: Clock, report: Report
    ) -> None:
        channel = declare(store)
        put_run(store, 2)
        store.fail_gate("things", "*", "connect_refused: before", cap_seconds=60)
        clock.shift(60)

        async def story() -> None:
            def meanwhile(_: Sequence[Entry]) -> Report:
                store.close_gate("things", "*", None, "closed by hand")
                return report

            await Relay(store, ScriptedSink(meanwhile), channel, SETTINGS).once()

        test_of(story)
        (gate,) = store.gates("things")
        assert (gate.closed_until, gate.reason) == (None, "closed by hand")

    def test_one_poisonous_entry_among_a_hundred_dies_alone(self, store: Store) -> None:
        channel = declare(store)
        waiting = put_run(store, 100)
        bad = waiting[42]

        async def story() -> None:
            def picky(entries: Sequence[Entry]) -> Report:
                if bad in ids(entries):
                    return Refused(code="http_422", message="not an event")
                return delivered(entries)

            tally = await Relay(store, ScriptedSink(picky), channel, SETTINGS).once()
            assert (tally.delivered, tally.dead) == (99, 1)

        test_of(story)
        assert store.standing(bad).dlq_reason == "rejected"
        assert store.standing(bad).last_error_code == "http_422"
        assert states(store, waiting).count(State.DELIVERED) == 99

    def test_what_was_too_large_makes_the_next_batches_smaller(self, store: Store) -> None:
        channel = declare(store, batch_rows=16)
        put_run(store, 32, payload=b'"' + b"x" * 998 + b'"')

        async def story() -> None:
            def narrow(entries: Sequence[Entry]) -> Report:
                if len(entries) > 4:
                    return Refused(code="http_413", message="too large", too_large=True)
                return delivered(entries)

            sink = ScriptedSink(narrow)
            settings = RelaySettings(owner="relay-1", in_flight=1)
            assert (await Relay(store, sink, channel, settings).once()).delivered == 32
            assert [len(call) for call in sink.calls[:7]] == [16, 8, 4, 4, 8, 4, 4]
            assert all(len(call) <= 4 for call in sink.calls[7:])

        test_of(story)

    def test_a_sink_that_breaks_spends_an_attempt_and_loses_nothing(self, store: Store) -> None:
        channel = declare(store)
        waiting = put_run(store, 2)

        async def story() -> None:
            def broken(_: Sequence[Entry]) -> Report:
                raise RuntimeError("a fault in the sink")

            assert (await Relay(store, ScriptedSink(broken), channel, SETTINGS).once()).retried == 2

        test_of(story)
        assert [store.standing(entry_id).last_error_code for entry_id in waiting] == ["RuntimeError"] * 2

    def test_a_stop_lets_what_is_under_way_end_and_claims_nothing_more(self, store: Store) -> None:
        channel = declare(store, batch_rows=1)
        waiting = put_run(store, 5)

        async def story() -> None:
            go_on = asyncio.Event()

            async def slow(entries: Sequence[Entry]) -> Report:
                await go_on.wait()
                return delivered(entries)

            sink = ScriptedSink(slow)
            relay = Relay(store, sink, channel, SETTINGS)
            work = asyncio.create_task(relay.run())
            await sink.until(lambda: len(sink.calls) == 2)
            relay.stop()
            go_on.set()
            await work
            assert len(sink.calls) == 2

        test_of(story)
        assert states(store, waiting).count(State.DELIVERED) == 2
        assert states(store, waiting).count(State.PENDING) == 3

    def test_what_does_not_end_within_the_grace_time_goes_back_unspent(self, store: Store) -> None:
        channel = declare(store, batch_rows=2)
        waiting = put_run(store, 2)

        async def story() -> None:
            sink = ScriptedSink(lambda _: _forever())
            relay = Relay(store, sink, channel, RelaySettings(owner="relay-1", grace_seconds=0))
            work = asyncio.create_task(relay.run())
            await sink.until(lambda: len(sink.calls) == 1)
            relay.stop()
            await work

        test_of(story)
        assert states(store, waiting) == [State.PENDING] * 2
        assert [store.standing(entry_id).attempt_count for entry_id in waiting] == [0, 0]

    def test_a_finish_that_the_database_refuses_is_made_up_for(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        channel = declare(store)
        waiting = put_run(store, 3)
        failures = iter([True, True])
        for name in ("finish_and_claim", "finish_all", "finish"):
            monkeypatch.setattr(store, name, _failing(getattr(store, name), failures))

        async def story() -> None:
            sink = ScriptedSink()
            await Relay(store, sink, channel, SETTINGS).once()
            assert len(sink.calls) == 1

        test_of(story)
        assert set(states(store, waiting)) == {State.DELIVERED}

    def test_a_database_that_is_away_is_asked_again(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        channel = declare(store)
        waiting = put_run(store, 1)
        monkeypatch.setattr(store, "claim", _failing(store.claim, iter([True])))

        async def story() -> None:
            sink = ScriptedSink()
            async with running(store, sink, channel):
                await sink.until(lambda: len(sink.calls) == 1)
                await until(all_in(store, waiting, State.DELIVERED))

        test_of(story)

    def test_at_rest_a_relay_asks_twice_per_poll(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        channel = declare(store)
        asked: list[str] = []
        for name in ("claim", "rest", "stir", "gates", "renew", "finish", "finish_all", "finish_and_claim"):
            monkeypatch.setattr(store, name, _counted(getattr(store, name), name, asked))

        async def story() -> None:
            settings = RelaySettings(owner="relay-1", poll_seconds=0.02)
            relay = Relay(store, ScriptedSink(), channel, settings)
            work = asyncio.create_task(relay.run())
            await until(lambda: asked.count("rest") >= 5)
            relay.stop()
            await work

        test_of(story)
        assert asked.count("claim") <= asked.count("rest") + 1
        assert set(asked) <= {"claim", "rest", "stir"}

    def test_one_replica_at_a_time_tidies_up(self, store: Store, clock: Clock, others: Store) -> None:
        declare(store, retention_days=1)
        put_run(store, 3)
        store.finish_all(claim(store).token)
        clock.shift(1.1 * DAY)

        async def story() -> None:
            threads = Threads(1)
            assert await tidy_once(store, threads, "things", "relay-1") == 3
            await asyncio.to_thread(put, store)
            await asyncio.to_thread(lambda: store.finish_all(claim(store).token))
            await asyncio.to_thread(clock.shift, 2 * DAY)
            assert await tidy_once(store, threads, "things", "relay-1") == 1
            assert await tidy_once(others, threads, "things", "relay-2") == 0
            threads.close()

        test_of(story)

    def test_after_an_outage_fresh_entries_do_not_wait_for_the_backlog(self, store: Store, clock: Clock) -> None:
        channel = declare(store, batch_rows=1)
        old = put_run(store, 30)
        clock.shift(3600)

        async def story() -> None:
            fresh: list[UUID] = []

            def meanwhile(entries: Sequence[Entry]) -> Report:
                if len(fresh) < 10:
                    fresh.append(put(store))
                return delivered(entries)

            sink = ScriptedSink(meanwhile)
            relay = Relay(store, sink, channel, RelaySettings(owner="relay-1", in_flight=1))
            await relay.once()
            last_fresh = max(sink.seen.index(entry_id) for entry_id in fresh)
            assert last_fresh < len(sink.seen) - 10
            assert set(sink.seen) == {*old, *fresh}

        test_of(story)

    def test_a_group_stays_in_order_across_batches(self, store: Store) -> None:
        channel = declare(store, mode=Mode.ORDERED, batch_rows=3)
        answers = store.put_many([sample(group_key=f"g{n % 4}") for n in range(40)])
        place = {answer.id: n for n, answer in enumerate(answers)}

        async def story() -> None:
            sink = ScriptedSink()
            await Relay(store, sink, channel, RelaySettings(owner="relay-1", in_flight=4)).once()
            for group in range(4):
                numbers = [place[entry_id] for entry_id in sink.seen if place[entry_id] % 4 == group]
                assert numbers == sorted(numbers)
            assert len(sink.seen) == 40

        test_of(story)

    def test_results_are_per_entry(self, store: Store) -> None:
        channel = declare(store)
        one, two, three, four = put_run(store, 4)

        async def story() -> None:
            outcomes = {
                one: Outcome.delivered(),
                two: Outcome.retry(after=60, code="http_500"),
                three: Outcome.rejected("no"),
            }
            sink = ScriptedSink(lambda _: Results(outcomes=outcomes))
            relay = Relay(store, sink, channel, SETTINGS)
            tally = await relay.cycle()
            assert (tally.delivered, tally.retried, tally.dead, tally.released) == (1, 1, 1, 1)

        test_of(story)
        assert states(store, [one, two, three, four]) == [
            State.DELIVERED,
            State.PENDING,
            State.DEAD,
            State.PENDING,
        ]


async def _forever() -> Report:
    await asyncio.Event().wait()
    raise AssertionError


def _failing(operation: Callable[..., Any], failures: Iterator[bool]) -> Callable[..., Any]:
    def failing(*args: Any, **kwargs: Any) -> Any:
        if next(failures, False):
            raise StoreUnavailable("the database went away")
        return operation(*args, **kwargs)

    return failing


def _counted(operation: Callable[..., Any], name: str, asked: list[str]) -> Callable[..., Any]:
    def counted(*args: Any, **kwargs: Any) -> Any:
        asked.append(name)
        return operation(*args, **kwargs)

    return counted


class TestOnSqlite(RelayContract):
    """The relay on SQLite."""

    @pytest.fixture
    def path(self, sqlite_path: Path) -> Path:
        migrate(sqlite_path)
        return sqlite_path

    @pytest.fixture
    def store(self, path: Path) -> Iterator[Store]:
        store = SqliteStore(path)
        yield store
        store.close()

    @pytest.fixture
    def others(self, path: Path) -> Iterator[Store]:
        store = SqliteStore(path)
        yield store
        store.close()

    @pytest.fixture
    def clock(self, path: Path) -> Clock:
        return SqliteClock(path)


class TestOnPostgres(RelayContract):
    """The relay on PostgreSQL."""

    @pytest.fixture
    def store(self, postgres_dsn: str) -> Iterator[Store]:
        store = PostgresStore(postgres_dsn)
        yield store
        store.close()

    @pytest.fixture
    def others(self, postgres_dsn: str) -> Iterator[Store]:
        store = PostgresStore(postgres_dsn)
        yield store
        store.close()

    @pytest.fixture
    def clock(self, postgres_dsn: str) -> Clock:
        return PostgresClock(postgres_dsn)
