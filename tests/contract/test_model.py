"""Both stores driven with the same steps, each beside a plain-Python model that is compared with it after every one."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from carrick.entry import NewEntry, Outcome, OutcomeKind, State
from carrick.errors import KeyReused
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres import marks
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.migrate import migrate as migrate_sqlite
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.outbox.transitions import TRANSITIONS
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.claim_rules import Asked, Judge
from carrick.testing.model import PRUNED, Model
from tests.conftest import EMPTY, used_again
from tests.postgres_server import versions

PLENTY = 1000
GRID = 20
"""All times are multiples of this many seconds: far more than a run takes, so that its real time never matters."""

CHANNELS = [
    Channel(name=name, mode=mode, max_attempts=3, backoff_base_seconds=0.001, backoff_cap_seconds=0.001,
            retention_days=1, dead_retention_days=2, one_tenant=one_tenant)
    for name, mode, one_tenant in [
        ("stream", Mode.STREAM, False),
        ("single", Mode.STREAM, True),
        ("ordered", Mode.ORDERED, False),
        ("coalesce", Mode.COALESCE, False),
    ]
]  # fmt: skip

Draw = Callable[[st.SearchStrategy[Any]], Any]

picks = st.integers(0, 1_000_000)
claim_tenants = st.sampled_from([None, None, None, "", "a"])
scopes = st.sampled_from(["*", "tenant:a", "tenant:a", "principal:p", "principal:p"])
outcomes_given = st.sampled_from(list(OutcomeKind)).flatmap(
    lambda kind: st.sampled_from([GRID, 4 * GRID] if TRANSITIONS[kind].spends_attempt else [None, None, GRID]).map(
        lambda after: Outcome(kind=kind, after=after)
    )
)


@st.composite
def new_entries(draw: Draw, channels: Sequence[str], tenants: Sequence[str]) -> NewEntry:
    """Entries that meet: few tenants, groups, keys."""
    channel = draw(st.sampled_from(channels))
    delay = draw(st.sampled_from([None, None, None, GRID, 5 * GRID]))
    return NewEntry(
        channel=channel,
        event_type="e",
        payload=b"1" * draw(st.integers(1, 5)),
        key=draw(st.sampled_from([None, None, None, None, "k", "l"])),
        tenant_id=draw(st.sampled_from(tenants)),
        group_key=draw(st.sampled_from([None, "g", "g", "h"])),
        principal=draw(st.sampled_from([None, None, "p", "q"])),
        priority=draw(st.sampled_from([0, 0, 0, 1, -1, 3])) if channel in ("stream", "single") else 0,
        delay_seconds=delay,
        max_wait_seconds=None if delay is None else draw(st.sampled_from([None, 2 * GRID, 8 * GRID])),
    )


class Driven:
    """One real store under the machine, with entries by number."""

    def __init__(self, store: Store, clock: Clock, reader: Any, query: str) -> None:
        self.store, self.clock = store, clock
        self._reader, self._query = reader, query
        self.ids: list[UUID] = []
        self.numbers: dict[UUID, int] = {}

    def close(self) -> None:
        self.store.close()
        self._reader.close()

    def known(self, entry_id: UUID) -> int:
        """The number of an entry; a new one gets the next."""
        if entry_id not in self.numbers:
            self.numbers[entry_id] = len(self.ids)
            self.ids.append(entry_id)
        return self.numbers[entry_id]

    def numbered(self, states: Mapping[UUID, State]) -> dict[int, State]:
        return {self.known(entry_id): state for entry_id, state in states.items()}

    def snapshot(self) -> dict[int, tuple[str, int, int, str | None]]:
        """State, attempts, crashes and reason of every entry that is there."""
        rows = self._reader.execute(self._query).fetchall()
        return {self.numbers[UUID(str(entry_id))]: tuple(facts) for entry_id, *facts in rows}


@contextmanager
def blamed(driven: Driven, *about: object) -> Iterator[None]:
    """Say which store broke a rule, and with what."""
    try:
        yield
    except AssertionError as error:
        error.add_note(f"{type(driven.store).__name__}: {about}")
        raise


COLUMNS = "id, state, attempt_count, crash_count, dlq_reason"


def sqlite_driven(folder: Path) -> Driven:
    path = folder / f"{uuid4().hex}.db"
    migrate_sqlite(path)
    reader = sqlite3.connect(path)
    return Driven(SqliteStore(path), SqliteClock(path), reader, f"select {COLUMNS} from carrick_entry")


def postgres_driven() -> Driven:
    dsn = used_again(versions()[0])
    reader = psycopg.connect(dsn, autocommit=True)
    reader.execute(EMPTY)
    return Driven(PostgresStore(dsn), PostgresClock(dsn), reader, f"select {COLUMNS} from carrick.entry")


STEPS = {
    "put": 8,
    "claim": 8,
    "finish": 6,
    "finish_all": 1,
    "renew": 1,
    "note": 2,
    "release": 1,
    "release_expired": 1,
    "let_time_pass": 6,
    "close_gate": 1,
    "open_gate": 2,
    "redrive": 1,
    "prune": 1,
}
"""What may happen, and how often. One rule chooses: several would be switched off for whole runs at a time."""


class World:
    """A store and a model that follows it. Where the rules leave a choice, each world goes its own way."""

    def __init__(self, driven: Driven) -> None:
        self.driven = driven
        self.store = driven.store
        self.model = Model({channel.name: channel for channel in CHANNELS})
        self.judge = Judge(self.model)
        self.tokens: list[UUID] = []
        for channel in CHANNELS:
            self.store.declare(channel)

    def token(self, pick: int) -> int:
        """A lease that is held, mostly; or any that ever was: finished, expired, taken over. -1 when there is none."""
        chances = [*list(self.model.leases) * 3, *range(len(self.tokens))]
        return chances[pick % len(chances)] if chances else -1

    def compare(self) -> None:
        expected = {
            entry.number: (entry.state.value, entry.attempts, entry.crashes, entry.reason)
            for entry in self.model.entries
            if entry is not PRUNED
        }
        assert self.driven.snapshot() == expected

    def put(self, new: NewEntry, copies: int) -> None:
        known = self.model.known_key(new)
        if known is not None and _content(known.new) != _content(new):
            with pytest.raises(KeyReused):
                self.store.put(new)
            return
        if known is not None:
            expected = [(known.number, False, known.state)]
        else:
            copies = 1 if new.key is not None else copies
            expected = [(self.model.put(new).number, True, State.PENDING) for _ in range(copies)]
        puts = self.store.put_many([new] * len(expected)) if len(expected) > 1 else [self.store.put(new)]
        assert [(self.driven.known(put.id), put.created, put.state) for put in puts] == expected

    def claim(self, asked: Asked, lease: int) -> None:
        self.model.return_expired(asked.channel)
        batch = self.store.claim(
            asked.channel, "w", max_rows=asked.rows, max_bytes=asked.bytes, lease_seconds=lease, tenant=asked.tenant
        )
        facts = [(self.driven.known(e.id), e.attempt_count, e.crash_count, e.intent) for e in batch]
        taken = [self.model.entries[number] for number, *_ in facts]
        assert facts == [(entry.number, entry.attempts, entry.crashes, entry.intent) for entry in taken]
        self.judge.check(asked, taken)
        self.model.take(asked.channel, len(self.tokens), taken, lease)
        self.tokens.append(batch.token)

    def finish(self, pick: int, given: Sequence[Outcome | None]) -> None:
        """Outcomes by place in the batch; None is not mentioned. A stale token names entries of others."""
        token = self.token(pick)
        if token < 0:
            return
        lease = self.model.leases.get(token)
        entries = lease.entries if lease is not None else [e for e in self.model.entries if e.state is State.CLAIMED]
        outcomes = {entry.number: outcome for entry, outcome in zip(entries, cycle(given), strict=False) if outcome}
        expected = self.model.finish(token, outcomes)
        named = {self.driven.ids[number]: outcome for number, outcome in outcomes.items()}
        assert self.driven.numbered(self.store.finish(self.tokens[token], named)) == expected

    def finish_all(self, pick: int) -> None:
        token = self.token(pick)
        if token >= 0:
            lease = self.model.leases.get(token)
            held = [] if lease is None else [entry.number for entry in lease.entries]
            expected = self.model.finish(token, dict.fromkeys(held, Outcome.delivered()))
            assert self.driven.numbered(self.store.finish_all(self.tokens[token])) == expected

    def renew(self, pick: int, seconds: int) -> None:
        token = self.token(pick)
        if token >= 0:
            assert self.store.renew(self.tokens[token], seconds) == self.model.renew(token, seconds)

    def note(self, pick: int, intent: Any) -> None:
        token = self.token(pick)
        if token >= 0:
            assert self.store.note(self.tokens[token], intent) == self.model.note(token, intent)

    def release(self, pick: int) -> None:
        token = self.token(pick)
        if token >= 0:
            assert self.store.release(self.tokens[token]) == self.model.release(token)

    def release_expired(self, channel: str, older: float) -> None:
        returned = self.store.release_expired(channel, older_than_seconds=older)
        assert returned == self.model.return_expired(channel, older)

    def let_time_pass(self, seconds: float) -> None:
        self.model.shift(seconds)
        self.driven.clock.shift(seconds)

    def close_gate(self, channel: str, scope: str, seconds: float | None) -> None:
        self.model.close_gate(channel, scope, seconds)
        self.store.close_gate(channel, scope, seconds, "test")

    def open_gate(self, channel: str, scope: str) -> None:
        self.model.open_gate(channel, scope)
        self.store.open_gate(channel, scope)

    def redrive(self, channel: str, reason: str | None, max_rows: int | None, step: float) -> None:
        expected = self.model.redrive(channel, reason=reason, max_rows=max_rows, step=step)
        choice: dict[str, Any] = {"reason": reason, "max_rows": max_rows, "spread_seconds": step * expected}
        assert self.store.redrive(channel, **choice, dry_run=True) == expected
        assert self.store.redrive(channel, **choice) == expected

    def prune(self, channel: str) -> None:
        assert self.store.prune(channel) == len(self.model.prune(channel))


class Outboxes(RuleBasedStateMachine):
    """The same steps for both stores."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.worlds = [World(sqlite_driven(self.folder)), World(postgres_driven())]

    @initialize(
        channels=st.lists(st.sampled_from([channel.name for channel in CHANNELS]), min_size=1, max_size=2, unique=True),
        tenants=st.sampled_from([[""], ["a"], ["", "a"], ["", "a", "b"]]),
    )
    def focus(self, channels: list[str], tenants: list[str]) -> None:
        """A run looks at few channels and tenants, so that much happens to each."""
        self.names = st.sampled_from(channels)
        self.new_entries = new_entries(channels, tenants)

    def teardown(self) -> None:
        for world in self.worlds:
            world.driven.close()

    @rule(step=st.sampled_from([name for name, weight in STEPS.items() for _ in range(weight)]), data=st.data())
    def step(self, step: str, data: st.DataObject) -> None:
        """Something happens, a moment after what happened before; then stores and models must agree."""
        drawn = getattr(self, step)(data.draw)
        for world in self.worlds:
            with blamed(world.driven, step, *drawn):
                world.model.tick()
                getattr(world, step)(*drawn)
                world.compare()

    def put(self, draw: Draw) -> tuple[Any, ...]:
        """One entry, or several in one transaction."""
        return draw(self.new_entries), draw(st.sampled_from([1, 2, 3, 6]))

    def claim(self, draw: Draw) -> tuple[Any, ...]:
        """A worker claims; whether it ever comes back is for later steps."""
        size = draw(st.sampled_from([1, 4, 9, *[PLENTY] * 5]))
        asked = Asked(draw(self.names), draw(st.integers(1, 6)), size, draw(claim_tenants))
        return asked, draw(st.sampled_from([GRID, 5 * GRID]))

    def finish(self, draw: Draw) -> tuple[Any, ...]:
        return draw(picks), draw(st.lists(st.one_of(outcomes_given, outcomes_given, st.none()), min_size=1, max_size=5))

    def finish_all(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(picks),)

    def renew(self, draw: Draw) -> tuple[Any, ...]:
        return draw(picks), draw(st.sampled_from([GRID, 20 * GRID]))

    def note(self, draw: Draw) -> tuple[Any, ...]:
        return draw(picks), draw(st.sampled_from([{"step": 1}, "text", 0]))

    def release(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(picks),)

    def release_expired(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(st.sampled_from([0, 2 * GRID]))

    def let_time_pass(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(st.sampled_from([GRID, GRID, 3 * GRID, 6 * GRID, 6 * GRID, 31 * GRID, 86_400])),)

    def close_gate(self, draw: Draw) -> tuple[Any, ...]:
        return draw(self.names), draw(scopes), draw(st.sampled_from([GRID, 10 * GRID, None]))

    def open_gate(self, draw: Draw) -> tuple[Any, ...]:
        closed = sorted(self.worlds[0].model.gates)
        return tuple(draw(st.sampled_from(closed))) if closed else (draw(self.names), "*")

    def redrive(self, draw: Draw) -> tuple[Any, ...]:
        reason, max_rows = draw(st.sampled_from([None, "rejected", "crash_loop"])), draw(st.sampled_from([None, 1]))
        return draw(self.names), reason, max_rows, draw(st.sampled_from([0, GRID]))

    def prune(self, draw: Draw) -> tuple[Any, ...]:
        return (draw(self.names),)


def _content(new: NewEntry) -> tuple[Any, ...]:
    return (new.event_type, new.payload, new.group_key, new.principal)


@pytest.fixture(autouse=True)
def _no_marks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Marks are hints that may hide an entry for a second of real time; here every claim looks everywhere."""
    monkeypatch.setattr(marks, "FULL_LOOK_EVERY_SECONDS", 0.0)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(Outboxes, "folder", Path(folder), raising=False)
        yield


BASE = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, report_multiple_bugs=False)


@pytest.mark.timeout(300)
def test_both_stores_do_what_the_model_says() -> None:
    """The same 4,000 steps in every run: new ones are for the long version to find."""
    run_state_machine_as_test(
        Outboxes, settings=settings(BASE, max_examples=50, stateful_step_count=80, derandomize=True, database=None)
    )


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_both_stores_do_what_the_model_says_for_long() -> None:
    """25,000 steps, other ones in every run."""
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=250, stateful_step_count=100))
