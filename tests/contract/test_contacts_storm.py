"""Fifty connections resolve overlapping identities at once: the right contacts, no deadlock, every merge told once."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg

from carrick.contacts.arrival import Arrival, Refused
from carrick.contacts.contacts import Contacts
from tests.contract.contact_model import Name, components

CONNECTIONS = 50
ROUNDS = 6
TENANT = "acme"

Connection = psycopg.Connection[Any]

OWNERS = "select type, value_normalised, contact_id from carrick.contact_identities"
EVENTS = "select event_type, payload::text from carrick.record where channel = 'events'"


def requests(seed: float, kinds: list[str], pool: int) -> list[list[Name]]:
    """What one connection asks for: one to three identities each time."""
    chance = random.Random(seed)
    names = [(kind, f"{kind}{number}@x") for kind in kinds for number in range(pool)]
    return [_without_second_id(chance.sample(names, chance.randint(1, 3))) for _ in range(ROUNDS)]


def _without_second_id(names: list[Name]) -> list[Name]:
    ids = [name for name in names if name[0] == "external_id"]
    return [name for name in names if name not in ids[1:]]


def storm(dsn: str, asked: list[list[list[Name]]]) -> None:
    """Every connection resolves its own requests; every other one in one transaction."""

    def work(contacts: Contacts, connection: Connection, number: int) -> None:
        if number % 2:
            with connection.transaction():
                contacts.resolve_many_in(connection, TENANT, [(names, None) for names in asked[number]])
        else:
            for names in asked[number]:
                contacts.resolve_in(connection, TENANT, names, {"n": number})

    at_once(dsn, work)


def at_once(dsn: str, do: Callable[[Contacts, Connection, int], None]) -> None:
    """Every connection does its work, all starting together."""
    together = Barrier(CONNECTIONS)

    def work(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection, Contacts.connect(dsn) as contacts:
            together.wait(60)
            do(contacts, connection, number)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        for done in [pool.submit(work, number) for number in range(CONNECTIONS)]:
            done.result(100)


def ask(dsn: str, sql: str) -> list[tuple[str, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(sql.encode()).fetchall()


def judged(dsn: str) -> Counter[str]:
    """The events by type, after a look at what must hold whatever was asked."""
    events = [(kind, json.loads(body)) for kind, body in ask(dsn, EVENTS)]
    count = Counter(kind.removeprefix("contact.").removesuffix(".v1") for kind, _ in events)
    living = {row[0] for row in ask(dsn, "select id from carrick.contacts where merged_into is null")}
    dead = {str(row[0]) for row in ask(dsn, "select id from carrick.contacts where merged_into is not null")}
    told = [body["merged_contact_id"] for kind, body in events if kind == "contact.merged.v1"]
    assert sorted(told) == sorted(dead)
    assert {owner for _, _, owner in ask(dsn, OWNERS)} == living
    assert count["created"] - count["merged"] == len(living)
    return count


def groups(rows: list[tuple[str, ...]], key: Callable[[tuple[str, ...]], str]) -> set[frozenset[Name]]:
    owned: dict[str, set[Name]] = {}
    for row in rows:
        owned.setdefault(key(row), set()).add((row[0], row[1]))
    return {frozenset(names) for names in owned.values()}


def test_the_contacts_are_those_of_union_and_find(newest_postgres_dsn: str) -> None:
    asked = [requests(seed, ["email", "anonymous_id"], 100) for seed in range(CONNECTIONS)]
    storm(newest_postgres_dsn, asked)
    count = judged(newest_postgres_dsn)
    found = groups(ask(newest_postgres_dsn, OWNERS), lambda row: row[2])
    assert found == components([names for each in asked for names in each])
    assert 1 < len(found) < 200
    assert count["merged"] > 20
    assert count["conflict"] == 0


def test_external_ids_stay_apart_and_each_pair_is_told_once(newest_postgres_dsn: str) -> None:
    asked = [requests(seed, ["external_id", "email", "anonymous_id"], 12) for seed in range(CONNECTIONS)]
    storm(newest_postgres_dsn, asked)
    count = judged(newest_postgres_dsn)
    pairs = ask(newest_postgres_dsn, "select external_id, other from carrick.contact_conflicts")
    assert count["conflict"] == len(set(pairs)) > 5
    for names in groups(ask(newest_postgres_dsn, OWNERS), lambda row: row[2]):
        assert sum(kind == "external_id" for kind, _ in names) <= 1


def test_batches_that_set_the_same_few_traits_never_wait_in_a_circle(newest_postgres_dsn: str) -> None:
    """Much of each batch is settled when it begins, and no longer when its turn comes."""

    def work(contacts: Contacts, connection: Connection, number: int) -> None:
        chance = random.Random(number)
        for _ in range(3):
            asked = requests(chance.random(), ["external_id", "email", "anonymous_id"], 4)
            traits = [{"n": chance.randrange(3)} for _ in asked]
            contacts.resolve_many_in(connection, TENANT, list(zip(asked, traits, strict=True)))

    at_once(newest_postgres_dsn, work)
    assert judged(newest_postgres_dsn)["updated"] > 100


def test_batches_of_events_with_one_that_is_refused_never_wait_in_a_circle(newest_postgres_dsn: str) -> None:
    """What is refused makes the batch be resolved half by half."""
    with Contacts.connect(newest_postgres_dsn) as contacts:
        contacts.turn_on(TENANT)
        for number in range(16):
            contacts.resolve(TENANT, [("email", "large@x")], {f"t{number}": "x" * 16_000})

    def work(contacts: Contacts, connection: Connection, number: int) -> None:
        chance = random.Random(number)
        given: list[Any] = [{"email": f"u{chance.randrange(10)}@x", "n": chance.randrange(9)} for _ in range(8)]
        given.insert(chance.randrange(9), {"email": "large@x", "more": "x" * 16_000})
        arrivals = [Arrival(f"{number}-{place}", contact) for place, contact in enumerate(given)]
        with connection.transaction():
            answers = contacts.arrive_in(connection, TENANT, arrivals)
        assert sum(isinstance(answer, Refused) for answer in answers) == 1

    at_once(newest_postgres_dsn, work)
