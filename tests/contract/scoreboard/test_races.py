"""Two replicas at once on PostgreSQL: who comes second waits for the first, and then sees what it did."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TypeVar

import psycopg
import pytest

from carrick.errors import InvalidInput
from carrick_scoreboard.sealing import digest
from carrick_scoreboard.store.blocks import Blocks
from carrick_scoreboard.store.clients import Clients
from carrick_scoreboard.store.credentials import SealedTokens, StoredCredentials
from carrick_scoreboard.store.devices import DeviceCode, Devices
from carrick_scoreboard.store.postgres.tables import PostgresTables
from carrick_scoreboard.store.tables import Ask

T = TypeVar("T")
PATIENCE_SECONDS = 20.0


class Paused(PostgresTables):
    """Tables of a replica that stops at the end of its transaction, before it commits, until it is let go."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.arrived = threading.Event()
        self.go = threading.Event()

    @contextmanager
    def writing(self) -> Iterator[Ask]:
        with super().writing() as ask:
            yield ask
            self.arrived.set()
            assert self.go.wait(PATIENCE_SECONDS)


def raced(
    dsn: str, first: Callable[[PostgresTables], T], second: Callable[[PostgresTables], T]
) -> tuple[T, T | Exception]:
    """The first is done and not committed; the second is seen to wait for it; then the first commits."""
    with closing(Paused(dsn)) as one, closing(PostgresTables(dsn)) as two, ThreadPoolExecutor(2) as pool:
        leading = pool.submit(first, one)
        try:
            assert one.arrived.wait(PATIENCE_SECONDS)
            following = pool.submit(second, two)
            with psycopg.connect(dsn, autocommit=True) as observer:
                while not _somebody_waits(observer):
                    assert not following.done(), f"it did not wait: {following}"
        finally:
            one.go.set()
        error = following.exception(PATIENCE_SECONDS)
        assert error is None or isinstance(error, InvalidInput), error
        return leading.result(PATIENCE_SECONDS), following.result() if error is None else error


def _somebody_waits(observer: psycopg.Connection[tuple[object, ...]]) -> bool:
    waiting = (
        "select exists (select from pg_stat_activity where datname = current_database() "
        "and cardinality(pg_blocking_pids(pid)) > 0)"
    )
    row = observer.execute(waiting.encode()).fetchone()
    return row is not None and bool(row[0])


@pytest.fixture
def tables(postgres_dsn: str) -> Iterator[PostgresTables]:
    with closing(PostgresTables(postgres_dsn)) as tables:
        Clients(tables).add("matrix", "", "", actor="op")
        yield tables


@pytest.fixture
def code(tables: PostgresTables) -> DeviceCode:
    made = Devices(tables).begin(
        digest("code"), "BCDFGHJK", "matrix", address="", country="", poll_seconds=5, seconds=300
    )
    assert made is not None
    return made


def approve(code: DeviceCode) -> Callable[[PostgresTables], bool]:
    def done(tables: PostgresTables) -> bool:
        known = {"osm_user_id": 7, "section_id": 40104, "name": "Hall", "term_id": None, "term_end_date": None}
        return Devices(tables).approve(code, **known) is not None  # type: ignore[arg-type]

    return done


def deny(code: DeviceCode) -> Callable[[PostgresTables], bool]:
    return lambda tables: Devices(tables).deny(code)


def test_who_denies_while_another_approves_comes_too_late(
    postgres_dsn: str, tables: PostgresTables, code: DeviceCode
) -> None:
    assert raced(postgres_dsn, approve(code), deny(code)) == (True, False)
    assert Devices(tables).poll(digest("code"), "matrix", digest("token")).answer == "approved"


def test_who_approves_while_another_denies_comes_too_late_and_leaves_no_device(
    postgres_dsn: str, tables: PostgresTables, code: DeviceCode
) -> None:
    assert raced(postgres_dsn, deny(code), approve(code)) == (True, False)
    assert Devices(tables).all() == []
    assert Devices(tables).poll(digest("code"), "matrix", digest("token")).answer == "access_denied"


def test_of_two_who_approve_at_once_one_lets_the_device_in(
    postgres_dsn: str, tables: PostgresTables, code: DeviceCode
) -> None:
    assert raced(postgres_dsn, approve(code), approve(code)) == (True, False)
    assert len(Devices(tables).all()) == 1


def test_a_device_that_asks_while_it_is_let_in_gets_its_token(
    postgres_dsn: str, tables: PostgresTables, code: DeviceCode
) -> None:
    def poll(tables: PostgresTables) -> bool:
        return Devices(tables).poll(digest("code"), "matrix", digest("token")).answer == "approved"

    assert raced(postgres_dsn, approve(code), poll) == (True, True)
    assert Devices(tables).of_token(digest("token")) is not None


def test_of_two_that_note_a_block_at_once_one_brings_news(postgres_dsn: str, tables: PostgresTables) -> None:
    news = raced(postgres_dsn, lambda own: Blocks(own).note("first"), lambda own: Blocks(own).note("second"))
    assert news == (True, False)
    assert [block.header for block in Blocks(tables).latest()] == ["first"]


def test_of_two_that_refresh_at_once_one_may(postgres_dsn: str, tables: PostgresTables) -> None:
    StoredCredentials(tables).save(7, "Ann", "", SealedTokens(b"a", b"r", 3600))

    def begin(name: str) -> Callable[[PostgresTables], bool]:
        return lambda own: StoredCredentials(own).begin_refresh(7, 1, name, 30.0)

    assert raced(postgres_dsn, begin("one"), begin("two")) == (True, False)
    credential = StoredCredentials(tables).get(7)
    assert credential is not None
    assert credential.refreshing_by == "one"


def test_a_reseal_that_waits_for_a_refresh_leaves_the_new_tokens(postgres_dsn: str, tables: PostgresTables) -> None:
    StoredCredentials(tables).save(7, "Ann", "", SealedTokens(b"a1", b"r1", 3600))
    done = raced(
        postgres_dsn,
        lambda own: StoredCredentials(own).end_refresh(7, 1, SealedTokens(b"a2", b"r2", 3600)),
        lambda own: StoredCredentials(own).reseal(7, 1, b"a1'", b"r1'"),
    )
    assert done == (True, False)
    credential = StoredCredentials(tables).get(7)
    assert credential is not None
    assert credential.osm_access_token == b"a2"


def test_of_two_rotations_of_one_application_one_counts(postgres_dsn: str, tables: PostgresTables) -> None:
    def rotate(new: str) -> Callable[[PostgresTables], None]:
        return lambda own: Clients(own).rotate("matrix", new, actor="op")

    _, refused = raced(postgres_dsn, rotate("one"), rotate("two"))
    assert isinstance(refused, InvalidInput)
    assert [client.client_id for client in Clients(tables).all()] == ["matrix", "one"]
