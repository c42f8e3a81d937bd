"""Both stores and a plain-Python model driven with the same steps, compared after every one."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from carrick.entry import NewEntry, Outcome, OutcomeKind, State
from carrick.errors import KeyReused
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres import marks
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.migrate import migrate as migrate_sqlite
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.claim_rules import Asked, Judge
from carrick.testing.model import PRUNED, Model, ModelEntry
from tests.conftest import EMPTY, used_again
from tests.postgres_server import versions

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

names = st.sampled_from([channel.name for channel in CHANNELS])
tenants = st.sampled_from(["", "a", "b"])
groups = st.sampled_from([None, "g", "g", "h"])
principals = st.sampled_from([None, None, "p", "q"])
scopes = st.sampled_from(["*", "tenant:a", "tenant:b", "principal:p"])
picks = st.integers(0, 1_000_000)


class Driven:
    """One real store under the machine, with entries and leases by number."""

    def __init__(self, store: Store, clock: Clock, view: Any) -> None:
        self.store, self.clock, self._view = store, clock, view
        self.ids: list[UUID] = []
        self.numbers: dict[UUID, int] = {}

    def known(self, entry_id: UUID) -> int:
        """The number of an entry; a new one gets the next."""
        if entry_id not in self.numbers:
            self.numbers[entry_id] = len(self.ids)
            self.ids.append(entry_id)
        return self.numbers[entry_id]

    def snapshot(self) -> dict[int, tuple[str, int, int, str | None]]:
        """State, attempts, crashes and reason of every entry that is there."""
        return {self.numbers[UUID(str(row[0]))]: (row[1], row[2], row[3], row[4]) for row in self._view()}


COLUMNS = "id, state, attempt_count, crash_count, dlq_reason"


def sqlite_driven(folder: Path) -> Driven:
    path = folder / f"{uuid4().hex}.db"
    migrate_sqlite(path)

    def view() -> list[Any]:
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(f"select {COLUMNS} from carrick_entry").fetchall()

    return Driven(SqliteStore(path), SqliteClock(path), view)


def postgres_driven() -> Driven:
    dsn = used_again(versions()[0])
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(EMPTY)
    store = PostgresStore(dsn)

    def view() -> list[Any]:
        with psycopg.connect(dsn) as connection:
            return connection.execute(f"select {COLUMNS} from carrick.entry").fetchall()

    return Driven(store, PostgresClock(dsn), view)


class Outboxes(RuleBasedStateMachine):
    """The same steps for the model and both stores."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.model = Model({channel.name: channel for channel in CHANNELS})
        self.judge = Judge(self.model)
        self.driven = [sqlite_driven(self.folder), postgres_driven()]
        self.tokens: list[UUID] = []

    @initialize()
    def declare(self) -> None:
        for driven in self.driven:
            for channel in CHANNELS:
                driven.store.declare(channel)

    def teardown(self) -> None:
        for driven in self.driven:
            driven.store.close()

    def token(self, pick: int) -> int:
        """One of the tokens so far, the last ones more often; live, stale and forgotten ones alike."""
        return max(pick % len(self.tokens), pick // 7 % len(self.tokens)) if self.tokens else -1

    def same(self, answers: list[Any]) -> Any:
        """What both stores answered."""
        assert answers[0] == answers[1], f"SQLite and PostgreSQL differ: {answers}"
        return answers[0]

    @rule(
        channel=names,
        tenant=tenants,
        group=groups,
        principal=principals,
        priority=st.sampled_from([0, 0, 0, 1, -1, 3]),
        key=st.sampled_from([None, None, "k", "l"]),
        delay=st.sampled_from([None, None, None, GRID, 5 * GRID]),
        max_wait=st.sampled_from([None, 2 * GRID, 8 * GRID]),
        size=st.integers(1, 5),
        copies=st.sampled_from([1, 1, 2, 4]),
    )
    def put(self, copies: int, **fields: Any) -> None:
        """One entry, or several in one transaction."""
        self.model.tick()
        new = self._new(**fields)
        known = self.model.known_key(new)
        if known is not None and _content(known.new) != _content(new):
            for driven in self.driven:
                with pytest.raises(KeyReused):
                    driven.store.put(new)
            return
        if known is None:
            entries = [self.model.put(new)] + [self.model.put(new) for _ in range(copies - 1) if new.key is None]
            expected = [(entry.number, True, State.PENDING) for entry in entries]
        else:
            expected = [(known.number, False, known.state)]
        for driven in self.driven:
            puts = driven.store.put_many([new] * len(expected)) if len(expected) > 1 else [driven.store.put(new)]
            assert [(driven.known(put.id), put.created, put.state) for put in puts] == expected

    def _new(self, channel: str, delay: float | None, max_wait: float | None, size: int, **fields: Any) -> NewEntry:
        return NewEntry(
            channel=channel,
            event_type="e",
            payload=b"1" * size,
            key=fields["key"],
            tenant_id=fields["tenant"],
            group_key=fields["group"],
            principal=fields["principal"],
            priority=fields["priority"] if channel in ("stream", "single") else 0,
            delay_seconds=delay,
            max_wait_seconds=None if delay is None else max_wait,
        )

    @rule(
        channel=names,
        rows=st.integers(1, 6),
        size=st.sampled_from([1, 4, 9, 1000, 1000, 1000]),
        tenant=st.sampled_from([None, None, None, "", "a"]),
        lease=st.sampled_from([GRID, 5 * GRID]),
    )
    def claim(self, channel: str, rows: int, size: int, tenant: str | None, lease: int) -> None:
        """A worker claims; whether it ever comes back is for later steps."""
        self.model.tick()
        self.model.return_expired(channel)
        token = uuid4()
        batches = [
            driven.store.claim(
                channel, "w", max_rows=rows, max_bytes=size, lease_seconds=lease, tenant=tenant, token=token
            )
            for driven in self.driven
        ]
        claimed = [
            [
                (driven.known(entry.id), entry.attempt_count, entry.crash_count, entry.intent)
                for entry in batch
            ]
            for driven, batch in zip(self.driven, batches, strict=True)
        ]
        for numbers in claimed:
            taken = [self.model.entries[number] for number, *_ in numbers]
            assert numbers == [(entry.number, entry.attempts, entry.crashes, entry.intent) for entry in taken]
            self._judged(Asked(channel, rows, size, tenant), taken)
        self.same(claimed)
        self.judge.check(Asked(channel, rows, size, tenant), taken)
        self.model.take(channel, len(self.tokens), taken, lease)
        self.tokens.append(token)

    def _judged(self, asked: Asked, taken: list[ModelEntry]) -> None:
        """Judge what one store took, without remembering who waited."""
        Judge(self.model).check(asked, taken)

    @rule(pick=picks, kinds=st.lists(st.sampled_from(list(OutcomeKind)), min_size=1, max_size=6),
          after=st.sampled_from([GRID, 4 * GRID]), skip=st.integers(0, 2))  # fmt: skip
    def finish(self, pick: int, kinds: list[OutcomeKind], after: float, skip: int) -> None:
        """Outcomes for some or all entries of a lease, in turn."""
        self.model.tick()
        token = self.token(pick)
        if token < 0:
            return
        lease = self.model.leases.get(token)
        entries = lease.entries[skip:] if lease is not None else self.model.of("stream", State.CLAIMED)
        outcomes = {
            entry.number: Outcome(kind=kind, after=after if kind in (OutcomeKind.RETRY, OutcomeKind.UNSURE) else None)
            for entry, kind in zip(entries, kinds * 20, strict=False)
        }
        expected = self.model.finish(token, outcomes)
        for driven in self.driven:
            given = {driven.ids[number]: outcome for number, outcome in outcomes.items()}
            changed = driven.store.finish(self.tokens[token], given)
            assert {driven.known(entry_id): state for entry_id, state in changed.items()} == expected

    @rule(pick=picks)
    def finish_all(self, pick: int) -> None:
        self.model.tick()
        token = self.token(pick)
        if token < 0:
            return
        lease = self.model.leases.get(token)
        numbers = [] if lease is None else [entry.number for entry in lease.entries]
        expected = self.model.finish(token, dict.fromkeys(numbers, Outcome.delivered()))
        for driven in self.driven:
            changed = driven.store.finish_all(self.tokens[token])
            assert {driven.known(entry_id): state for entry_id, state in changed.items()} == expected

    @rule(pick=picks, seconds=st.sampled_from([GRID, 20 * GRID]))
    def renew(self, pick: int, seconds: int) -> None:
        self.model.tick()
        token = self.token(pick)
        if token >= 0:
            expected = self.model.renew(token, seconds)
            assert self.same([driven.store.renew(self.tokens[token], seconds) for driven in self.driven]) == expected

    @rule(pick=picks, intent=st.sampled_from([{"step": 1}, "text", 0]))
    def note(self, pick: int, intent: Any) -> None:
        self.model.tick()
        token = self.token(pick)
        if token >= 0:
            expected = self.model.note(token, intent)
            assert self.same([driven.store.note(self.tokens[token], intent) for driven in self.driven]) == expected

    @rule(pick=picks)
    def release(self, pick: int) -> None:
        self.model.tick()
        token = self.token(pick)
        if token >= 0:
            expected = self.model.release(token)
            assert self.same([driven.store.release(self.tokens[token]) for driven in self.driven]) == expected

    @rule(channel=names, older_than=st.sampled_from([0, 2 * GRID]))
    def release_expired(self, channel: str, older_than: float) -> None:
        self.model.tick()
        expected = self.model.return_expired(channel, older_than)
        answers = [driven.store.release_expired(channel, older_than_seconds=older_than) for driven in self.driven]
        assert self.same(answers) == expected

    @rule(seconds=st.sampled_from([GRID, GRID, 3 * GRID, 6 * GRID, 31 * GRID, 86_400]))
    def let_time_pass(self, seconds: float) -> None:
        self.model.shift(seconds)
        for driven in self.driven:
            driven.clock.shift(seconds)

    @rule(channel=names, scope=scopes, seconds=st.sampled_from([GRID, 10 * GRID, None]))
    def close_gate(self, channel: str, scope: str, seconds: float | None) -> None:
        self.model.tick()
        self.model.close_gate(channel, scope, seconds)
        for driven in self.driven:
            driven.store.close_gate(channel, scope, seconds, "test")

    @rule(channel=names, scope=scopes)
    def open_gate(self, channel: str, scope: str) -> None:
        self.model.tick()
        self.model.open_gate(channel, scope)
        for driven in self.driven:
            driven.store.open_gate(channel, scope)

    @rule(channel=names, reason=st.sampled_from([None, "rejected", "crash_loop"]), max_rows=st.sampled_from([None, 1]),
          step=st.sampled_from([0, GRID]))  # fmt: skip
    def redrive(self, channel: str, reason: str | None, max_rows: int | None, step: float) -> None:
        self.model.tick()
        count = len([e for e in self.model.of(channel, State.DEAD) if reason in (None, e.reason)][:max_rows])
        expected = self.model.redrive(channel, reason=reason, max_rows=max_rows, step=step)
        for driven in self.driven:
            choice = {"reason": reason, "max_rows": max_rows, "spread_seconds": step * count}
            assert driven.store.redrive(channel, **choice, dry_run=True) == expected  # type: ignore[arg-type]
            assert driven.store.redrive(channel, **choice) == expected  # type: ignore[arg-type]

    @rule(channel=names)
    def prune(self, channel: str) -> None:
        self.model.tick()
        expected = len(self.model.prune(channel))
        assert self.same([driven.store.prune(channel) for driven in self.driven]) == expected

    @invariant()
    def the_same_everywhere(self) -> None:
        expected = {
            entry.number: (entry.state.value, entry.attempts, entry.crashes, entry.reason)
            for entry in self.model.entries
            if entry is not PRUNED
        }
        for driven in self.driven:
            assert driven.snapshot() == expected, type(driven.store).__name__


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
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=50, stateful_step_count=50))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_both_stores_do_what_the_model_says_for_long() -> None:
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=200, stateful_step_count=100))
