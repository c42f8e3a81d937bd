"""Behind a pooler in transaction mode every transaction may meet another session, and no notification is heard."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from carrick.checkup import examine
from carrick.entry import State
from carrick.ops.doctor import Finding
from carrick.outbox.channel import Mode
from carrick.outbox.postgres import hearing
from carrick.outbox.postgres.connections import Connection, Connections
from carrick.outbox.postgres.store import PostgresStore
from carrick.relay.relay import Relay, RelaySettings
from carrick.settings import read_settings
from carrick.testing.samples import claim, declare, put_run, sample, states
from tests.conftest import emptied
from tests.contract.scripted_sink import ScriptedSink
from tests.osm import EAGLES
from tests.phone import Phone
from tests.pooler import pooled, pooler_names
from tests.ports import free_port
from tests.postgres_server import versions
from tests.scenario.leading import KEYS
from tests.service import service, serving

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


@pytest.mark.parametrize("pooler", pooler_names())
def test_points_given_at_one_replica_reach_a_display_at_the_other_which_says_that_it_hears_nothing(
    pooler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "PROOF_SECONDS", 0.5)
    past = emptied(versions()[0])

    async def main(url: str) -> None:
        port = free_port()
        async with (
            service(url, state=None, **KEYS) as one,
            Phone(one.url) as robin,
            serving(one.osm, url, port, EXPOSED_DOMAIN=one.url, **KEYS) as two,
        ):
            await robin.sign_in()
            bearer = {"Authorization": f"Bearer {await one.device_token()}"}
            for replica in (one, two):
                while (ready := (await replica.get("/api/ready"))[1])["status"] != "degraded":  # noqa: ASYNC110  a server rings no event
                    await asyncio.sleep(0.05)
                assert "pooler in transaction mode" in ready["problem"]
            assert (await two.get("/api/v1/patrols", **bearer))[0] == 200
            async with two.session.ws_connect(f"{two.url}/ws/device", headers=bearer) as display:
                await display.receive_json()  # nobody knows what was missed before
                status, _ = await robin.give({EAGLES: 5})
                assert status == 200
                assert await display.receive_json() == {"type": "refresh-scores"}

    with pooled(pooler, past) as behind:
        asyncio.run(main(behind))


@pytest.mark.parametrize("pooler", pooler_names())
def test_the_doctor_warns_of_a_pooler_through_which_nothing_is_heard(
    postgres_dsn: str, pooler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listening(url: str) -> Finding:
        found = examine(read_settings({"DATABASE_URL": url}, Path("no .env file")))
        return next(finding for finding in found if finding.name == "listening")

    assert listening(postgres_dsn).status == "OK"
    monkeypatch.setattr(hearing, "PROOF_SECONDS", 0.2)
    with pooled(pooler, postgres_dsn) as behind:
        finding = listening(behind)
    assert finding.status == "WARN"
    assert "past the pooler" in finding.remedy
