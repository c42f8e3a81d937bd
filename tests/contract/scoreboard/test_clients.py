"""The allow-list of device applications."""

from __future__ import annotations

import pytest

from carrick.errors import InvalidInput
from carrick.testing import Clock
from carrick_scoreboard.store.audit import Audit
from carrick_scoreboard.store.clients import MAX_TEXT, Clients
from carrick_scoreboard.store.tables import Tables


@pytest.fixture
def clients(tables: Tables) -> Clients:
    return Clients(tables)


def test_an_application_is_let_in_with_whose_it_is(clients: Clients, tables: Tables) -> None:
    clients.add("matrix", "the hall", "ann@example.org", actor="op")
    client = clients.get("matrix")
    assert client is not None
    assert (client.comment, client.email, client.disabled_at) == ("the hall", "ann@example.org", None)
    (act,) = Audit(tables).latest("matrix")
    assert (act.actor, act.action) == ("op", "client.add")


def test_an_id_that_is_taken_is_refused_and_stays_as_it_was(clients: Clients) -> None:
    clients.add("matrix", "the hall", "", actor="op")
    with pytest.raises(InvalidInput, match="'matrix' is taken"):
        clients.add("matrix", "another hall", "", actor="op")
    assert [client.comment for client in clients.all()] == ["the hall"]


def test_an_application_that_nobody_let_in_is_none(clients: Clients) -> None:
    clients.add("matrix", "", "", actor="op")
    assert clients.get("MATRIX") is None
    assert clients.get("matri%") is None


def test_applications_are_listed_the_oldest_first(clients: Clients, clock: Clock) -> None:
    for client_id in ("b", "a"):
        clients.add(client_id, "", "", actor="op")
        clock.shift(1)
    assert [client.client_id for client in clients.all()] == ["b", "a"]


def test_what_is_no_id_is_refused_with_what_is_accepted(clients: Clients) -> None:
    for client_id in ("", "a b", "a/b", "x" * 101, "é", "a\0", "a\n"):
        with pytest.raises(InvalidInput, match="1 to 100 letters, digits"):
            clients.add(client_id, "", "", actor="op")
    clients.add("x" * 100, "", "", actor="op")


def test_a_text_that_cannot_be_shown_is_refused_by_its_name(clients: Clients) -> None:
    for text in ("x" * (MAX_TEXT + 1), "a\0b", "a\nb", "\udcff"):
        for field in ("comment", "email"):
            with pytest.raises(InvalidInput, match=field):
                clients.add("matrix", actor="op", **{"comment": "", "email": "", field: text})


def test_a_disabled_application_stays_listed_and_is_disabled_once(
    clients: Clients, tables: Tables, clock: Clock
) -> None:
    clients.add("matrix", "", "", actor="op")
    assert clients.disable("matrix", actor="op")
    first = clients.get("matrix")
    clock.shift(60)
    assert not clients.disable("matrix", actor="op")
    assert first is not None
    assert first.disabled_at is not None
    assert clients.get("matrix") == first
    assert [act.action for act in Audit(tables).latest("matrix")] == ["client.disable", "client.add"]


def test_an_application_that_is_not_known_is_named_with_those_that_are(clients: Clients) -> None:
    with pytest.raises(InvalidInput, match="'matrix' is not known.*none yet"):
        clients.disable("matrix", actor="op")
    clients.add("a", "", "", actor="op")
    with pytest.raises(InvalidInput, match="'matrix' is not known.*accepted: a"):
        clients.rotate("matrix", "b", actor="op")


def test_a_rotated_application_goes_on_under_the_new_id(clients: Clients, tables: Tables) -> None:
    clients.add("old", "the hall", "ann@example.org", actor="op")
    clients.rotate("old", "new", actor="op")
    old, new = clients.get("old"), clients.get("new")
    assert old is not None
    assert new is not None
    assert (old.replaced_by, old.disabled_at is not None) == ("new", True)
    assert (new.comment, new.email, new.disabled_at) == ("the hall", "ann@example.org", None)
    (rotated, *_) = Audit(tables).latest("old")
    assert (rotated.action, rotated.detail) == ("client.rotate", {"to": "new"})


def test_a_rotation_to_an_id_that_cannot_be_had_changes_nothing(clients: Clients) -> None:
    clients.add("old", "", "", actor="op")
    clients.add("other", "", "", actor="op")
    before = clients.all()
    for new in ("old", "other", "not an id"):
        with pytest.raises(InvalidInput):
            clients.rotate("old", new, actor="op")
    assert clients.all() == before


def test_a_disabled_application_cannot_be_rotated_and_no_new_one_is_left_behind(clients: Clients) -> None:
    clients.add("old", "", "", actor="op")
    clients.disable("old", actor="op")
    with pytest.raises(InvalidInput, match="'old' is disabled"):
        clients.rotate("old", "new", actor="op")
    assert clients.get("new") is None
