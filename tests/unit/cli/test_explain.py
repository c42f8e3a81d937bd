"""`carrick explain`: a sentence and a story for every reason, on every database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from carrick import wiring
from carrick.cli import run
from carrick.entry import Outcome
from carrick.outbox.store import Store
from carrick.testing import Clock, PostgresClock, SqliteClock
from carrick.testing.contract.standing import SITUATIONS, claimed
from carrick.testing.samples import HOUR, claim, declare, finish_each, put
from tests.conftest import emptied
from tests.postgres_server import versions
from tests.sqlite_file import whole_file

Shown = pytest.CaptureFixture[str]


class Database(NamedTuple):
    """A fresh database with the schema."""

    url: str
    store: Store
    clock: Clock


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, sqlite_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        url, clock = f"sqlite:///{sqlite_path}", SqliteClock(sqlite_path)
        whole_file(sqlite_path)
    else:
        url = emptied(versions()[0])
        clock = PostgresClock(url)  # type: ignore[assignment]
    with closing(wiring.open_store(url)) as store:
        yield Database(url, store, clock)


def told(database: Database, entry_id: UUID, capsys: Shown) -> dict[str, Any]:
    """What the command says of an entry, as JSON."""
    assert run(["explain", str(entry_id), "--json", "--database", database.url]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def events(answer: dict[str, Any]) -> list[str]:
    return [one["event"] for one in answer["story"]]


@pytest.mark.parametrize(
    ("situation", "reason", "ends", "word"), SITUATIONS, ids=[situation.__name__ for situation, *_ in SITUATIONS]
)
def test_every_reason_is_told_with_its_sentence_and_its_end(
    database: Database, capsys: Shown, situation: Callable[[Store], UUID], reason: str, ends: bool, word: str
) -> None:
    entry_id = situation(database.store)
    answer = told(database, entry_id, capsys)
    assert (answer["id"], answer["reason"]) == (str(entry_id), reason)
    assert answer["state"] == database.store.standing(entry_id).state
    assert word in answer["sentence"]
    assert ("until" in answer) is ends
    assert events(answer)[0] == "put"


def test_a_lease_that_is_over_is_told(database: Database, capsys: Shown) -> None:
    entry_id = claimed(database.store)
    database.clock.shift(61)
    answer = told(database, entry_id, capsys)
    assert answer["reason"] == "lease_over"
    assert events(answer) == ["put", "claimed"]


def test_the_story_tells_attempts_doubt_and_when_it_is_due(database: Database, capsys: Shown) -> None:
    store = database.store
    declare(store)
    entry_id = put(store, tenant_id="acme", group_key="g", principal="ann")
    finish_each(store, claim(store), Outcome.retry(code="http_500"))
    database.clock.shift(HOUR)
    finish_each(store, claim(store), Outcome.unsure(after=HOUR, code="timeout", message="no answer"))
    answer = told(database, entry_id, capsys)
    assert events(answer) == ["put", "attempt", "attempt", "in_doubt", "due"]
    put_at, earlier, attempt, doubt, due = answer["story"]
    assert "'acme'" in put_at["detail"]
    assert earlier["detail"] == "Attempt 1 met http_500."
    assert attempt["detail"] == "Attempt 2 met timeout: no answer."
    assert doubt["at"] == attempt["at"]
    assert due["at"] == answer["until"]


def test_the_story_tells_what_comes_next(database: Database, capsys: Shown) -> None:
    entry_id = claimed(database.store)
    answer = told(database, entry_id, capsys)
    assert events(answer) == ["put", "claimed", "returns"]
    assert answer["story"][-1]["at"] == answer["until"]
    waiting = put(database.store)
    for seconds, said in ((60, "The gate that holds it opens."), (None, "Somebody must open the gate that holds it.")):
        database.store.close_gate("things", "*", seconds, "stop")
        answer = told(database, waiting, capsys)
        assert events(answer) == ["put", "held"]
        assert (answer["story"][-1]["at"], answer["story"][-1]["detail"]) == (answer.get("until"), said)


def test_the_story_ends_with_the_end(database: Database, capsys: Shown) -> None:
    store = database.store
    declare(store)
    good, bad = put(store), put(store)
    batch = claim(store)
    store.finish(batch.token, {good: Outcome.delivered(), bad: Outcome.rejected("no", code="http_422")})
    end = told(database, good, capsys)
    assert events(end) == ["put", "delivered"]
    assert end["story"][-1]["detail"] == "Delivered by attempt 1."
    answer = told(database, bad, capsys)
    assert events(answer) == ["put", "attempt", "dead"]
    assert answer["story"][-1]["detail"] == "Given up: the destination rejected it."


def test_workers_that_died_are_part_of_the_story(database: Database, capsys: Shown) -> None:
    declare(database.store)
    entry_id = put(database.store)
    for _ in range(5):
        assert claim(database.store, lease_seconds=1)
        database.clock.shift(2)
    database.store.release_expired("things")
    answer = told(database, entry_id, capsys)
    assert events(answer) == ["put", *["lapsed"] * 5, "dead"]
    assert "5 workers died" in answer["sentence"]


def test_for_people_the_sentence_stands_first(database: Database, capsys: Shown) -> None:
    entry_id = claimed(database.store)
    assert run(["explain", str(entry_id), "--database", database.url]) == 0
    first, *rest = capsys.readouterr().out.splitlines()
    assert first.startswith("Claimed by w-7 since ")
    assert any("thing.happened" in line for line in rest)


def test_an_entry_that_is_not_there_is_one_line(database: Database, capsys: Shown) -> None:
    assert run(["explain", str(uuid4()), "--database", database.url]) == 1
    assert capsys.readouterr().err.startswith("carrick: no entry ")
    assert run(["explain", "nonsense", "--database", database.url]) == 2
