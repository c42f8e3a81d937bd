"""A real store beside a plain-Python model: each step is done to both, and what the store answers is judged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from carrick.entry import Batch, ClosedBy, NewEntry, Outcome, Put, State
from carrick.errors import InvalidInput, KeyReused, RequestReused
from carrick.outbox.channel import Channel, Mode
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.sqlite.store import SqliteStore
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.claim_rules import Asked, Judge
from carrick.testing.model import PRUNED, Model, Reused
from tests.conftest import emptied
from tests.postgres_server import versions
from tests.sqlite_file import engine_file

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
        """The number of an entry."""
        return self.numbers[entry_id]

    def created(self, entry_id: UUID) -> int:
        """The number of a new entry. An id that was pruned may be given again."""
        self.numbers[entry_id] = len(self.ids)
        self.ids.append(entry_id)
        return self.numbers[entry_id]

    def answered(self, put: Put) -> int:
        """The number of an entry that was put."""
        return self.created(put.id) if put.created else self.known(put.id)

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
    engine_file(path)
    reader = sqlite3.connect(path)
    return Driven(SqliteStore(path), SqliteClock(path), reader, f"select {COLUMNS} from carrick_entry")


def postgres_driven() -> Driven:
    dsn = emptied(versions()[0])
    reader = psycopg.connect(dsn, autocommit=True)
    return Driven(PostgresStore(dsn), PostgresClock(dsn), reader, f"select {COLUMNS} from carrick.entry")


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
        try:
            known = self.model.given(new)
        except Reused:
            with pytest.raises((KeyReused, InvalidInput)):
                self.store.put(new)
            return
        if known is not None:
            expected = [(known.number, False, known.state)]
        else:
            copies = 1 if new.key is not None else copies
            expected = [(self.model.put(new).number, True, State.PENDING) for _ in range(copies)]
        puts = self.store.put_many([new] * len(expected)) if len(expected) > 1 else [self.store.put(new)]
        assert [(self.driven.answered(put), put.created, put.state) for put in puts] == expected
        assert new.id in (None, *(put.id for put in puts if put.created)) or known is not None

    def put_once(self, key: str, body: str, news: Sequence[NewEntry]) -> None:
        """A request with a key of its own."""
        body_hash = body.encode() * 32
        before = len(self.model.entries)
        try:
            expected = self.model.put_once(key, body_hash, news)
        except Reused:
            with pytest.raises((KeyReused, RequestReused, InvalidInput)):
                self.store.put_once(key, body_hash, news)
            return
        ids = self.store.put_once(key, body_hash, news)
        for number, entry_id in zip(expected, ids, strict=True):
            if number >= max(before, len(self.driven.ids)):
                self.driven.created(entry_id)
        assert [self.driven.ids[number] for number in expected] == list(ids)

    def claim(self, asked: Asked, lease: int) -> None:
        self._take(asked, lease, lambda limits: self.store.claim(asked.channel, "w", tenant=asked.tenant, **limits))

    def finish_and_claim(self, pick: int, given: Sequence[Outcome | None] | None, asked: Asked, lease: int) -> None:
        """As a relay does it: without outcomes all are delivered."""
        token = self.token(pick)
        if token < 0:
            return
        outcomes = self._outcomes(token, [Outcome.delivered()] if given is None else given)
        expected = self.model.finish(token, outcomes)
        named = None if given is None else {self.driven.ids[number]: outcome for number, outcome in outcomes.items()}

        def both(limits: dict[str, Any]) -> Batch:
            changed, batch = self.store.finish_and_claim(self.tokens[token], named, asked.channel, "w", **limits)
            assert self.driven.numbered(changed) == expected
            return batch

        self._take(asked, lease, both)

    def _take(self, asked: Asked, lease: int, take: Callable[[dict[str, Any]], Batch]) -> None:
        """Claim, and judge what was claimed."""
        self.model.return_expired(asked.channel)
        limits = {
            "max_rows": asked.rows,
            "max_bytes": asked.bytes,
            "lease_seconds": lease,
            "fresh_seconds": asked.fresh,
        }
        batch = take(limits)
        assert batch.probe == (bool(batch) and self.model.half_open(asked.channel))
        facts = [(self.driven.known(e.id), e.attempt_count, e.crash_count, e.intent) for e in batch]
        taken = [self.model.entries[number] for number, *_ in facts]
        told = self.model.told(taken)
        assert facts == [(e.number, e.attempts, e.crashes, intent) for e, intent in zip(taken, told, strict=True)]
        self.judge.check(asked, taken)
        self.model.take(asked.channel, len(self.tokens), taken, lease)
        self.tokens.append(batch.token)

    def finish(self, pick: int, given: Sequence[Outcome | None]) -> None:
        """Outcomes by place in the batch; None is not mentioned. A stale token names entries of others."""
        token = self.token(pick)
        if token < 0:
            return
        outcomes = self._outcomes(token, given)
        expected = self.model.finish(token, outcomes)
        named = {self.driven.ids[number]: outcome for number, outcome in outcomes.items()}
        assert self.driven.numbered(self.store.finish(self.tokens[token], named)) == expected

    def _outcomes(self, token: int, given: Sequence[Outcome | None]) -> dict[int, Outcome]:
        lease = self.model.leases.get(token)
        entries = lease.entries if lease is not None else [e for e in self.model.entries if e.state is State.CLAIMED]
        return {entry.number: outcome for entry, outcome in zip(entries, cycle(given), strict=False) if outcome}

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

    def note(self, pick: int, intent: Any, about: Sequence[int] | None) -> None:
        """About all that is held, or some of all entries there are."""
        token = self.token(pick)
        if token < 0:
            return
        there = len(self.driven.ids)
        numbers = None if about is None else {number % there for number in about if there}
        ids = None if numbers is None else [self.driven.ids[number] for number in numbers]
        assert self.store.note(self.tokens[token], intent, ids) == self.model.note(token, intent, numbers)

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

    def close_gate(self, channel: str, scope: str, seconds: float | None, closed_by: ClosedBy) -> None:
        self.model.close_gate(channel, scope, seconds, closed_by)
        self.store.close_gate(channel, scope, seconds, "test", closed_by=closed_by)
        self._compare_gates()

    def open_gate(self, channel: str, scope: str, closed_by: ClosedBy | None) -> None:
        self.model.open_gate(channel, scope, closed_by)
        self.store.open_gate(channel, scope, closed_by=closed_by)
        self._compare_gates()

    def fail_gate(self, channel: str, scope: str, probe: bool) -> None:
        """A failure, and the time that it closes the gate for: at most a step of the grid, and chance within bounds."""
        gate = self.model.fail_gate(channel, scope, probe=probe)
        seconds = self.store.fail_gate(channel, scope, "test", cap_seconds=GRID, probe=probe)
        if gate is not None:
            whole = min(GRID, 2 ** (gate.failures - 1))
            assert whole / 2 <= seconds <= whole
            gate.until = self.model.now + seconds
        self._compare_gates()
        self.let_time_pass(GRID)

    def _compare_gates(self) -> None:
        closed = {key: gate for key, gate in self.model.gates.items() if gate.until > self.model.now}
        found = {(gate.channel, gate.scope): gate for gate in self.store.gates()}
        assert {key: (gate.failures, gate.closed_by) for key, gate in closed.items()} == {
            key: (gate.consecutive_failures, gate.closed_by) for key, gate in found.items()
        }

    def redrive(self, channel: str, reason: str | None, max_rows: int | None, step: float) -> None:
        expected = self.model.redrive(channel, reason=reason, max_rows=max_rows, step=step)
        choice: dict[str, Any] = {"reason": reason, "max_rows": max_rows, "spread_seconds": step * expected}
        assert self.store.redrive(channel, **choice, dry_run=True) == expected
        assert self.store.redrive(channel, **choice) == expected

    def discard(self, channel: str, picked: Sequence[int]) -> None:
        """Entries in any state, of any channel, there or not: only the dead ones of this channel go."""
        numbers = {pick % len(self.driven.ids) for pick in picked if self.driven.ids}
        there = {number for number in numbers if self.driven.numbers[self.driven.ids[number]] == number}
        gone = self.model.discard(channel, there)
        assert self.store.discard(channel, [self.driven.ids[number] for number in there]) == gone

    def prune(self, channel: str) -> None:
        assert self.store.prune(channel) == len(self.model.prune(channel))
