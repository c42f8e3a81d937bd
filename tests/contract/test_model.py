"""Both stores and a plain-Python model driven with the same steps, compared after every one."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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


class Outboxes(RuleBasedStateMachine):
    """The same steps for the model and both stores."""

    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.model = Model({channel.name: channel for channel in CHANNELS})
        self.judge = Judge(self.model)
        self.driven = [sqlite_driven(self.folder), postgres_driven()]
        self.tokens: list[UUID] = []
        for driven in self.driven:
            for channel in CHANNELS:
                driven.store.declare(channel)

    @initialize(
        channels=st.lists(st.sampled_from([channel.name for channel in CHANNELS]), min_size=1, max_size=2, unique=True),
        tenants=st.sampled_from([[""], ["a"], ["", "a"], ["", "a", "b"]]),
    )
    def focus(self, channels: list[str], tenants: list[str]) -> None:
        """A run looks at few channels and tenants, so that much happens to each."""
        self.names, self.tenants = st.sampled_from(channels), tenants
        self.new_entries = new_entries(channels, tenants)

    def teardown(self) -> None:
        for driven in self.driven:
            driven.close()

    @rule(step=st.sampled_from([name for name, weight in STEPS.items() for _ in range(weight)]), data=st.data())
    def step(self, step: str, data: st.DataObject) -> None:
        """Something happens, a moment after what happened before; then all three must agree."""
        self.model.tick()
        getattr(self, step)(data.draw)
        self.compare()

    def compare(self) -> None:
        expected = {
            entry.number: (entry.state.value, entry.attempts, entry.crashes, entry.reason)
            for entry in self.model.entries
            if entry is not PRUNED
        }
        for driven in self.driven:
            assert driven.snapshot() == expected, type(driven.store).__name__

    def same(self, answers: Iterable[Any]) -> Any:
        """What both stores answered."""
        first, *others = answers
        assert all(other == first for other in others), f"SQLite and PostgreSQL differ: {first} and {others}"
        return first

    def token(self, draw: Draw) -> int | None:
        """A lease that is held, mostly; or any that ever was: finished, expired, taken over."""
        chances = [*list(self.model.leases) * 3, *range(len(self.tokens))]
        return draw(st.sampled_from(chances)) if chances else None

    def put(self, draw: Draw) -> None:
        """One entry, or several in one transaction."""
        new = draw(self.new_entries)
        known = self.model.known_key(new)
        if known is not None and _content(known.new) != _content(new):
            for driven in self.driven:
                with pytest.raises(KeyReused):
                    driven.store.put(new)
            return
        if known is not None:
            expected = [(known.number, False, known.state)]
        else:
            copies = 1 if new.key is not None else draw(st.sampled_from([1, 2, 3, 6]))
            expected = [(self.model.put(new).number, True, State.PENDING) for _ in range(copies)]
        for driven in self.driven:
            puts = driven.store.put_many([new] * len(expected)) if len(expected) > 1 else [driven.store.put(new)]
            assert [(driven.known(put.id), put.created, put.state) for put in puts] == expected

    def claim(self, draw: Draw) -> None:
        """A worker claims; whether it ever comes back is for later steps."""
        size = draw(st.sampled_from([1, 4, 9, *[1000] * 5]))
        asked = Asked(draw(self.names), draw(st.integers(1, 6)), size, draw(claim_tenants))
        lease = draw(st.sampled_from([GRID, 5 * GRID]))
        self.model.return_expired(asked.channel)
        token = uuid4()
        limits = {"max_rows": asked.rows, "max_bytes": asked.bytes, "lease_seconds": lease, "tenant": asked.tenant}
        claimed = []
        for driven in self.driven:
            batch = driven.store.claim(asked.channel, "w", token=token, **limits)
            claimed.append([(driven.known(e.id), e.attempt_count, e.crash_count, e.intent) for e in batch])
        for driven, facts in zip(self.driven, claimed, strict=True):
            taken = [self.model.entries[number] for number, *_ in facts]
            assert facts == [(entry.number, entry.attempts, entry.crashes, entry.intent) for entry in taken]
            with blamed(driven, asked, facts):
                Judge(self.model).check(asked, taken)
        self.same(claimed)
        self.judge.check(asked, taken)
        self.model.take(asked.channel, len(self.tokens), taken, lease)
        self.tokens.append(token)

    def finish(self, draw: Draw) -> None:
        """Outcomes for some or all entries of a lease; entries of others among them."""
        token = self.token(draw)
        if token is None:
            return
        lease = self.model.leases.get(token)
        entries = lease.entries if lease is not None else self.model.of("stream", State.CLAIMED)
        outcomes = {entry.number: draw(outcomes_given) for entry in entries if draw(st.integers(0, 4))}
        expected = self.model.finish(token, outcomes)
        for driven in self.driven:
            given = {driven.ids[number]: outcome for number, outcome in outcomes.items()}
            assert driven.numbered(driven.store.finish(self.tokens[token], given)) == expected

    def finish_all(self, draw: Draw) -> None:
        token = self.token(draw)
        if token is not None:
            lease = self.model.leases.get(token)
            held = [] if lease is None else [entry.number for entry in lease.entries]
            expected = self.model.finish(token, dict.fromkeys(held, Outcome.delivered()))
            for driven in self.driven:
                assert driven.numbered(driven.store.finish_all(self.tokens[token])) == expected

    def renew(self, draw: Draw) -> None:
        token, seconds = self.token(draw), draw(st.sampled_from([GRID, 20 * GRID]))
        if token is not None:
            expected = self.model.renew(token, seconds)
            assert self.same(driven.store.renew(self.tokens[token], seconds) for driven in self.driven) == expected

    def note(self, draw: Draw) -> None:
        token, intent = self.token(draw), draw(st.sampled_from([{"step": 1}, "text", 0]))
        if token is not None:
            expected = self.model.note(token, intent)
            assert self.same(driven.store.note(self.tokens[token], intent) for driven in self.driven) == expected

    def release(self, draw: Draw) -> None:
        token = self.token(draw)
        if token is not None:
            expected = self.model.release(token)
            assert self.same(driven.store.release(self.tokens[token]) for driven in self.driven) == expected

    def release_expired(self, draw: Draw) -> None:
        channel, older = draw(self.names), draw(st.sampled_from([0, 2 * GRID]))
        expected = self.model.return_expired(channel, older)
        answers = (driven.store.release_expired(channel, older_than_seconds=older) for driven in self.driven)
        assert self.same(answers) == expected

    def let_time_pass(self, draw: Draw) -> None:
        seconds = draw(st.sampled_from([GRID, GRID, 3 * GRID, 6 * GRID, 6 * GRID, 31 * GRID, 86_400]))
        self.model.shift(seconds)
        for driven in self.driven:
            driven.clock.shift(seconds)

    def close_gate(self, draw: Draw) -> None:
        channel, scope, seconds = draw(self.names), draw(scopes), draw(st.sampled_from([GRID, 10 * GRID, None]))
        self.model.close_gate(channel, scope, seconds)
        for driven in self.driven:
            driven.store.close_gate(channel, scope, seconds, "test")

    def open_gate(self, draw: Draw) -> None:
        closed = sorted(self.model.gates) or [(draw(self.names), "*")]
        channel, scope = draw(st.sampled_from(closed))
        self.model.open_gate(channel, scope)
        for driven in self.driven:
            driven.store.open_gate(channel, scope)

    def redrive(self, draw: Draw) -> None:
        channel, reason = draw(self.names), draw(st.sampled_from([None, "rejected", "crash_loop"]))
        max_rows, step = draw(st.sampled_from([None, 1])), draw(st.sampled_from([0, GRID]))
        expected = self.model.redrive(channel, reason=reason, max_rows=max_rows, step=step)
        for driven in self.driven:
            choice: dict[str, Any] = {"reason": reason, "max_rows": max_rows, "spread_seconds": step * expected}
            assert driven.store.redrive(channel, **choice, dry_run=True) == expected
            assert driven.store.redrive(channel, **choice) == expected

    def prune(self, draw: Draw) -> None:
        channel = draw(self.names)
        expected = len(self.model.prune(channel))
        assert self.same(driven.store.prune(channel) for driven in self.driven) == expected


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
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=40, stateful_step_count=80))


@pytest.mark.chaos
@pytest.mark.timeout(3600)
def test_both_stores_do_what_the_model_says_for_long() -> None:
    run_state_machine_as_test(Outboxes, settings=settings(BASE, max_examples=250, stateful_step_count=100))
