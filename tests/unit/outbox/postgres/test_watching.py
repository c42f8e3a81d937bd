"""A watch hears what puts notify, on a connection of its own, and claims there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from carrick.entry import Batch, State
from carrick.errors import NothingHeard, StoreUnavailable
from carrick.outbox.channel import Channel
from carrick.outbox.outbox import Outbox
from carrick.outbox.postgres import hearing, watching
from carrick.outbox.postgres.store import PostgresStore
from carrick.outbox.postgres.watching import PostgresWatch
from carrick.testing.samples import sample
from tests.pooler import pooled, pooler_names


def ask(dsn: str, *statements: str) -> None:
    """In one transaction, on another connection."""
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement.encode())


END_THE_OTHERS = (
    "select pg_terminate_backend(pid) from pg_stat_activity "
    "where datname = current_database() and pid <> pg_backend_pid()"
)


def test_notifications_that_come_together_are_heard_one_by_one(newest_postgres_dsn: str) -> None:
    async def main() -> list[str | None]:
        watch = PostgresWatch(newest_postgres_dsn)
        assert await watch.next() is None  # whatever was missed before it listened
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'", "notify carrick_put, 'b'")
        heard = [await waiting, await watch.next()]
        await watch.close()
        return heard

    assert asyncio.run(main()) == ["a", "b"]


def test_a_wait_that_was_cancelled_loses_no_notification(newest_postgres_dsn: str) -> None:
    async def main() -> str | None:
        watch = PostgresWatch(newest_postgres_dsn)
        await watch.next()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'")
        heard = await watch.next()
        await watch.close()
        return heard

    assert asyncio.run(main()) == "a"


def test_a_lost_connection_is_told_and_the_next_wait_listens_anew(newest_postgres_dsn: str) -> None:
    async def main() -> str | None:
        watch = PostgresWatch(newest_postgres_dsn)
        await watch.next()
        waiting = asyncio.create_task(watch.next())
        await asyncio.sleep(0)
        await asyncio.to_thread(ask, newest_postgres_dsn, END_THE_OTHERS)
        with pytest.raises(StoreUnavailable):
            await waiting
        assert await watch.next() is None
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'")
        heard = await watch.next()
        await watch.close()
        return heard

    assert asyncio.run(main()) == "a"


@pytest.mark.parametrize("together", [False, True], ids=["one put", "many at once"])
@pytest.mark.parametrize("isolation", [IsolationLevel.REPEATABLE_READ, IsolationLevel.SERIALIZABLE], ids=str)
def test_a_put_notifies_who_has_gone_to_rest_since_its_transaction_took_its_snapshot(
    newest_postgres_dsn: str, isolation: IsolationLevel, together: bool
) -> None:
    with (
        Outbox.connect(newest_postgres_dsn) as outbox,
        psycopg.connect(newest_postgres_dsn) as producer,
        psycopg.connect(newest_postgres_dsn, autocommit=True) as listener,
    ):
        outbox.channel("c")
        producer.isolation_level = isolation
        producer.execute("select from carrick.channel")
        outbox.store.rest("c", "relay-1", 60)
        listener.execute("listen carrick_put")
        for n in range(2):
            if together:
                outbox.put_many(producer, [{"channel": "c", "event_type": "e", "payload": n}])
            else:
                outbox.put(producer, channel="c", event_type="e", payload=n)
        producer.commit()
        listener.execute("notify carrick_put, 'the end'")
        heard = [notify.payload for notify in listener.notifies(timeout=0)]
    assert heard == ["c", "the end"]


@pytest.mark.parametrize("pooler", pooler_names())
def test_who_listens_behind_a_pooler_in_transaction_mode_is_told_that_nothing_is_heard(
    newest_postgres_dsn: str, pooler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "PROOF_SECONDS", 0.1)

    async def main(behind: str) -> Batch | None:
        watch = PostgresWatch(behind)
        with pytest.raises(NothingHeard, match="pooler in transaction mode"):
            await watch.next()
        return await watch.claim("c", "me", **ASKED)

    with pooled(pooler, newest_postgres_dsn) as behind:
        assert asyncio.run(main(behind)) is None
    assert asyncio.run(main(behind)) is None, "without a connection: nobody listens there again and again"


def test_who_hears_nothing_for_long_proves_that_it_could(
    newest_postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "SILENCE_SECONDS", 0.01)

    async def main() -> None:
        watch = PostgresWatch(newest_postgres_dsn)
        await watch.next()
        waiting = asyncio.create_task(watch.next())
        async with await psycopg.AsyncConnection.connect(newest_postgres_dsn, autocommit=True) as listener:
            await listener.execute(f"listen {hearing.PROOFS}".encode())
            async for _ in listener.notifies(stop_after=3):
                """It proves itself again and again."""
        assert not waiting.done()
        await asyncio.to_thread(ask, newest_postgres_dsn, "notify carrick_put, 'a'")
        assert await waiting == "a"
        monkeypatch.setattr(hearing, "PROOF_SECONDS", 0.0)
        with pytest.raises(NothingHeard):
            await watch.next()
        await watch.close()

    asyncio.run(main())


ASKED: dict[str, Any] = {"max_rows": 10, "max_bytes": 100_000, "fresh_seconds": None}


@pytest.fixture
def store(newest_postgres_dsn: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(newest_postgres_dsn)) as opened:
        opened.declare(Channel(name="c"))
        yield opened


async def listening(store: PostgresStore) -> PostgresWatch:
    """A watch that has heard of a put."""
    watch = store.watch()
    await watch.next()
    await asyncio.to_thread(ask, store._dsn, "notify carrick_put, 'c'")
    assert await watch.next() == "c"
    return watch


def claimed(store: PostgresStore) -> Batch:
    """What is claimed where a put was heard of."""

    async def main() -> Batch | None:
        watch = await listening(store)
        batch = await watch.claim("c", "me", **ASKED)
        await watch.close()
        return batch

    batch = asyncio.run(main())
    assert batch is not None
    return batch


def test_what_was_heard_of_is_claimed_there_as_the_store_would(store: PostgresStore) -> None:
    store.put(sample(channel="c", payload=b'{"n": 1}'))
    batch = claimed(store)
    (entry,) = batch
    assert (entry.payload, batch.lease_seconds) == (b'{"n": 1}', 120)
    assert store.standing(entry.id).state == State.CLAIMED
    assert store.release(batch.token) == 1
    assert store.claim("c", "me").entries[0] == entry


def test_entries_that_wait_together_are_claimed_together(store: PostgresStore) -> None:
    store.put_many([sample(channel="c", payload=b"%d" % n) for n in range(3)])
    assert [entry.payload for entry in claimed(store)] == [b"0", b"1", b"2"]


def test_the_only_entry_is_not_waited_for_while_another_claims_it(store: PostgresStore) -> None:
    store.put(sample(channel="c"))
    with psycopg.connect(store._dsn) as other:
        assert len(other.execute("select from carrick.claim('c', 'other')").fetchall()) == 1
        assert len(claimed(store)) == 0


def test_nothing_due_is_an_empty_claim(store: PostgresStore) -> None:
    assert len(claimed(store)) == 0


def test_who_does_not_listen_yet_or_any_more_does_not_claim(store: PostgresStore) -> None:
    async def main() -> list[Batch | None]:
        watch = store.watch()
        before = await watch.claim("c", "me", **ASKED)
        await watch.next()
        await watch.close()
        return [before, await watch.claim("c", "me", **ASKED)]

    assert asyncio.run(main()) == [None, None]


def test_two_do_not_claim_there_at_once(store: PostgresStore, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> tuple[Batch | None, Batch | None]:
        watch = await listening(store)
        both = await asyncio.gather(watch.claim("c", "me", **ASKED), watch.claim("c", "me", **ASKED))
        await watch.close()
        return both

    first, second = asyncio.run(main())
    assert first is not None
    assert second is None
    assert "relay.not_claimed_at_once" not in caplog.messages  # it was not even tried


def test_notifications_that_come_during_a_claim_are_heard(store: PostgresStore) -> None:
    async def main() -> str | None:
        watch = await listening(store)
        await watch.claim("c", "me", **ASKED)  # prepared
        claim = asyncio.create_task(watch.claim("c", "me", **ASKED))
        hearing = asyncio.create_task(watch.next())
        await asyncio.to_thread(ask, store._dsn, "notify carrick_put, 'during'")
        await claim
        heard = await hearing
        await watch.close()
        return heard

    assert asyncio.run(main()) == "during"


def test_a_claim_that_the_database_refuses_is_left_to_the_store_and_the_next_one_works(
    store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> list[Batch | None]:
        watch = await listening(store)
        answers = [await watch.claim(name, "me", **ASKED) for name in ("nowhere", "c")]
        await watch.close()
        return answers

    refused, claimed = asyncio.run(main())
    assert refused is None
    assert claimed is not None
    (told,) = [record for record in caplog.records if record.message == "relay.not_claimed_at_once"]
    assert "nowhere" in told.error  # type: ignore[attr-defined]


def test_a_claim_whose_statement_is_gone_is_left_to_the_store_and_the_next_one_prepares_it_anew(
    store: PostgresStore,
) -> None:
    async def main() -> list[Batch | None]:
        watch = await listening(store)
        answers = [await watch.claim("c", "me", **ASKED)]
        assert watch._ears is not None
        watch._ears.connection.pgconn.exec_(b"deallocate all")
        answers += [await watch.claim("c", "me", **ASKED) for _ in range(2)]
        await watch.close()
        return answers

    before, gone, after = asyncio.run(main())
    assert (before is not None, gone, after is not None) == (True, None, True)


def test_a_claim_on_a_lost_connection_is_left_to_the_store(store: PostgresStore) -> None:
    async def main() -> None:
        watch = await listening(store)
        await asyncio.to_thread(ask, store._dsn, END_THE_OTHERS)
        assert await watch.claim("c", "me", **ASKED) is None
        assert await watch.next() is None  # it listens anew
        await watch.close()

    asyncio.run(main())


def test_a_claim_that_nobody_waits_for_any_more_gives_the_connection_up(store: PostgresStore) -> None:
    async def main() -> None:
        watch = await listening(store)
        claim = asyncio.create_task(watch.claim("c", "me", **ASKED))
        await asyncio.sleep(0)
        claim.cancel()
        with pytest.raises(asyncio.CancelledError):
            await claim
        assert await watch.claim("c", "me", **ASKED) is None
        with pytest.raises(StoreUnavailable, match="not waited for"):
            await watch.next()
        await watch.close()

    asyncio.run(main())


def test_whoever_claims_while_the_watch_is_closed_is_told(store: PostgresStore) -> None:
    async def main() -> Batch | None:
        watch = await listening(store)
        claim = asyncio.create_task(watch.claim("c", "me", **ASKED))
        await asyncio.sleep(0)
        await watch.close()
        return await claim

    assert asyncio.run(main()) is None


def test_a_claim_that_is_not_answered_is_left_to_the_store_and_the_connection_given_up(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        watch = await listening(store)
        await watch.claim("c", "me", **ASKED)  # prepared
        monkeypatch.setattr(watching, "PATIENCE_SECONDS", 0.05)
        with psycopg.connect(store._dsn) as other:
            other.execute("lock table carrick.channel in access exclusive mode")
            assert await watch.claim("c", "me", **ASKED) is None
        with pytest.raises(StoreUnavailable):
            await watch.next()
        await watch.close()

    asyncio.run(main())
    assert "no answer within 0.05 seconds" in [getattr(record, "error", "") for record in caplog.records]
