"""The same resolves on SQLite, on PostgreSQL and on a plain model: the same answers, contacts and events."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carrick.contacts.contacts import Contacts
from tests.contract.contact_model import Model, Name
from tests.sqlite_file import whole_file

EVENTS = "select event_type, {payload} from {record} where tenant_id = {mark} order by seq"

VALUES = {
    "external_id": ["E1", "E2", "e2"],
    "email": ["Ann@x.org", "ann@X.ORG ", "\u0130b@x.org", "\u0130B@x.org", "stra\u00dfe@x.org"],
    "phone": ["+44 20 7946 0958", "+442079460958", "+1 650 253 0000"],
    "anonymous_id": ["c1", "c2", "c3", "C1", "c1 "],
}
NAMES = [(kind, value) for kind, values in VALUES.items() for value in values]
TRAITS = st.dictionaries(st.sampled_from(["a", "b", "\u00e9"]), st.sampled_from([None, 1, 2.5, "x", [1], {"k": "v"}]))
REQUEST = st.tuples(
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=5).filter(
        lambda names: len({value for kind, value in names if kind == "external_id"}) <= 1
    ),
    TRAITS,
)


class Side(NamedTuple):
    """One database: its contacts, and how to read a tenant's events."""

    contacts: Contacts
    events: Callable[[str], list[tuple[str, Any]]]


@pytest.fixture
def sides(tmp_path: Path, newest_postgres_dsn: str) -> Iterator[list[Side]]:
    path = tmp_path / "model.db"
    whole_file(path)
    with ExitStack() as stack:
        lite = sqlite3.connect(path)
        stack.callback(lite.close)
        lite_sql = EVENTS.format(payload="payload", record="carrick_record", mark="?")
        post = stack.enter_context(psycopg.connect(newest_postgres_dsn, autocommit=True))
        post_sql = EVENTS.format(payload="payload::text", record="carrick.record", mark="%s").encode()
        yield [
            Side(
                stack.enter_context(Contacts.connect(f"sqlite:///{path}")),
                lambda tenant: [(kind, json.loads(body)) for kind, body in lite.execute(lite_sql, (tenant,))],
            ),
            Side(
                stack.enter_context(Contacts.connect(newest_postgres_dsn)),
                lambda tenant: [(kind, json.loads(body)) for kind, body in post.execute(post_sql, (tenant,))],
            ),
        ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests=st.lists(REQUEST, min_size=1, max_size=8))
def test_both_databases_do_what_the_model_does(sides: list[Side], requests: list[tuple[list[Name], Any]]) -> None:
    for side in sides:
        tenant, model, ids = uuid4().hex, Model(), dict[UUID, int]()
        for names, traits in requests:
            answer = side.contacts.resolve(tenant, names, traits)
            expected = model.resolve([_normalised(side, name) for name in names], traits)
            if answer.created:
                ids[answer.contact_id] = len(ids)
            assert (ids[answer.contact_id], answer.created) == (expected.number, expected.created)
            assert [ids[one] for one in answer.merged] == expected.merged
            assert [ids[one] for one in answer.conflicts] == expected.conflicts
        assert [_as_model(event, ids) for event in side.events(tenant)] == model.events
        for contact_id, number in ids.items():
            contact, person = side.contacts.get(tenant, contact_id), model.people[number]
            assert {(one.type.value, one.normalised) for one in contact.identities} == person.names
            assert (contact.merged_into and ids[contact.merged_into]) == person.merged_into
            assert person.merged_into is not None or contact.traits == person.traits
            assert model.people[ids[contact.living_id]].merged_into is None


def _normalised(side: Side, name: Name) -> Name:
    one = side.contacts.identity(*name)
    return one.type.value, one.normalised


def _as_model(event: tuple[str, Any], ids: dict[UUID, int]) -> tuple[Any, ...]:
    """An event as the model tells it."""
    kind, body = event[0].removeprefix("contact.").removesuffix(".v1"), event[1]
    number = ids[UUID(body["contact_id"])]
    names = [(one["type"], one["value"]) for one in body.get("identities", ())]
    match kind:
        case "merged":
            return kind, number, ids[UUID(body["merged_contact_id"])]
        case "conflict":
            other = ids[UUID(body["other_contact_id"])]
            return kind, number, body["external_id"], other, body["other_external_id"], names
        case _:
            return kind, number, names, body["traits"]
