"""Behind a pooler in transaction mode every transaction may meet another session: nothing may be kept in one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from carrick.entry import State
from carrick.outbox.channel import Mode
from carrick.outbox.postgres.connections import Connection, Connections
from carrick.outbox.postgres.store import PostgresStore
from carrick.relay.relay import Relay, RelaySettings
from carrick.testing.samples import claim, declare, put_run, sample, states
from tests.contract.scripted_sink import ScriptedSink

SESSION_STATE = """
select (select count(*) from pg_prepared_statements) + (select count(*) from pg_listening_channels())
     + (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())
     + (select count(*) from pg_settings where source = 'session' and name <> 'client_encoding')
     + (select count(*) from pg_class where relpersistence = 't')
"""


@pytest.fixture
def store(postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    """A store whose sessions forget everything between two uses, and must have had nothing to forget."""
    lend = Connections.connection

    @contextmanager
    def forgetful(connections: Connections) -> Iterator[Connection]:
        with lend(connections) as connection:
            yield connection
            kept = connection.execute(SESSION_STATE).fetchone()
            assert kept == (0,), "something was kept in the session"
            connection.execute("discard all")

    monkeypatch.setattr(Connections, "connection", forgetful)
    with closing(PostgresStore(postgres_dsn)) as store:
        yield store


@pytest.mark.parametrize("mode", list(Mode))
def test_a_relay_needs_no_session(store: PostgresStore, mode: Mode) -> None:
    channel = declare(store, mode=mode, batch_rows=5)
    ids = [answer.id for answer in store.put_many([sample(group_key=f"g{n % 3}") for n in range(30)])]
    ids += [store.put(sample(group_key="h", key=f"k{n}")).id for n in range(3)]

    async def story() -> None:
        await Relay(store, ScriptedSink(), channel, RelaySettings(owner="relay-1", in_flight=3)).once()

    asyncio.run(story())
    assert set(states(store, ids)) == {State.DELIVERED}


def test_every_write_under_a_lease_needs_no_session(store: PostgresStore) -> None:
    declare(store)
    put_run(store, 2)
    batch = claim(store)
    assert store.renew(batch.token, 60) == 2
    assert store.note(batch.token, {"plan": 1}) == 2
    assert store.release(batch.token) == 2
    assert store.rest("things", "relay-1", 60).due_in is not None
    store.stir("things", "relay-1")
    assert store.take_duty("janitor:things", "relay-1", 60)
    assert store.fail_gate("things", "*", "down", cap_seconds=60) > 0
    assert len(store.entries("things").lines) == 2
